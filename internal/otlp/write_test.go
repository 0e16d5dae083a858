package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// identities are those of all appends so far, in order of streams.
func (l *log) identities() string {
	byStream := map[string][]string{}
	for _, b := range l.calls {
		byStream[b.Stream] = append(byStream[b.Stream], b.Identity)
	}
	return fmt.Sprint(byStream)
}

// TestRetry: of three streams one is away. Its sender is told to send all again, though two
// are durable; the retry brings in what is missing, and doubles nothing.
func TestRetry(t *testing.T) {
	l := newLog()
	l.fail = func(b Batch) error {
		if b.Stream == "b" {
			return localtier.ErrLeaseLost
		}
		return nil
	}
	r := receiver(t, l, nil)
	body := protobuf(t, batch(4, "a", "b", "c"))
	if w := post(r, asProtobuf, body); w.Code != http.StatusServiceUnavailable {
		t.Fatal(w.Code, w.Body)
	}
	if len(l.rows["a"]) != 4 || len(l.rows["b"]) != 0 || len(l.rows["c"]) != 4 {
		t.Fatalf("%d, %d, %d rows: one stream's failure is the others'", len(l.rows["a"]), len(l.rows["b"]), len(l.rows["c"]))
	}
	l.fail = nil
	if w := post(r, asProtobuf, gzipped(t, body), "Content-Encoding", "gzip"); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	for _, stream := range []string{"a", "b", "c"} {
		if got, want := fmt.Sprint(l.bodies(t, stream)), fmt.Sprintf("[%[1]s-0 %[1]s-1 %[1]s-2 %[1]s-3]", stream); got != want {
			t.Errorf("%s: %s", stream, got)
		}
	}
}

// TestRetryOfParts: what of a stream is durable before the failure is not written again.
func TestRetryOfParts(t *testing.T) {
	logs := batch(3, "a")
	for i := range 3 {
		logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(i).Attributes().PutStr("pad", strings.Repeat("x", partBytes*5/8))
	}
	l := newLog()
	appends := 0
	l.fail = func(Batch) error {
		if appends++; appends == 2 {
			return localtier.ErrLeaseLost
		}
		return nil
	}
	r := receiver(t, l, nil)
	body := protobuf(t, logs)
	if w := post(r, asProtobuf, body); w.Code != http.StatusServiceUnavailable || len(l.calls) != 2 {
		t.Fatal(w.Code, len(l.calls), "a part after one that failed is out of order")
	}
	if w := post(r, asProtobuf, body); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	if got := fmt.Sprint(l.bodies(t, "a")); got != "[a-0 a-1 a-2]" {
		t.Error(got)
	}
}

// TestIdentity: it is the rows', however they came, and no other rows have it.
func TestIdentity(t *testing.T) {
	of := func(logs plog.Logs, form string) string {
		l := newLog()
		body := protobuf(t, logs)
		if form == asJSON {
			body = inJSON(t, logs)
		}
		if w := post(receiver(t, l, nil), form, body); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
		for _, b := range l.calls {
			if b.Identity == "" {
				t.Error("no identity")
			}
		}
		return l.identities()
	}
	base := of(rich(), asProtobuf)
	if of(rich(), asProtobuf) != base || of(rich(), asJSON) != base {
		t.Error("the same logs have another identity")
	}
	for i, change := range []func(plog.Logs){
		func(l plog.Logs) { l.ResourceLogs().At(0).Resource().Attributes().PutStr("new", "") },
		func(l plog.Logs) { l.ResourceLogs().At(0).Resource().Attributes().PutStr("service.name", "b") },
		func(l plog.Logs) { l.ResourceLogs().At(0).ScopeLogs().At(0).Scope().SetVersion("2") },
		func(l plog.Logs) { l.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(1).SetTimestamp(1) },
		func(l plog.Logs) {
			r := l.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
			r.At(0).CopyTo(r.AppendEmpty())
		},
	} {
		logs := rich()
		change(logs)
		if of(logs, asProtobuf) == base {
			t.Errorf("change %d is not in the identity", i)
		}
	}
	// One stream's rows in another stream, and one part's in a later part.
	p := &part{rows: newRows("x", "y")}
	seen := map[string]bool{}
	for _, id := range []string{
		identity("s", 0, p), identity("t", 0, p), identity("s", 1, p),
		identity("s", 0, &part{rows: newRows("xy")}), identity("s", 0, &part{rows: newRows("x", "", "y")}),
	} {
		if seen[id] {
			t.Error("two parts of one identity")
		}
		seen[id] = true
	}
}

func newRows(payloads ...string) (out []segment.Row) {
	for _, p := range payloads {
		out = append(out, segment.Row{Payload: []byte(p)})
	}
	return out
}

// TestTimeless: records that have no time at all may well come twice.
func TestTimeless(t *testing.T) {
	logs := batch(2, "a", "b")
	logs.ResourceLogs().At(1).ScopeLogs().At(0).LogRecords().At(1).SetTimestamp(0)
	l := newLog()
	r := receiver(t, l, nil)
	for range 2 {
		if w := post(r, asProtobuf, protobuf(t, logs)); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
	}
	if len(l.rows["a"]) != 2 || len(l.rows["b"]) != 4 {
		t.Errorf("%d and %d rows, want 2 and 4", len(l.rows["a"]), len(l.rows["b"]))
	}
}

func TestKeepRepeats(t *testing.T) {
	l := newLog()
	r := receiver(t, l, func(d *Deps) { d.KeepRepeats = true })
	for range 2 {
		if w := post(r, asProtobuf, protobuf(t, batch(2, "a"))); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
	}
	if len(l.rows["a"]) != 4 {
		t.Errorf("%d rows, want 4", len(l.rows["a"]))
	}
}

// TestManyErrors: an answer stays small, whatever fails.
func TestManyErrors(t *testing.T) {
	l := newLog()
	l.fail = func(b Batch) error { return errors.New(b.Stream + strings.Repeat("x", 500)) }
	var services []string
	for i := range 200 {
		services = append(services, fmt.Sprint("s", i))
	}
	w := post(receiver(t, l, nil), asProtobuf, protobuf(t, batch(1, services...)))
	if w.Code != http.StatusServiceUnavailable || w.Body.Len() > 2*maxText || len(l.calls) != 200 {
		t.Error(w.Code, w.Body.Len(), len(l.calls))
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Deps{}); err == nil {
		t.Error("a receiver without Append")
	}
	if _, err := New(Deps{Append: newLog().append, Stream: "~x"}); err == nil {
		t.Error("a reserved default stream")
	}
}

// TestSlowAppend: a sender is not kept waiting for a disk or a bucket that is away.
func TestSlowAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := receiver(t, newLog(), func(d *Deps) {
			d.Append = func(ctx context.Context, _ Batch) error {
				<-ctx.Done()
				return fmt.Errorf("the rows may still become durable: %w", ctx.Err())
			}
		})
		w := post(r, asProtobuf, protobuf(t, batch(1, "a")))
		if took := time.Since(began); took != appendTimeout {
			t.Errorf("it took %v", took)
		}
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(statusOf(t, w).GetMessage(), "send them again") {
			t.Error(w.Code, w.Header(), w.Body)
		}
	})
}

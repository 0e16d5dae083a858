package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.uber.org/goleak"

	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is a shard log in memory: rows by stream, and the identities that it remembers.
type log struct {
	mu    sync.Mutex
	rows  map[string][]segment.Row
	known map[string]int // identity to its number of rows
	// fail is asked before each append; nil: all pass.
	fail  func(Batch) error
	calls []Batch
}

func newLog() *log { return &log{rows: map[string][]segment.Row{}, known: map[string]int{}} }

func (l *log) append(ctx context.Context, b Batch) error {
	if err := ctx.Err(); err != nil { // it starts no mutation
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, b)
	if l.fail != nil {
		if err := l.fail(b); err != nil {
			return err
		}
	}
	if n, again := l.known[b.Identity]; again && b.Identity != "" {
		if n != len(b.Rows) {
			return errors.New("other rows under one identity")
		}
		return nil
	}
	l.known[b.Identity] = len(b.Rows)
	l.rows[b.Stream] = append(l.rows[b.Stream], b.Rows...)
	return nil
}

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func receiver(t testing.TB, l *log, change func(*Deps)) *Receiver {
	t.Helper()
	d := Deps{Append: l.append, Now: func() time.Time { return now }}
	if change != nil {
		change(&d)
	}
	r, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !r.memory.TryAcquire(MaxMemory) {
			t.Error("a request kept some of the memory")
		}
	})
	return r
}

// batch is a request: n records of each service, in turn.
func batch(n int, services ...string) plog.Logs {
	logs := plog.NewLogs()
	for s, service := range services {
		rl := logs.ResourceLogs().AppendEmpty()
		rl.SetSchemaUrl("https://opentelemetry.io/schemas/1.26.0")
		rl.Resource().Attributes().PutStr("service.name", service)
		rl.Resource().Attributes().PutStr("host.name", "h1")
		sl := rl.ScopeLogs().AppendEmpty()
		sl.SetSchemaUrl("https://example.com/scope")
		sl.Scope().SetName("lib")
		sl.Scope().SetVersion("1.2")
		for i := range n {
			r := sl.LogRecords().AppendEmpty()
			r.SetTimestamp(9_000_000_000 + 1000*pcommon.Timestamp(s) + pcommon.Timestamp(i))
			r.Body().SetStr(fmt.Sprintf("%s-%d", service, i))
			r.Attributes().PutInt("i", int64(i))
		}
	}
	return logs
}

func protobuf(t testing.TB, logs plog.Logs) []byte {
	t.Helper()
	b, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func inJSON(t testing.TB, logs plog.Logs) []byte {
	t.Helper()
	b, err := plogotlp.NewExportRequestFromLogs(logs).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// post sends a body; headers are pairs.
func post(h http.Handler, form string, body []byte, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/v1/logs", bytes.NewReader(body))
	req.Header.Set("Content-Type", form)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// bodies are the records' texts of a stream, in order.
func (l *log) bodies(t testing.TB, stream string) (out []string) {
	t.Helper()
	for _, row := range l.rows[stream] {
		out = append(out, readRow(t, row).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().Str())
	}
	return out
}

// readRow is what any OTLP tool makes of a payload: one record.
func readRow(t testing.TB, row segment.Row) plog.Logs {
	t.Helper()
	in := plogotlp.NewExportRequest()
	if err := in.UnmarshalProto(row.Payload); err != nil {
		t.Fatal(err)
	}
	if n := in.Logs().LogRecordCount(); n != 1 {
		t.Fatalf("%d records in a row", n)
	}
	return in.Logs()
}

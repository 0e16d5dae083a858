package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/strandline/strandline/segment"
)

const took = `{"stream":"s","epoch":1,"shard":0,"term":3,"first":7,"last":8,"rows":2,"first_token":"e1.t3.7","last_token":"e1.t3.8"}`

func ok() http.Handler { return answering(200, nil, took) }

func notOwner(owner string) http.Handler {
	return answering(421, nil, `{"status":421,"code":"not-owner","title":"not the owner","owner":"`+owner+`"}`)
}

func busy(code, after string) http.Handler {
	return answering(503, map[string]string{"Retry-After": after}, `{"status":503,"code":"`+code+`","title":"later"}`)
}

func rowsOf(payloads ...string) []segment.Row {
	out := make([]segment.Row, len(payloads))
	for i, p := range payloads {
		out[i].Payload = []byte(p)
	}
	return out
}

// TestAppendWire: what an append looks like, and its answer.
func TestAppendWire(t *testing.T) {
	n := &hosts{}
	var body []byte
	n.set("a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body) // in memory
		ok().ServeHTTP(w, r)
	}))
	c := n.client(t, Config{Token: func(context.Context) (string, error) { return "secret", nil }})
	got, err := c.Append(t.Context(), "a/b..", rowsOf("one", "two"), AppendOptions{Ack: AckShared})
	if err != nil || got.First != 7 || got.Last != 8 || got.LastToken != "e1.t3.8" {
		t.Fatalf("%+v, %v", got, err)
	}
	r := n.requests()[0]
	if r.URL.EscapedPath() != "/v1/streams/a%2Fb%2E%2E/rows" || r.URL.RawQuery != "ack=shared" ||
		r.Header.Get("Authorization") != "Bearer secret" || len(r.Header.Get("Idempotency-Key")) < 30 ||
		r.Header.Get("Content-Type") != "text/plain" || string(body) != "one\ntwo\n" {
		t.Errorf("%s %v %q", r.URL, r.Header, body)
	}
	for name, o := range map[string]AppendOptions{
		"key":      {Key: "k-1"},
		"producer": {Producer: "p", Sequence: 4},
		"once":     {AtMostOnce: true},
	} {
		if _, err := c.Append(t.Context(), "s", rowsOf("x", "y"), o); err != nil {
			t.Fatal(name, err)
		}
		r := n.requests()[len(n.requests())-1]
		if r.Header.Get("Idempotency-Key") != o.Key || r.URL.Query().Get("producer") != o.Producer {
			t.Errorf("%s: %s %v", name, r.URL, r.Header)
		}
	}
}

func TestAppendRefused(t *testing.T) {
	n := &hosts{}
	c := n.client(t, Config{})
	for name, o := range map[string]AppendOptions{
		"two ways": {Key: "k", Producer: "p"}, "once and key": {Key: "k", AtMostOnce: true},
		"strange key": {Key: "a b"}, "long key": {Key: strings.Repeat("k", 201)}, "sequence alone": {Sequence: 1},
		"ack": {Ack: "maybe"}, "producer": {Producer: strings.Repeat("p", 201)},
	} {
		if _, err := c.Append(t.Context(), "s", rowsOf("x"), o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := c.Append(t.Context(), "~audit/0", rowsOf("x"), AppendOptions{}); !errors.Is(err, segment.ErrName) {
		t.Errorf("a reserved stream: %v", err)
	}
	if _, err := c.Append(t.Context(), "s", nil, AppendOptions{}); !errors.Is(err, ErrConfig) {
		t.Errorf("no rows: %v", err)
	}
	if len(n.asked()) != 0 {
		t.Error("something was sent")
	}
}

// TestBodies: rows come back byte for byte from every way that they are sent.
func TestBodies(t *testing.T) {
	strange := make([]byte, 256)
	for i := range strange {
		strange[i] = byte(i)
	}
	control := make([]byte, 0x80) // all of ASCII, as text
	copy(control, strange)
	sets := map[string][]segment.Row{
		"raw":     rowsOf("", "one", "\r", "zwei ü \ufffd"),
		"line":    rowsOf("a\nb", "c"),
		"strange": {{Payload: strange, Txn: strange[200:]}, {Payload: control, Txn: control, Time: 1}, {Payload: []byte("\u2028<&>"), Time: -1}},
		"large":   rowsOf(strings.Repeat("the same again ", 10_000), strings.Repeat("x\n", 20_000)),
	}
	for name, rows := range sets {
		for _, e := range []Encoding{Zstd, Gzip, Identity} {
			var b bodies
			b.encoding = e
			got, err := b.of(rows, false, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			if name == "large" && e != got.encoding {
				t.Errorf("%s %s: sent as %s", name, e, got.encoding)
			}
			raw := unpack(t, got)
			if (got.kind == rawType) != (name == "raw") {
				t.Errorf("%s: %s", name, got.kind)
			}
			back := decodeBody(t, got.kind, raw)
			if !slices.EqualFunc(back, rows, func(x, y segment.Row) bool {
				return x.Time == y.Time && bytes.Equal(x.Txn, y.Txn) && bytes.Equal(x.Payload, y.Payload)
			}) {
				t.Errorf("%s %s: %q", name, e, raw)
			}
			if got.plain != nil {
				if again, err := got.plain(); err != nil || !bytes.Equal(again, raw) {
					t.Errorf("%s %s: plain is another body: %v", name, e, err)
				}
			}
		}
	}
	if kind, raw := encodeRows(nil, rowsOf("x"), true); kind != ndjsonType || !bytes.Contains(raw, []byte("1970-01-01T00:00:00Z")) {
		t.Errorf("an exact time: %s %s", kind, raw)
	}
}

func unpack(t *testing.T, b body) []byte {
	t.Helper()
	var in io.Reader = bytes.NewReader(b.bytes)
	switch b.encoding {
	case Zstd:
		d, err := zstd.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		in = d
	case Gzip:
		g, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		in = g
	}
	out, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// decodeBody reads a body by the contract, with the standard library's decoder.
func decodeBody(t testing.TB, kind string, raw []byte) (out []segment.Row) {
	t.Helper()
	for line := range bytes.Lines(raw) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if kind == rawType {
			out = append(out, segment.Row{Payload: line})
			continue
		}
		var in struct {
			Payload, Txn string
			Base64       string `json:"payload_base64"`
			TxnB64       string `json:"txn_base64"`
			TS           *time.Time
		}
		if err := json.Unmarshal(line, &in); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		r := segment.Row{Payload: []byte(in.Payload), Txn: []byte(in.Txn)}
		if in.Base64 != "" {
			r.Payload, _ = base64.StdEncoding.DecodeString(in.Base64) // compared by the caller
		}
		if in.TxnB64 != "" {
			r.Txn, _ = base64.StdEncoding.DecodeString(in.TxnB64) // likewise
		}
		if in.TS != nil {
			r.Time = in.TS.UnixNano()
		}
		out = append(out, r)
	}
	return out
}

// TestEncodingRefused: a server without the encoding gets the same rows as they are, under the
// same key, and from then on.
func TestEncodingRefused(t *testing.T) {
	n := &hosts{}
	n.set("a", steps(t,
		answering(415, nil, `{"status":415,"code":"unsupported-encoding","title":"no"}`), ok(), ok()))
	c := n.client(t, Config{CompressFrom: 1})
	rows := rowsOf(strings.Repeat("x", 5000), "y")
	for range 2 {
		if _, err := c.Append(t.Context(), "s", rows, AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r := n.requests()
	if r[0].Header.Get("Idempotency-Key") != r[1].Header.Get("Idempotency-Key") || r[2].Header.Get("Content-Encoding") != "" {
		t.Errorf("%v %v %v", r[0].Header, r[1].Header, r[2].Header)
	}
}

// TestLostAnswer: an append with a key is sent again with it; one without is not.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", steps(t, ok(), aborted, ok(), aborted))
		c := n.client(t, Config{})
		for range 2 {
			if _, err := c.Append(t.Context(), "s", rowsOf("x", "y"), AppendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r := n.requests()
		if k := r[1].Header.Get("Idempotency-Key"); k == "" || k != r[2].Header.Get("Idempotency-Key") || k == r[0].Header.Get("Idempotency-Key") {
			t.Errorf("%v, %v", r[1].Header, r[2].Header)
		}
		if _, err := c.Append(t.Context(), "s", rowsOf("x"), AppendOptions{AtMostOnce: true}); !errors.Is(err, ErrUnknown) {
			t.Errorf("once: %v", err)
		}
	})
}

// TestLeavesNothing: a call that is over holds nothing of its caller's context, which may live as
// long as the process.
func TestLeavesNothing(t *testing.T) {
	n := &hosts{}
	n.set("a", ok())
	c := n.client(t, Config{})
	ctx := &countedContext{Context: t.Context(), done: make(chan struct{})}
	for range 10 {
		if _, err := c.Append(ctx, "s", rowsOf("x", "y"), AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if left := ctx.waiting.Load(); left != 0 {
		t.Errorf("%d contexts of calls that are over wait for their caller's", left)
	}
}

// countedContext counts who waits for its end.
type countedContext struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *countedContext) Done() <-chan struct{} { return c.done }

// AfterFunc is what the context package asks for instead of a goroutine of its own.
func (c *countedContext) AfterFunc(func()) func() bool {
	c.waiting.Add(1)
	var once sync.Once
	return func() bool { once.Do(func() { c.waiting.Add(-1) }); return true }
}

// TestNoAcknowledgement: a 200 that does not say where these rows stand, of a proxy or of
// something else at this address, is no acknowledgement.
func TestNoAcknowledgement(t *testing.T) {
	for _, said := range []string{
		`{}`, `{"ok":true}`, `null`, strings.Replace(took, `"last":8`, `"last":9`, 1),
		strings.Replace(took, `"first":7`, `"first":9`, 1), strings.Replace(took, `"epoch":1`, `"epoch":0`, 1),
	} {
		n := &hosts{}
		n.set("a", answering(200, nil, said))
		c := n.client(t, Config{})
		if got, err := c.Append(t.Context(), "s", rowsOf("x", "y"), AppendOptions{}); !errors.Is(err, ErrUnknown) || !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: %+v, %v", said, got, err)
		}
	}
}

// TestUnknownStays: once an attempt may have been carried out, a later refusal does not say that
// it was not.
func TestUnknownStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", steps(t, aborted, answering(403, nil, `{"status":403,"code":"forbidden","title":"no"}`), answering(403, nil, `{"code":"forbidden"}`)))
		c := n.client(t, Config{})
		c.reached.Store(true)
		if _, err := c.Append(t.Context(), "s", rowsOf("x"), AppendOptions{}); !errors.Is(err, ErrUnknown) || !errors.Is(err, ErrForbidden) {
			t.Errorf("%v", err)
		}
		if _, err := c.Append(t.Context(), "s", rowsOf("x"), AppendOptions{}); errors.Is(err, ErrUnknown) || !errors.Is(err, ErrForbidden) {
			t.Errorf("%v", err)
		}
	})
}

// numbersOf are the producers and sequences that each append was sent with.
func numbersOf(n *hosts) (producers []string, sequences []string) {
	for _, r := range n.requests() {
		producers = append(producers, r.URL.Query().Get("producer"))
		sequences = append(sequences, r.URL.Query().Get("sequence"))
	}
	return producers, sequences
}

// TestAppender: one producer, one more each time; a new one after an error, and for the same rows
// where the heir of a lost disk knows fewer numbers, once.
func TestAppender(t *testing.T) {
	gap := func(expect int) http.Handler {
		return answering(409, nil, fmt.Sprintf(`{"status":409,"code":"sequence","title":"out of sequence","expect":%d}`, expect))
	}
	n := &hosts{}
	n.set("a", steps(t, ok(), ok(), gap(2), ok(), ok(), gap(9), ok(), gap(0), gap(0)))
	a := n.client(t, Config{}).NewAppender("s", AppendOptions{})
	for i, want := range []error{nil, nil, nil, nil, ErrSequence, nil, ErrSequence} {
		if _, err := a.Append(t.Context(), rowsOf("x", "y")); !errors.Is(err, want) {
			t.Errorf("append %d: %v, want %v", i, err, want)
		}
	}
	producers, sequences := numbersOf(n)
	if !slices.Equal(sequences, []string{"1", "2", "3", "1", "2", "3", "1", "2", "1"}) {
		t.Errorf("%q", sequences)
	}
	for i, same := range []bool{true, true, false, true, true, false, true, false} {
		if (producers[i] == producers[i+1]) != same {
			t.Errorf("requests %d and %d: %q, %q", i, i+1, producers[i], producers[i+1])
		}
	}
}

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer is a scripted one: each Read takes the next step of its script.
type writer struct {
	append   func(ctx context.Context, stream string, rows []segment.Row, ack localtier.Ack) (localtier.Result, error)
	producer localtier.Producer // of the last append
	reads    []func(from, to segment.Seq) ([]segment.Seq, error)
	ready    error
	consumers
}

func (w *writer) AppendAs(ctx context.Context, p localtier.Producer, stream string, rows []segment.Row, ack localtier.Ack) (localtier.Result, error) {
	if p != (localtier.Producer{}) {
		w.producer = p
	}
	return w.append(ctx, stream, rows, ack)
}

// ReadShard takes the next step of the script, as Read does; all rows are of stream s.
func (w *writer) ReadShard(ctx context.Context, _ segment.Shard, from, to segment.Seq) iter.Seq2[localtier.ShardRow, error] {
	if to == 0 {
		to = math.MaxUint64
	}
	return func(yield func(localtier.ShardRow, error) bool) {
		for row, err := range w.Read(ctx, "s", from, to) {
			if !yield(localtier.ShardRow{Stream: "s", Row: row}, err) {
				return
			}
		}
	}
}

func (w *writer) Flush(context.Context) error { return nil }

// Await and LocalShard: followers have tests on a real log.
func (w *writer) Await(ctx context.Context, _ segment.Shard, _ segment.Seq) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (w *writer) LocalShard(context.Context, segment.Shard) (first, next segment.Seq, err error) {
	return 1, 1, nil
}

func (w *writer) Ready() error { return w.ready }

func (w *writer) Read(_ context.Context, _ string, from, to segment.Seq) iter.Seq2[segment.Row, error] {
	return func(yield func(segment.Row, error) bool) {
		if len(w.reads) == 0 {
			return
		}
		step := w.reads[0]
		w.reads = w.reads[1:]
		seqs, err := step(from, to)
		for _, s := range seqs {
			if s >= from && s <= to && !yield(segment.Row{Seq: s, Payload: fmt.Appendf(nil, "row %d", s)}, nil) {
				return
			}
		}
		if err != nil {
			yield(segment.Row{}, err)
		}
	}
}

// local is a step: these rows, then that error.
func local(err error, seqs ...segment.Seq) func(from, to segment.Seq) ([]segment.Seq, error) {
	return func(segment.Seq, segment.Seq) ([]segment.Seq, error) { return seqs, err }
}

// notLocal is a step: nothing before first is local.
func notLocal(first segment.Seq) func(from, to segment.Seq) ([]segment.Seq, error) {
	return local(&localtier.NotLocalError{Chain: segment.Chain{Epoch: 1}, First: first})
}

// bucket is what is absorbed, look by look: the last one stays.
type bucket struct {
	live    segment.Pos
	deleted bool
	looks   [][]segment.Seq // nil: no such stream
	err     error           // after the rows
	n       int

	row    catalog.ChainRow
	forked segment.Seq
	checks []segment.Token
}

func (b *bucket) Rows(_ context.Context, stream string, from, to segment.Pos) iter.Seq2[coldload.Row, error] {
	return func(yield func(coldload.Row, error) bool) {
		seqs := b.looks[min(b.n, len(b.looks)-1)]
		b.n++
		if seqs == nil {
			yield(coldload.Row{}, catalog.ErrNotFound)
			return
		}
		kind := coldload.ErrTrimmed
		if b.deleted {
			kind = coldload.ErrDeleted
		}
		if (from != (segment.Pos{}) || b.deleted) && from.Less(b.live) {
			yield(coldload.Row{}, &coldload.ReadError{Stream: stream, At: from, First: b.live, Kind: kind})
			return
		}
		for _, s := range seqs {
			p := segment.Pos{Epoch: 1, Seq: s}
			if p.Less(from) || p.Less(b.live) || to != (segment.Pos{}) && to.Less(p) {
				continue
			}
			if !yield(coldload.Row{Epoch: 1, Row: segment.Row{Seq: s, Payload: fmt.Appendf(nil, "row %d", s)}}, nil) {
				return
			}
		}
		if b.err != nil {
			yield(coldload.Row{}, b.err)
		}
	}
}

func (b *bucket) Plan(context.Context, catalog.PlanRequest) (catalog.Plan, error) {
	if b.looks[min(max(b.n-1, 0), len(b.looks)-1)] == nil {
		return catalog.Plan{}, catalog.ErrNotFound
	}
	return catalog.Plan{LiveFrom: b.live}, nil
}

// Scan is Rows of the stream s.
func (b *bucket) Scan(ctx context.Context, c segment.Chain, from segment.Seq) iter.Seq2[coldload.ShardRow, error] {
	return func(yield func(coldload.ShardRow, error) bool) {
		for row, err := range b.Rows(ctx, "s", segment.Pos{Epoch: 1, Seq: from}, segment.Pos{}) {
			if !yield(coldload.ShardRow{Stream: "s", Epoch: c.Epoch, Row: row.Row}, err) {
				return
			}
		}
	}
}

// Check accepts tokens up to seq forked, 0: all.
func (b *bucket) Check(_ context.Context, _ string, tok segment.Token) error {
	b.checks = append(b.checks, tok)
	if b.forked != 0 && tok.Seq >= b.forked {
		return &catalog.ForkedError{Token: tok, Forked: b.forked, Term: tok.Term + 1}
	}
	return nil
}

func (b *bucket) CheckShard(ctx context.Context, _ segment.Shard, tok segment.Token) error {
	return b.Check(ctx, "", tok)
}

func (b *bucket) Chain(_ context.Context, c segment.Chain) (catalog.ChainRow, error) {
	if c.Shard >= 2 || c.Epoch > 2 {
		return catalog.ChainRow{}, catalog.ErrNotFound
	}
	row := b.row
	row.Chain = c
	return row, nil
}

func (b *bucket) Stream(context.Context, string) (catalog.Stream, error) {
	return catalog.Stream{LiveFrom: b.live}, nil
}

func (b *bucket) Streams(context.Context, string, int) ([]catalog.Stream, error) { return nil, nil }

func (b *bucket) Terms(context.Context, segment.Chain) ([]catalog.TermRow, error) { return nil, nil }

func (b *bucket) Topologies(context.Context) ([]catalog.Topology, error) {
	return []catalog.Topology{{Epoch: 1, Shards: 2, State: catalog.TopologyOpen}, {Epoch: 2, Shards: 2}}, nil
}

func (b *bucket) AckClosed(_ context.Context, c segment.Chain, name string, seq segment.Seq) (catalog.ChainRow, error) {
	row := b.row
	row.Chain = c
	cs, _, err := catalog.AckCursor(&row, name, seq)
	row.Consumers = cs
	return row, err
}

func handler(w *writer, b *bucket) http.Handler {
	d := Deps{Reader: b, Catalog: b, Epoch: 1, Shards: 1, Status: func(context.Context) (any, error) { return map[string]int{"a": 1}, nil }}
	if w != nil {
		d.Writer = w
	}
	return Handler(d)
}

// do makes one request and holds the answer to the form that all have.
func do(t *testing.T, h http.Handler, method, target, contentType string, body io.Reader) (*httptest.ResponseRecorder, problem) {
	t.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = io.ReadAll(body); err != nil {
			t.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, target, bytes.NewReader(sent))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	held(t, r, sent, w.Code, w.Header(), w.Body.Bytes())
	var p problem
	if w.Code >= 400 {
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Status != w.Code || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Fatalf("%s %s: %d is no problem: %q, %v", method, target, w.Code, w.Body, err)
		}
		later := w.Code == http.StatusServiceUnavailable || w.Code == http.StatusInsufficientStorage
		if retry := w.Header().Get("Retry-After"); later != (retry != "") {
			t.Fatalf("%s %s: %d with Retry-After %q", method, target, w.Code, retry)
		}
	}
	return w, p
}

// seqs are those of an NDJSON body; the problem is that of its last line, if it is one.
func seqs(t *testing.T, body *bytes.Buffer) (out []segment.Seq, p *problem) {
	t.Helper()
	for line := range strings.Lines(body.String()) {
		var l struct {
			Line
			Error *problem `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || p != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if p = l.Error; p == nil {
			if want := fmt.Sprint("row ", l.Seq); l.Payload == nil || *l.Payload != want || l.Stream != "s" || l.Epoch != 1 {
				t.Fatalf("line %q", line)
			}
			out = append(out, l.Seq)
		}
	}
	return out, p
}

// mustProblem is the problem of a refused request.
func mustProblem(t testing.TB, w *httptest.ResponseRecorder) (p problem) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Status != w.Code || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d is no problem: %q, %v", w.Code, w.Body, err)
	}
	return p
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

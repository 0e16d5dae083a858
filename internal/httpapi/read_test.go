package httpapi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

type step = func(from, to segment.Seq) ([]segment.Seq, error)

func TestReadMixed(t *testing.T) {
	fault := fmt.Errorf("local: %w", localtier.ErrLeaseLost)
	givenUp := &coldload.ReadError{Stream: "s", Kind: coldload.ErrLost, First: segment.Pos{Epoch: 2, Seq: 7}}
	for name, c := range map[string]struct {
		query   string
		looks   [][]segment.Seq
		live    segment.Seq
		deleted bool
		cold    error
		local   []step
		want    []segment.Seq
		code    string // of the answer, or of the last line if rows came
	}{
		"bucket only":                 {looks: [][]segment.Seq{{1, 2, 5}}, local: []step{local(nil)}, want: []segment.Seq{1, 2, 5}},
		"local only":                  {looks: [][]segment.Seq{nil}, local: []step{local(nil, 1, 2)}, want: []segment.Seq{1, 2}},
		"both, overlapping":           {looks: [][]segment.Seq{{1, 2, 5}}, local: []step{local(nil, 2, 5, 7)}, want: []segment.Seq{1, 2, 5, 7}},
		"housekept in between":        {looks: [][]segment.Seq{{1, 2}, {1, 2, 5, 6}}, local: []step{notLocal(7), local(nil, 7, 9)}, want: []segment.Seq{1, 2, 5, 6, 7, 9}},
		"housekept, first absorbed":   {looks: [][]segment.Seq{nil, {3}}, local: []step{notLocal(7), local(nil, 8)}, want: []segment.Seq{3, 8}},
		"housekept while it was read": {looks: [][]segment.Seq{{1}, {1, 4, 5}}, local: []step{local(&localtier.NotLocalError{First: 6}, 4), local(nil, 6)}, want: []segment.Seq{1, 4, 5, 6}},
		"limit in the bucket":         {query: "?limit=2", looks: [][]segment.Seq{{1, 2, 5}}, want: []segment.Seq{1, 2}},
		"limit at the border":         {query: "?limit=3", looks: [][]segment.Seq{{1, 2, 5}}, cold: objstore.ErrUnavailable, want: []segment.Seq{1, 2, 5}},
		"limit locally":               {query: "?limit=4", looks: [][]segment.Seq{{1, 2, 5}}, local: []step{local(nil, 6, 7, 8)}, want: []segment.Seq{1, 2, 5, 6}},
		"limit after housekeeping":    {query: "?limit=3", looks: [][]segment.Seq{{1}, {1, 2, 3, 4}}, local: []step{notLocal(5)}, want: []segment.Seq{1, 2, 3}},
		"from and to":                 {query: "?from=2&to=7", looks: [][]segment.Seq{{1, 2, 5}}, local: []step{local(nil, 6, 7, 8)}, want: []segment.Seq{2, 5, 6, 7}},
		"to in the bucket":            {query: "?to=2", looks: [][]segment.Seq{{1, 2, 5}}, local: []step{local(nil, 6)}, want: []segment.Seq{1, 2}},
		"beyond the tip":              {query: "?from=100", looks: [][]segment.Seq{{1, 2}}, local: []step{local(nil)}},
		"from the first live":         {looks: [][]segment.Seq{{1, 2, 5}}, live: 2, local: []step{local(nil, 1, 2, 5, 6)}, want: []segment.Seq{2, 5, 6}},
		"trimmed to the tip":          {looks: [][]segment.Seq{{}}, live: 6, local: []step{local(nil, 4, 5)}},
		"deleted, then local rows":    {looks: [][]segment.Seq{{}}, live: 6, deleted: true, local: []step{local(nil, 4, 5, 6)}, want: []segment.Seq{6}},
		"deleted, then absorbed rows": {looks: [][]segment.Seq{{}, {6}}, live: 6, deleted: true, local: []step{notLocal(7), local(nil)}, want: []segment.Seq{6}},
		"deleted":                     {looks: [][]segment.Seq{{}}, live: 6, deleted: true, local: []step{local(nil, 4, 5)}, code: "deleted"},
		"deleted, local floor":        {looks: [][]segment.Seq{{}}, live: 6, deleted: true, local: []step{notLocal(6), local(nil)}, code: "deleted"},
		"deleted, another's":          {looks: [][]segment.Seq{{}}, live: 6, deleted: true, local: []step{local(&localtier.NotOwnerError{Owner: "host:1"})}, code: "deleted"},
		"deleted, from below":         {query: "?from=5", looks: [][]segment.Seq{{}}, live: 6, deleted: true, code: "deleted"},
		"deleted, from above":         {query: "?from=6", looks: [][]segment.Seq{{}}, live: 6, deleted: true, local: []step{local(nil)}},
		"trimmed":                     {query: "?from=1", looks: [][]segment.Seq{{1, 2, 5}}, live: 2, code: "trimmed"},
		"unknown":                     {looks: [][]segment.Seq{nil}, local: []step{local(nil)}, code: "no-such-stream"},
		"unknown, local floor":        {looks: [][]segment.Seq{nil}, local: []step{notLocal(7), local(nil)}, code: "no-such-stream"},
		"unknown, another's":          {looks: [][]segment.Seq{nil}, local: []step{local(&localtier.NotOwnerError{Owner: "host:1"})}, code: "not-owner"},
		"known, another's":            {looks: [][]segment.Seq{{1}}, local: []step{local(&localtier.NotOwnerError{})}, want: []segment.Seq{1}},
		"fault at once":               {looks: [][]segment.Seq{{}}, cold: objstore.ErrUnavailable, code: "store-unavailable"},
		"fault after rows":            {looks: [][]segment.Seq{{1, 2}}, cold: coldload.ErrLost, want: []segment.Seq{1, 2}, code: "lost"},
		"accepted loss after rows":    {looks: [][]segment.Seq{{1, 2}}, cold: givenUp, want: []segment.Seq{1, 2}, code: "lost"},
		"local fault after rows":      {looks: [][]segment.Seq{{1, 2}}, local: []step{local(fault, 3)}, want: []segment.Seq{1, 2, 3}, code: "lease-lost"},
		"never local": {
			looks: [][]segment.Seq{{1}}, local: slices.Repeat([]step{notLocal(9)}, maxTurns), want: []segment.Seq{1}, code: "catalog-unavailable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bucket{looks: c.looks, err: c.cold, deleted: c.deleted}
			if c.live > 0 {
				b.live = segment.Pos{Epoch: 1, Seq: c.live}
			}
			w, p := do(t, handler(&writer{reads: c.local}, b), "GET", "/v1/streams/s/rows"+c.query, "", nil)
			if w.Code >= 400 {
				if len(c.want) > 0 || p.Code != c.code {
					t.Fatalf("%d %+v, want %v, %q", w.Code, p, c.want, c.code)
				}
				if (c.code == "trimmed" || c.code == "deleted") && (w.Code != 410 || p.First == nil || *p.First != c.live || p.From != fmt.Sprintf("1.%d", c.live)) || c.code == "not-owner" && (w.Code != 421 || p.Owner != "host:1") {
					t.Fatalf("%d %+v", w.Code, p)
				}
				return
			}
			got, end := seqs(t, w.Body)
			code := ""
			if end != nil {
				code = end.Code
			}
			if accepted := errors.Is(c.cold, givenUp); accepted && (end == nil || end.First == nil || *end.First != 7 || end.From != "2.7") {
				t.Errorf("%+v", end)
			}
			if !slices.Equal(got, c.want) || code != c.code || w.Header().Get("Content-Type") != "application/x-ndjson" {
				t.Fatalf("%v, %q; want %v, %q", got, code, c.want, c.code)
			}
		})
	}
}

func TestReadOnly(t *testing.T) {
	if w, _ := do(t, handler(nil, &bucket{looks: [][]segment.Seq{{1, 2}}}), "GET", "/v1/streams/s/rows", "", nil); w.Code != 200 {
		t.Fatal(w.Code)
	} else if got, _ := seqs(t, w.Body); len(got) != 2 {
		t.Fatal(got)
	}
	if _, p := do(t, handler(nil, &bucket{looks: [][]segment.Seq{nil}}), "GET", "/v1/streams/s/rows", "", nil); p.Code != "no-such-stream" {
		t.Fatalf("%+v", p)
	}
}

func TestBadQueries(t *testing.T) {
	for _, q := range []string{
		"from=x", "from=-1", "from=0", "to=0", "from=%2B1", "from=18446744073709551616", "to=1.0", "to=0.5", "to=1.5.2", "limit=0", "limit=-1", "limit=x", "from=5&to=4",
		"from=e1.t3", "from=e1.t3.0", "to=e1.t3.0", "from=e01.t3.1", "from=1&after=1", "after=18446744073709551615", "after=0",
	} {
		if w, p := do(t, handler(nil, nil), "GET", "/v1/streams/s/rows?"+q, "", nil); w.Code != 400 || p.Code != "invalid-request" {
			t.Errorf("%s: %d %+v", q, w.Code, p)
		}
	}
}

// TestLines: whatever the bytes of a row, its line gives them back.
func TestLines(t *testing.T) {
	for _, payload := range []string{"", "plain", "a\nb", "\x00", "\xff\xfe", "ä\u2028<&>"} {
		for _, txn := range []string{"", "t", "\xff"} {
			l := LineOf("s", &coldload.Row{Epoch: 1, Row: segment.Row{Seq: 3, Payload: []byte(payload), Txn: []byte(txn)}})
			got, gotTxn := string(l.Base64), l.Txn
			if l.Payload != nil {
				got = *l.Payload
			}
			if l.TxnB64 != nil {
				gotTxn = string(l.TxnB64)
			}
			if got != payload || gotTxn != txn {
				t.Errorf("%q %q: %+v", payload, txn, l)
			}
		}
	}
}

// TestClientGone: a read whose client went away ends, and its goroutines with it.
func TestClientGone(t *testing.T) {
	ended := make(chan error, 1)
	b := &endless{ended: ended}
	srv := httptest.NewServer(Handler(Deps{Reader: b, Catalog: b, Epoch: 1}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/v1/streams/s/rows", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.Body.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = res.Body.Close() // cancelled: it fails
}

// endless has rows for ever.
type endless struct {
	bucket
	ended chan error
}

func (e *endless) Plan(context.Context, catalog.PlanRequest) (catalog.Plan, error) {
	return catalog.Plan{}, nil
}

func (e *endless) Rows(ctx context.Context, _ string, _, _ segment.Pos) iter.Seq2[coldload.Row, error] {
	return func(yield func(coldload.Row, error) bool) {
		for s := segment.Seq(1); ctx.Err() == nil; s++ {
			if !yield(coldload.Row{Epoch: 1, Row: segment.Row{Seq: s}}, nil) {
				e.ended <- nil
				return
			}
		}
		e.ended <- context.Cause(ctx)
		yield(coldload.Row{}, context.Cause(ctx))
	}
}

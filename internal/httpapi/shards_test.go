package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

func TestShardRows(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		looks [][]segment.Seq
		live  segment.Seq
		local []step
		want  []segment.Seq
		code  string
	}{
		"local only":             {local: []step{local(nil, 1, 2, 3)}, want: []segment.Seq{1, 2, 3}},
		"bucket, then local":     {looks: [][]segment.Seq{{1, 2, 3, 4}}, local: []step{notLocal(4), local(nil, 4, 5)}, want: []segment.Seq{1, 2, 3, 4, 5}},
		"the bucket lags":        {looks: [][]segment.Seq{{1, 2}}, local: []step{notLocal(4), local(nil, 4, 5)}, want: []segment.Seq{1, 2, 4, 5}},
		"housekept meanwhile":    {looks: [][]segment.Seq{{1, 2, 3, 4, 5}}, local: []step{local(&localtier.NotLocalError{First: 5}, 1, 2), local(nil, 5, 6)}, want: []segment.Seq{1, 2, 3, 4, 5, 6}},
		"another's":              {looks: [][]segment.Seq{{1, 2}}, local: []step{local(&localtier.NotOwnerError{})}, want: []segment.Seq{1, 2}},
		"trimmed rows, locally":  {live: 3, local: []step{local(nil, 1, 2, 3, 4)}, want: []segment.Seq{3, 4}},
		"from and to, locally":   {query: "?from=2&to=3", local: []step{local(nil, 1, 2, 3, 4)}, want: []segment.Seq{2, 3}},
		"to in the bucket":       {query: "?from=2&to=3", looks: [][]segment.Seq{{2, 3, 4}}, local: []step{notLocal(9)}, want: []segment.Seq{2, 3}},
		"limit":                  {query: "?limit=3", looks: [][]segment.Seq{{1, 2}}, local: []step{notLocal(3), local(nil, 3, 4)}, want: []segment.Seq{1, 2, 3}},
		"after a token":          {query: "?after=e1.t5.2", local: []step{local(nil, 1, 2, 3)}, want: []segment.Seq{3}},
		"from a token":           {query: "?from=e1.t5.2", local: []step{local(nil, 1, 2, 3)}, want: []segment.Seq{2, 3}},
		"a forked token":         {query: "?from=e1.t5.7", local: []step{local(nil, 7, 8)}, code: "forked"},
		"a forked token, no row": {query: "?after=e1.t5.7", local: []step{local(nil)}, code: "forked"},
		"another epoch's token":  {query: "?from=e9.t5.7", code: "invalid-request"},
		"never local":            {looks: [][]segment.Seq{{1}}, local: slices.Repeat([]step{notLocal(9)}, maxTurns), want: []segment.Seq{1}, code: "catalog-unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bucket{looks: c.looks, forked: 7}
			if c.looks == nil {
				b.looks = [][]segment.Seq{{}}
			}
			if c.live > 0 {
				b.live = segment.Pos{Epoch: 1, Seq: c.live}
			}
			w, p := do(t, handler(&writer{reads: c.local}, b), "GET", "/v1/shards/0/rows"+c.query, "", nil)
			if w.Code >= 400 {
				if p.Code != c.code || len(c.want) > 0 || c.code == "forked" && (w.Code != 409 || p.Forked == nil || *p.Forked != 7) {
					t.Fatalf("%d %+v", w.Code, p)
				}
				return
			}
			got, end := seqs(t, w.Body)
			code := ""
			if end != nil {
				code = end.Code
			}
			if !slices.Equal(got, c.want) || code != c.code {
				t.Fatalf("%v, %q; want %v, %q", got, code, c.want, c.code)
			}
		})
	}
}

// TestShardRowsBeforeALoss: rows that were accepted as lost end a read that comes to them, and no
// read that ends before them, or whose rows from there on are local.
func TestShardRowsBeforeALoss(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		local []step
		want  []segment.Seq
		code  string
	}{
		"up to it":         {query: "?to=3", local: []step{notLocal(9)}, want: []segment.Seq{1, 2, 3}},
		"into it":          {query: "?to=4", local: []step{notLocal(9)}, want: []segment.Seq{1, 2, 3}, code: "lost"},
		"past it":          {local: []step{notLocal(9)}, want: []segment.Seq{1, 2, 3}, code: "lost"},
		"it is local":      {local: []step{notLocal(4), local(nil, 4, 5)}, want: []segment.Seq{1, 2, 3, 4, 5}},
		"a part is local":  {local: []step{notLocal(5), local(nil, 5)}, want: []segment.Seq{1, 2, 3}, code: "lost"},
		"local, and bound": {query: "?to=3", local: []step{notLocal(4), local(nil, 4, 5)}, want: []segment.Seq{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bucket{looks: [][]segment.Seq{{1, 2, 3}}, err: &coldload.ScanError{Chain: segment.Chain{Epoch: 1}, At: 4, First: 6, Kind: coldload.ErrLost}}
			w, _ := do(t, handler(&writer{reads: c.local}, b), "GET", "/v1/shards/0/rows"+c.query, "", nil)
			got, end := seqs(t, w.Body)
			code := ""
			if end != nil {
				code = end.Code
			}
			if !slices.Equal(got, c.want) || code != c.code || end != nil && end.From != "1.6" {
				t.Fatalf("%v, %+v; want %v, %q", got, end, c.want, c.code)
			}
		})
	}
}

// TestStreamTokens: a stream's read holds its token against the history before its first row.
func TestStreamTokens(t *testing.T) {
	b := &bucket{looks: [][]segment.Seq{{1, 2, 3}}, forked: 3}
	w, _ := do(t, handler(&writer{reads: []step{local(nil)}}, b), "GET", "/v1/streams/s/rows?after=e1.t4.2", "", nil)
	if got, _ := seqs(t, w.Body); w.Code != 200 || !slices.Equal(got, []segment.Seq{3}) || len(b.checks) != 1 {
		t.Errorf("%d %v, %v", w.Code, got, b.checks)
	}
	w, p := do(t, handler(&writer{reads: []step{local(nil)}}, b), "GET", "/v1/streams/s/rows?from=e1.t4.3", "", nil)
	if w.Code != 409 || p.Code != "forked" || *p.Forked != 3 {
		t.Errorf("%d %+v", w.Code, p)
	}
	if w, _ = do(t, handler(&writer{reads: []step{local(nil)}}, b), "GET", "/v1/streams/s/rows?from=3", "", nil); w.Code != 200 || len(b.checks) != 2 {
		t.Errorf("a bare seq was checked: %d, %v", w.Code, b.checks)
	}
}

// consumer of an answer.
func consumerIn(t *testing.T, body string) (c ConsumerOut) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return c
}

// TestConsumerLife: made, pulled, acknowledged by seq and by token, removed.
func TestConsumerLife(t *testing.T) {
	b := &bucket{looks: [][]segment.Seq{{1, 2, 3, 4, 5, 6}}, forked: 6}
	h := handler(&writer{consumers: consumers{last: 6}}, b)
	const at = "/v1/shards/0/consumers"
	ok := func(method, target, body string) string {
		t.Helper()
		w, p := do(t, h, method, target, "", strings.NewReader(body))
		if w.Code != 200 {
			t.Fatalf("%s %s: %d %+v", method, target, w.Code, p)
		}
		return w.Body.String()
	}
	if c := consumerIn(t, ok("PUT", at+"/c?after=1", "")); c != (ConsumerOut{0, "c", 1, 5}) {
		t.Errorf("%+v", c)
	}
	if c := consumerIn(t, ok("PUT", at+"/c?after=4", "")); c.Cursor != 1 {
		t.Errorf("made again: %+v", c)
	}
	for target, want := range map[string]string{
		at + "/c?after=4":  `"cursor":1,"lag":5,"stood":true}`,
		at + "/d?after=99": `"cursor":6,"lag":0,"clamped":true}`,
		at + "/e?after=6":  `"cursor":6,"lag":0}`,
		at + "/f":          `"cursor":0,"lag":6}`,
	} {
		if got := strings.TrimSpace(ok("PUT", target, "")); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	for _, name := range []string{"d", "e", "f"} {
		ok("DELETE", at+"/"+name, "")
	}
	pulled := ok("POST", at+"/c/pull?limit=2", "")
	if !strings.Contains(pulled, `"token":"e1.t5.2"`) || !strings.Contains(pulled, `"token":"e1.t5.3"`) || strings.Count(pulled, "\n") != 2 {
		t.Errorf("%s", pulled)
	}
	if c := consumerIn(t, ok("POST", at+"/c/ack", `{"seq":2}`)); c.Cursor != 2 || c.Lag != 4 {
		t.Errorf("%+v", c)
	}
	if c := consumerIn(t, ok("POST", at+"/c/ack", `{"token":"e1.t5.3"}`)); c.Cursor != 3 {
		t.Errorf("%+v", c)
	}
	if c := consumerIn(t, ok("GET", at+"/c", "")); c.Cursor != 3 {
		t.Errorf("%+v", c)
	}
	if list := ok("GET", at, ""); !strings.Contains(list, `"name":"c"`) {
		t.Error(list)
	}
	ok("DELETE", at+"/c", "")
	if list := ok("GET", at, ""); strings.TrimSpace(list) != "[]" {
		t.Error(list)
	}
}

// TestPullFromBucket: what the consumer's owner does not have any more is in the bucket.
func TestPullFromBucket(t *testing.T) {
	w := &writer{consumers: consumers{last: 4, local: 3}, reads: []step{notLocal(3), local(nil, 3, 4)}}
	rec, _ := do(t, handler(w, &bucket{looks: [][]segment.Seq{{1, 2}}}), "POST", "/v1/shards/0/consumers/c/pull", "", nil)
	got, _ := seqs(t, rec.Body)
	if rec.Code != 200 || !slices.Equal(got, []segment.Seq{1, 2, 3, 4}) {
		t.Errorf("%d %v", rec.Code, got)
	}
}

func TestConsumerRefusals(t *testing.T) {
	const at = "/v1/shards/0/consumers"
	for _, c := range []struct {
		method, target, body string
		status               int
		code                 string
	}{
		{"GET", at + "/none", "", 404, "no-such-consumer"},
		{"DELETE", at + "/none", "", 404, "no-such-consumer"},
		{"POST", at + "/none/ack", `{"seq":1}`, 404, "no-such-consumer"},
		{"POST", at + "/c/ack", `{"seq":99}`, 400, "invalid-request"},
		{"POST", at + "/c/ack", `{"token":"e1.t5.6"}`, 409, "forked"},
		{"POST", at + "/c/ack", `{"token":"e2.t5.1"}`, 400, "invalid-request"},
		{"POST", at + "/c/ack", `{"token":"3"}`, 400, "invalid-request"},
		{"POST", at + "/c/ack", `{"seq":1,"token":"e1.t5.1"}`, 400, "invalid-request"},
		{"POST", at + "/c/ack", `{}`, 400, "invalid-request"},
		{"POST", at + "/c/ack", `{"seq":1}{"seq":2}`, 400, "invalid-request"},
		{"POST", at + "/c/ack", strings.Repeat(" ", maxAckBytes+1), 413, "too-large"},
		{"PUT", at + "/c?after=x", "", 400, "invalid-request"},
		{"PUT", at + "/" + strings.Repeat("n", 2000), "", 400, "invalid-name"},
		{"POST", at + "/c/pull?limit=0", "", 400, "invalid-request"},
		{"POST", at + "/c/pull?limit=" + fmt.Sprint(MaxPull+1), "", 400, "invalid-request"},
		{"GET", "/v1/shards/x/consumers", "", 400, "invalid-request"},
		{"GET", "/v1/shards/0/rows?epoch=0", "", 400, "invalid-request"},
		{"PATCH", at + "/c", "", 405, "no-such-method"},
		{"GET", at + "/c/ack", "", 405, "no-such-method"},
		{"POST", "/v1/shards/0/rows", "", 405, "no-such-method"},
		// Another's shard, with its owner.
		{"PUT", "/v1/shards/1/consumers/c", "", 421, "not-owner"},
		{"POST", "/v1/shards/1/consumers/c/ack", `{"seq":1}`, 421, "not-owner"},
		{"POST", "/v1/shards/1/consumers/c/pull", "", 421, "not-owner"},
		{"GET", "/v1/shards/1/consumers", "", 421, "not-owner"},
		{"DELETE", "/v1/shards/1/consumers/c", "", 421, "not-owner"},
	} {
		w := &writer{consumers: consumers{last: 6, cursors: map[string]segment.Seq{"c": 1}}}
		rec, p := do(t, handler(w, &bucket{looks: [][]segment.Seq{{}}, forked: 6}), c.method, c.target, "", strings.NewReader(c.body))
		if rec.Code != c.status || p.Code != c.code || c.code == "not-owner" && p.Owner != "host:1" {
			t.Errorf("%s %s %.40s: %d %+v, want %d %s", c.method, c.target, c.body, rec.Code, p, c.status, c.code)
		}
		if w.cursors["c"] != 1 {
			t.Errorf("%s %s: a refusal moved the cursor to %d", c.method, c.target, w.cursors["c"])
		}
	}
}

// TestClosedChains: the catalog answers for chains of epochs that are over.
func TestClosedChains(t *testing.T) {
	closed := catalog.ChainRow{Closed: true, NextSeq: 4, Consumers: []segment.Consumer{{Name: "c", Cursor: 1}}}
	const at = "/v1/shards/0/consumers"
	for _, c := range []struct {
		method, target, body string
		row                  catalog.ChainRow
		status               int
		text                 string
	}{
		{"GET", at + "?epoch=2", "", closed, 200, `"cursor":1,"lag":2`},
		{"POST", at + "/c/ack?epoch=2", `{"seq":3}`, closed, 200, `"cursor":3,"lag":0`},
		{"POST", at + "/c/pull?epoch=2", "", closed, 200, `"seq":2`},
		{"GET", "/v1/shards/0/rows?epoch=2", "", closed, 200, `"seq":1`},
		{"PUT", at + "/c?epoch=2", "", closed, 400, "closed"},
		{"DELETE", at + "/c?epoch=2", "", closed, 400, "closed"},
		{"POST", at + "/d/pull?epoch=2", "", closed, 404, "no-such-consumer"},
		{"POST", at + "/c/ack?epoch=2", `{"seq":3}`, catalog.ChainRow{Address: "host:9"}, http.StatusMisdirectedRequest, "host:9"},
		{"GET", at + "?epoch=3", "", closed, 400, "no chain"},
	} {
		b := &bucket{looks: [][]segment.Seq{{1, 2, 3}}, row: c.row}
		rec, _ := do(t, handler(&writer{}, b), c.method, c.target, "", strings.NewReader(c.body))
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.text) {
			t.Errorf("%s %s: %d %s, want %d with %s", c.method, c.target, rec.Code, rec.Body, c.status, c.text)
		}
	}
}

func TestProducers(t *testing.T) {
	for query, want := range map[string]localtier.Producer{"": {}, "?producer=p&sequence=7": {ID: "p", Sequence: 7}} {
		var got taken
		w := taking(&got)
		if rec, p := do(t, handler(w, nil), "POST", "/v1/streams/s/rows"+query, "", strings.NewReader("a")); rec.Code != 200 || w.producer != want {
			t.Errorf("%q: %d %+v, %+v", query, rec.Code, p, w.producer)
		}
	}
	for _, query := range []string{"?producer=p", "?sequence=1", "?producer=&sequence=1", "?producer=p&sequence=x", "?producer=p&sequence=-1", "?producer=p&sequence=%2B1"} {
		var got taken
		if _, p := do(t, handler(taking(&got), nil), "POST", "/v1/streams/s/rows"+query, "", strings.NewReader("a")); p.Status != 400 || got.calls != 0 {
			t.Errorf("%q: %+v", query, p)
		}
	}
}

// TestServedBy: a read says who answers it, and its owner the term of its rows' tokens.
func TestServedBy(t *testing.T) {
	for target, want := range map[string][2]string{
		"/v1/shards/0/rows":         {"owner_resident", "5"},
		"/v1/shards/1/rows":         {"non_owner_cold_load", ""},
		"/v1/shards/0/rows?epoch=2": {"non_owner_cold_load", ""},
		"/v1/streams/s/rows":        {"owner_resident", "5"},
	} {
		rec, _ := do(t, handler(&writer{reads: []step{local(nil, 1)}}, &bucket{looks: [][]segment.Seq{{}}}), "GET", target, "", nil)
		if got := [2]string{rec.Header().Get("Strandline-Served-By"), rec.Header().Get("Strandline-Term")}; rec.Code != 200 || got != want {
			t.Errorf("%s: %d %v, want %v", target, rec.Code, got, want)
		}
	}
	rec, _ := do(t, handler(nil, &bucket{looks: [][]segment.Seq{{1}}}), "GET", "/v1/streams/s/rows", "", nil)
	if got := rec.Header().Get("Strandline-Served-By"); got != "non_owner_cold_load" {
		t.Errorf("without a writer: %q", got)
	}
}

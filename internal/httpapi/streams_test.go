package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// ask makes one request of a site's handler, held against the document.
func ask(t *testing.T, s *site, owner bool, method, target, body string) (*httptest.ResponseRecorder, problem) {
	t.Helper()
	h := s.plain.handler()
	if owner {
		h = *s.routes.Load()
	}
	return do(t, h, method, target, jsonType, strings.NewReader(body))
}

func listed(t *testing.T, body *bytes.Buffer) (out []StreamOut) {
	t.Helper()
	for line := range bytes.Lines(body.Bytes()) {
		var l StreamOut
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// TestTrimAndDelete: on a real tier, through owner and reader.
func TestTrimAndDelete(t *testing.T) {
	s := newSite(t, 1)
	res := s.append("a", "1", "2", "3")
	// Not absorbed yet: the owner makes it so, a reader cannot.
	if _, p := ask(t, s, false, "POST", "/v1/streams/a/trim", `{"below":"2"}`); p.Code != "no-such-stream" {
		t.Errorf("a reader, of what only the owner has: %+v", p)
	}
	w, p := ask(t, s, true, "POST", "/v1/streams/a/trim", fmt.Sprintf(`{"below":%q}`, res.Token(res.First+1)))
	var got Trimmed
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.LiveFrom != (Position{1, res.First + 1}) || got.Stream != "a" || got.Deleted {
		t.Errorf("%+v %+v %v", got, p, err)
	}
	for body, code := range map[string]string{
		`{"below":2}`: "", `{"below":"2"}`: "", `{"below":"1.3"}`: "", `{"below":0}`: "invalid-request", `{"below":""}`: "invalid-request", `{"below":null}`: "invalid-request",
		`{}`: "invalid-request", ``: "invalid-request", `{"below":"2","x":1}`: "invalid-request", `{"below":"2"}{}`: "invalid-request", `[]`: "invalid-request",
		`{"below":"e1.t999.2"}`: "invalid-request", `{"below":"99"}`: "beyond-tip", `{"below":1e3}`: "invalid-request", `{"below":"` + strings.Repeat("1", 5000) + `"}`: "too-large",
	} {
		if w, p := ask(t, s, true, "POST", "/v1/streams/a/trim", body); p.Code != code {
			t.Errorf("%.40s: %d %+v", body, w.Code, p)
		}
	}
	if _, p := ask(t, s, true, "GET", "/v1/streams/a/rows?from=1", ""); p.Code != "trimmed" || p.First == nil || *p.First != 3 {
		t.Errorf("%+v", p)
	}
	// Rows that only the owner has are deleted at the owner only.
	s.append("a", "4")
	if _, p := ask(t, s, false, "DELETE", "/v1/streams/a", ""); p.Code != "not-owner" || p.Owner != s.owner.URL {
		t.Errorf("a reader's delete: %+v", p)
	}
	w, p = ask(t, s, true, "DELETE", "/v1/streams/a", "")
	got = Trimmed{}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.LiveFrom != (Position{1, 5}) || !got.Deleted {
		t.Errorf("%+v %+v %v", got, p, err)
	}
	for _, owner := range []bool{true, false} {
		if w, p := ask(t, s, owner, "GET", "/v1/streams/a/rows", ""); w.Code != 410 || p.Code != "deleted" || p.From != "1.5" {
			t.Errorf("owner %t: %d %+v", owner, w.Code, p)
		}
	}
	s.append("a", "5")
	if n := s.count("a"); n != 1 {
		t.Errorf("%d rows after appending again", n)
	}
	if _, p := ask(t, s, true, "DELETE", "/v1/streams/none", ""); p.Code != "no-such-stream" {
		t.Errorf("%+v", p)
	}
	readOnly := newServer(Deps{Reader: s.reader, Catalog: s.cat, Epoch: 1, Shards: 1}).handler()
	if w, p := do(t, readOnly, "DELETE", "/v1/streams/a", "", nil); w.Code != 421 || p.Owner == "" {
		t.Errorf("%+v", p)
	}
}

// TestList pages by name, with a prefix that may be a name itself.
func TestList(t *testing.T) {
	s := newSite(t, 1)
	for _, name := range []string{"b", "a/1", "a", "a/2", "ab", "a/3"} {
		s.append(name, "row")
	}
	s.flush()
	for q, want := range map[string]string{
		"": "[a a/1 a/2 a/3 ab b]", "?prefix=a": "[a a/1 a/2 a/3 ab]", "?prefix=a/": "[a/1 a/2 a/3]", "?prefix=a/&after=a/1": "[a/2 a/3]", "?prefix=a&limit=1": "[a]",
		"?limit=2": "[a a/1]", "?after=a/1&limit=2": "[a/2 a/3]", "?prefix=c": "[]", "?prefix=a&after=a": "[a/1 a/2 a/3 ab]", "?prefix=a&after=b": "[]", "?prefix=b": "[b]",
	} {
		w, _ := ask(t, s, false, "GET", "/v1/streams"+q, "")
		names := []string{}
		for _, l := range listed(t, w.Body) {
			names = append(names, l.Stream)
			if l.Deleted || l.Last.Epoch != 1 || l.Last.Seq == 0 || l.Created.IsZero() {
				t.Errorf("%+v", l)
			}
		}
		if fmt.Sprint(names) != want || w.Header().Get("Content-Type") != ndjsonType {
			t.Errorf("%s: %v, want %s", q, names, want)
		}
	}
	for _, q := range []string{"?limit=0", "?limit=10001", "?limit=x", "?prefix=a&prefix=b", "?order=x"} {
		if _, p := ask(t, s, false, "GET", "/v1/streams"+q, ""); p.Code != "invalid-request" {
			t.Errorf("%s: %+v", q, p)
		}
	}
}

// paged lists very many streams.
type paged struct {
	*bucket
	names []string
}

func (p paged) Streams(_ context.Context, after string, limit int) (out []catalog.Stream, err error) {
	for _, n := range p.names {
		if n > after && len(out) < limit {
			out = append(out, catalog.Stream{Name: n, LiveFrom: segment.Pos{Epoch: 1, Seq: 1}})
		}
	}
	return out, nil
}

// TestListPages: an answer goes over as many pages of the catalog as it has to.
func TestListPages(t *testing.T) {
	p := paged{bucket: &bucket{}}
	for i := range 2*listPage + 5 {
		p.names = append(p.names, fmt.Sprintf("s%06d", i))
	}
	h := newServer(Deps{Reader: p.bucket, Catalog: p, Epoch: 1, Shards: 1}).handler()
	w, _ := do(t, h, "GET", "/v1/streams?limit=10000", "", nil)
	if got := listed(t, w.Body); len(got) != len(p.names) || got[len(got)-1].Stream != p.names[len(p.names)-1] {
		t.Errorf("%d of %d", len(got), len(p.names))
	}
}

// TestReadyCheck: a process without a writer is ready while catalog and store answer in time;
// they are asked every few seconds at most. It lives all the while.
func TestReadyCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var answer error
		hang := false
		h := newServer(Deps{Reader: &bucket{}, Catalog: &bucket{}, ReadyCheck: func(ctx context.Context) error {
			asked++
			if hang {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return answer
		}}).handler()
		ready := func(want int) {
			t.Helper()
			if w, _ := do(t, h, "GET", "/readyz", "", nil); w.Code != want {
				t.Errorf("%d, want %d", w.Code, want)
			}
			if w, _ := do(t, h, "GET", "/healthz", "", nil); w.Code != 200 {
				t.Errorf("it does not live: %d", w.Code)
			}
		}
		for range 10 {
			ready(200)
		}
		if asked != 1 {
			t.Errorf("asked %d times at once", asked)
		}
		answer = errors.New("the catalog is away")
		ready(200)
		time.Sleep(checkEvery)
		ready(503)
		answer, hang = nil, true
		time.Sleep(checkEvery)
		began := time.Now()
		ready(503)
		if time.Since(began) != checkTime {
			t.Errorf("a check that hangs took %v", time.Since(began))
		}
		hang = false
		time.Sleep(checkEvery)
		ready(200)
	})
}

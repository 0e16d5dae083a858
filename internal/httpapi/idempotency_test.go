package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// keyed posts rows to the owner's server under a key.
func (s *site) keyed(stream, key, contentType, coding string, body []byte) (Appended, *problem) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.owner.URL+"/v1/streams/"+stream+"/rows", bytes.NewReader(body))
	s.must(err)
	req.Header.Set(idempotencyHeader, key)
	req.Header.Set("Content-Type", contentType)
	if coding != "" {
		req.Header.Set("Content-Encoding", coding)
	}
	res, err := http.DefaultClient.Do(req)
	s.must(err)
	defer func() { _ = res.Body.Close() }()
	var got Appended
	var p problem
	if res.StatusCode == http.StatusOK {
		s.must(json.NewDecoder(res.Body).Decode(&got))
		return got, nil
	}
	s.must(json.NewDecoder(res.Body).Decode(&p))
	return got, &p
}

func (s *site) count(stream string) (n int) {
	s.t.Helper()
	for _, err := range newServer(Deps{Writer: s.writer, Reader: s.reader, Catalog: s.cat, Epoch: s.topo.Epoch, Shards: s.topo.Shards}).rows(s.t.Context(), stream, segment.Pos{}, segment.Pos{}) {
		s.must(err)
		n++
	}
	return n
}

// TestIdempotencyKey: the same rows under a key are appended once, however they are written
// down, packed or asked for, at once or one after the other, and across a takeover.
func TestIdempotencyKey(t *testing.T) {
	s := newSite(t, 1)
	raw := []byte("one\ntwo\n")
	first, p := s.keyed("a", "k 1", "", "", raw)
	if p != nil || first.Rows != 2 {
		t.Fatalf("%+v %+v", first, p)
	}
	same := func(what string, got Appended, p *problem) {
		t.Helper()
		if p != nil || got.First != first.First || got.Last != first.Last || got.Rows != 2 {
			t.Errorf("%s: %+v %+v, first %+v", what, got, p, first)
		}
	}
	got, p := s.keyed("a", "k 1", "", "", raw)
	same("again", got, p)
	got, p = s.keyed("a", "k 1", "", "gzip", gzipped(t, raw))
	same("packed", got, p)
	got, p = s.keyed("a", "k 1", ndjsonType, "", []byte("{ \"payload\" : \"one\" }\n{\"payload_base64\":\"dHdv\"}"))
	same("as NDJSON", got, p)
	for what, body := range map[string]string{"other rows": "one\nTWO\n", "another number": "one\n", "split elsewhere": "onet\nwo\n", "none the less": "one\ntwo\n\n"} {
		if got, p := s.keyed("a", "k 1", "", "", []byte(body)); p == nil || p.Status != 409 || p.Code != "idempotency-key-reused" || p.Expect != nil || p.RequestID == "" {
			t.Errorf("%s: %+v %+v", what, got, p)
		}
	}
	if got, p := s.keyed("a", "k 1", ndjsonType, "", []byte(`{"payload":"one","ts":"2026-01-01T00:00:00Z"}`+"\n"+`{"payload":"two"}`)); p == nil || p.Code != "idempotency-key-reused" {
		t.Errorf("another time: %+v %+v", got, p)
	}
	if got, p := s.keyed("b", "k 1", "", "", []byte("of b\n")); p != nil || got.Stream != "b" {
		t.Errorf("another stream's key: %+v %+v", got, p)
	}
	if s.count("a") != 2 {
		t.Fatalf("%d rows, want 2", s.count("a"))
	}
	s.takeover(true)
	got, p = s.keyed("a", "k 1", "", "", raw)
	same("after a takeover", got, p)
	if got.Term <= first.Term || s.count("a") != 2 {
		t.Errorf("term %d after %d, %d rows", got.Term, first.Term, s.count("a"))
	}
	// What a lost disk took along, it took with its key.
	lost, p := s.keyed("a", "k 2", "", "", []byte("lost\n"))
	if p != nil {
		t.Fatal(p)
	}
	s.takeover(false)
	if again, p := s.keyed("a", "k 2", "", "", []byte("lost\n")); p != nil || again.Term <= lost.Term || s.count("a") != 3 {
		t.Errorf("%+v %+v: %d rows, want 3", again, p, s.count("a"))
	}
	// The next epoch's chain is another, and knows no keys of this one: the documented end of the window.
	s.reshard(1)
	if again, p := s.keyed("a", "k 1", "", "", raw); p != nil || again.Epoch != 2 || s.count("a") != 5 {
		t.Errorf("%+v %+v: %d rows, want 5", again, p, s.count("a"))
	}
}

// TestIdempotencyKeyAtOnce: of many requests under one key, all get the one result.
func TestIdempotencyKeyAtOnce(t *testing.T) {
	s := newSite(t, 1)
	var mu sync.Mutex
	var all sync.WaitGroup
	results := map[segment.Seq]int{}
	refused := 0
	for i := range 40 {
		all.Go(func() {
			body := "the row\n"
			if i%4 == 3 {
				body = "another row\n"
			}
			got, p := s.keyed("a", "key", "", "", []byte(body))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case p == nil:
				results[got.First]++
			case p.Code == "idempotency-key-reused":
				refused++
			default:
				t.Errorf("%+v", p)
			}
		})
	}
	all.Wait()
	if len(results) != 1 || s.count("a") != 1 || refused != 10 && refused != 30 {
		t.Errorf("results %v, %d rows, %d refused", results, s.count("a"), refused)
	}
}

// TestIdempotencyWindow: a key is remembered until as many others were used since, and
// forgotten then: a retry's rows are there twice. The window is documented so.
func TestIdempotencyWindow(t *testing.T) {
	s := newSite(t, 1)
	append1 := func(key string) localtier.Result {
		rows := []segment.Row{{Payload: []byte(key), Time: noTime}}
		p := producerOfKey("a", key, rows)
		rows[0].Time = 1
		res, err := s.writer.AppendAs(t.Context(), p, "a", rows, localtier.AckLocal)
		s.must(err)
		return res
	}
	first := append1("first")
	var g sync.WaitGroup
	others := func(from, to int) {
		const each = 50
		for i := from; i < to; i += each {
			g.Go(func() {
				for k := i; k < min(i+each, to); k++ {
					append1(fmt.Sprint("other ", k))
				}
			})
		}
		g.Wait()
	}
	others(0, segment.MaxProducers-1)
	if got, p := s.keyed("a", "first", "", "", []byte("first")); p != nil || got.First != first.First {
		t.Fatalf("forgotten too early: %+v %+v, first %+v", got, p, first)
	}
	others(segment.MaxProducers, 2*segment.MaxProducers)
	got, p := s.keyed("a", "first", "", "", []byte("first"))
	if p != nil || got.First <= first.First {
		t.Errorf("remembered beyond the window: %+v %+v", got, p)
	}
}

// TestIdempotencyHeader: what is no key is refused, and a key beside a producer.
func TestIdempotencyHeader(t *testing.T) {
	var got taken
	w := taking(&got)
	h := handler(w, nil)
	for key, ok := range map[string]bool{"a": true, strings.Repeat("k", 200): true, strings.Repeat("k", 201): false, "ä": false, "a\x7f": false, "a\tb": false} {
		w.producer = localtier.Producer{}
		_, p := sent(t, h, []byte("a"), map[string]string{idempotencyHeader: key})
		if (p.Code == "") != ok || ok != (w.producer.ID != "") {
			t.Errorf("%q: %+v, producer %+v", key, p, w.producer)
		}
		if ok && (len(w.producer.ID) > 18 || segment.CheckProducer(w.producer.ID) != nil || w.producer.Sequence >= 1<<63) {
			t.Errorf("producer %+v", w.producer)
		}
	}
	r, _ := http.NewRequest("POST", "/v1/streams/s/rows?producer=p&sequence=1", strings.NewReader("a"))
	r.Header[idempotencyHeader] = []string{"a", "b"}
	if _, err := idempotencyKey(r.Header); err == nil {
		t.Error("two keys")
	}
	r.Header.Set(idempotencyHeader, "a")
	r.SetPathValue("stream", "s")
	if _, err := appendingOf(r); err == nil {
		t.Error("a key beside a producer")
	}
}

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// taken is what the writer was given.
type taken struct {
	stream string
	rows   []segment.Row
	ack    localtier.Ack
	calls  int
}

func taking(got *taken) *writer {
	return &writer{append: func(_ context.Context, stream string, rows []segment.Row, ack localtier.Ack) (localtier.Result, error) {
		got.stream, got.rows, got.ack = stream, rows, ack
		got.calls++
		return localtier.Result{Epoch: 1, Shard: 2, Term: 3, First: 10, Last: 10 + segment.Seq(len(rows)) - 1}, nil
	}}
}

const ndjson = "application/x-ndjson; charset=utf-8"

func TestAppendBodies(t *testing.T) {
	ts := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, c := range map[string]struct {
		kind, body string
		rows       []segment.Row // Time 0: any
		code       string
	}{
		"raw":                 {"", "a\nb c\n\n\xff\x00\n", []segment.Row{{Payload: []byte("a")}, {Payload: []byte("b c")}, {}, {Payload: []byte("\xff\x00")}}, ""},
		"raw, no newline":     {"text/plain", "a\nb", []segment.Row{{Payload: []byte("a")}, {Payload: []byte("b")}}, ""},
		"raw JSON":            {"text/plain; charset=utf-8", `{"a":1}`, []segment.Row{{Payload: []byte(`{"a":1}`)}}, ""},
		"octets":              {"application/octet-stream", "a\n", []segment.Row{{Payload: []byte("a")}}, ""},
		"curl's own":          {"application/x-www-form-urlencoded", "a\n", []segment.Row{{Payload: []byte("a")}}, ""},
		"CSV":                 {"text/csv", "a,b\n", []segment.Row{{Payload: []byte("a,b")}}, ""},
		"a JSON document":     {"application/json", `{"payload":"a"}`, nil, "unsupported-media-type"},
		"a JSON text":         {"text/json", `{"payload":"a"}`, nil, "unsupported-media-type"},
		"another NDJSON":      {"application/ndjson", `{"payload":"a"}`, nil, "unsupported-media-type"},
		"a form with files":   {"multipart/form-data; boundary=x", "a", nil, "unsupported-media-type"},
		"no type at all":      {"rows", "a", nil, "unsupported-media-type"},
		"one empty row":       {"", "\n", []segment.Row{{}}, ""},
		"empty":               {"", "", nil, "invalid-request"},
		"empty NDJSON":        {ndjson, "", nil, "invalid-request"},
		"NDJSON":              {ndjson, `{"payload":"ä\n"}` + "\n" + `{"payload_base64":"/wA=","ts":"2026-01-02T03:04:05.000000006Z","txn":"t1"}`, []segment.Row{{Payload: []byte("ä\n")}, {Payload: []byte{0xff, 0}, Time: ts.UnixNano(), Txn: []byte("t1")}}, ""},
		"NDJSON empty rows":   {ndjson, `{"payload":""}` + "\n" + `{"payload_base64":""}` + "\n", []segment.Row{{}, {}}, ""},
		"NDJSON, a pair":      {ndjson, `{"payload":"\ud83d\ude00 \ufffd �"}`, []segment.Row{{Payload: []byte("😀 \ufffd \ufffd")}}, ""},
		"NDJSON, binary txn":  {ndjson, `{"payload":"a","txn_base64":"/wA="}`, []segment.Row{{Payload: []byte("a"), Txn: []byte{0xff, 0}}}, ""},
		"two txns":            {ndjson, `{"payload":"a","txn":"t","txn_base64":"/wA="}`, nil, "invalid-request"},
		"half a pair":         {ndjson, `{"payload":"\ud83d"}`, nil, "invalid-request"},
		"not UTF-8":           {ndjson, "{\"payload\":\"\xff\"}", nil, "invalid-request"},
		"two on a line":       {ndjson, `{"payload":"a"} {"payload":"b"}`, nil, "invalid-request"},
		"something behind":    {ndjson, `{"payload":"a"}x`, nil, "invalid-request"},
		"an empty line":       {ndjson, "{\"payload\":\"a\"}\n\n{\"payload\":\"a\"}", nil, "invalid-request"},
		"both payloads":       {ndjson, `{"payload":"a","payload_base64":"YQ=="}`, nil, "invalid-request"},
		"no payload":          {ndjson, `{"txn":"a"}`, nil, "invalid-request"},
		"null":                {ndjson, `{"payload":null}`, nil, "invalid-request"},
		"unknown field":       {ndjson, `{"payload":"a","key":"b"}`, nil, "invalid-request"},
		"no object":           {ndjson, `["a"]`, nil, "invalid-request"},
		"bad base64":          {ndjson, `{"payload_base64":"*"}`, nil, "invalid-request"},
		"bad time":            {ndjson, `{"payload":"a","ts":"yesterday"}`, nil, "invalid-request"},
		"a time beyond ours":  {ndjson, `{"payload":"a","ts":"9999-01-01T00:00:00Z"}`, nil, "invalid-request"},
		"a line breaks later": {ndjson, "{\"payload\":\"a\"}\n{", nil, "invalid-request"},
		"too many rows":       {"", strings.Repeat("\n", MaxRows+1), nil, "too-large"},
	} {
		t.Run(name, func(t *testing.T) {
			var got taken
			w, p := do(t, handler(taking(&got), nil), "POST", "/v1/streams/s/rows", c.kind, strings.NewReader(c.body))
			if p.Code != c.code || (c.code != "") != (got.calls == 0) {
				t.Fatalf("%d %q: want code %q; %d calls", w.Code, w.Body, c.code, got.calls)
			}
			if c.code != "" {
				return
			}
			var res Appended
			if err := json.Unmarshal(w.Body.Bytes(), &res); err != nil || res != (Appended{"s", 1, 2, 3, 10, 10 + segment.Seq(len(c.rows)) - 1, len(c.rows), "e1.t3.10", fmt.Sprint("e1.t3.", 9+len(c.rows))}) {
				t.Fatalf("%s, %v", w.Body, err)
			}
			if len(got.rows) != len(c.rows) {
				t.Fatalf("%d rows, want %d", len(got.rows), len(c.rows))
			}
			for i, want := range c.rows {
				g := got.rows[i]
				if string(g.Payload) != string(want.Payload) || string(g.Txn) != string(want.Txn) || want.Time != 0 && g.Time != want.Time || g.Time == 0 {
					t.Errorf("row %d: %+v, want %+v", i, g, want)
				}
			}
		})
	}
}

func TestAppendTooLarge(t *testing.T) {
	var got taken
	h := handler(taking(&got), nil)
	for _, sized := range []bool{true, false} {
		body := io.Reader(strings.NewReader(strings.Repeat("x", MaxBodyBytes+1)))
		if !sized {
			body = io.MultiReader(body) // no Content-Length
		}
		if w, p := do(t, h, "POST", "/v1/streams/s/rows", "", body); w.Code != http.StatusRequestEntityTooLarge || p.Code != "too-large" {
			t.Fatalf("%d %+v", w.Code, p)
		}
	}
	if w, _ := do(t, h, "POST", "/v1/streams/s/rows", "", strings.NewReader(strings.Repeat("x", MaxBodyBytes))); w.Code != 200 || got.calls != 1 {
		t.Fatalf("the largest: %d, %d calls", w.Code, got.calls)
	}
}

func TestAppendAck(t *testing.T) {
	for query, want := range map[string]localtier.Ack{"": localtier.AckDefault, "?ack=local": localtier.AckLocal, "?ack=shared": localtier.AckShared} {
		var got taken
		if w, _ := do(t, handler(taking(&got), nil), "POST", "/v1/streams/s/rows"+query, "", strings.NewReader("a")); w.Code != 200 || got.ack != want {
			t.Errorf("%q: %d, %q", query, w.Code, got.ack)
		}
	}
	var got taken
	if _, p := do(t, handler(taking(&got), nil), "POST", "/v1/streams/s/rows?ack=none", "", strings.NewReader("a")); p.Code != "invalid-request" || got.calls != 0 {
		t.Errorf("a bad ack: %+v", p)
	}
	if w, p := do(t, handler(nil, &bucket{}), "POST", "/v1/streams/s/rows", "", strings.NewReader("a")); w.Code != 501 || p.Code != "read-only" {
		t.Errorf("no writer: %+v", p)
	}
}

// TestNames: a stream's name comes through a real server byte for byte.
func TestNames(t *testing.T) {
	var got taken
	b := &bucket{looks: [][]segment.Seq{{}}}
	srv := httptest.NewServer(handler(taking(&got), b))
	defer srv.Close()
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for name, code := range map[string]int{
		"a": 200, "a/b": 200, "/": 200, "a//b": 200, "%": 200, "%2F": 200, "..": 200, ".": 200, "a/../b": 200,
		"ä ö😀": 200, "\x00": 200, "a\nb": 200, "?x=1#y": 200, "a+b": 200, strings.Repeat("n", 200): 200,
		strings.Repeat("n", 201): 400, "~": 400, "~audit/1": 400, "~x": 400, "\xff": 400,
	} {
		path := "/v1/streams/" + strings.ReplaceAll(url.PathEscape(name), ".", "%2E") + "/rows"
		got = taken{}
		res, err := client.Post(srv.URL+path, "", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != code || code == 200 && got.stream != name || code != 200 && (got.calls != 0 || !strings.Contains(string(body), `"invalid-name"`)) {
			t.Errorf("%q: %d for stream %q: %s", name, res.StatusCode, got.stream, body)
		}
		if res, err = client.Get(srv.URL + path); err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if readable := code == 200 || name == "~audit/1"; readable != (res.StatusCode == 200) {
			t.Errorf("read %q: %d", name, res.StatusCode)
		}
	}
}

// TestCodes: the codes are part of the interface: what is here never changes.
func TestCodes(t *testing.T) {
	want := map[string]int{
		"busy": 503, "request-timeout": 408, "unsupported-encoding": 415, "unsupported-media-type": 415, "not-acceptable": 406, "read-only": 501,
		"idempotency-key-reused": 409, "chain-ended": 410, "unauthenticated": 401,
		"epoch-over": 503, "sequence": 409, "no-such-consumer": 404, "too-many-consumers": 409, "forked": 409,
		"invalid-name": 400, "invalid-request": 400, "too-large": 413, "not-owner": 421, "backpressure": 503, "fenced": 503,
		"lease-lost": 503, "closing": 503, "poisoned": 503, "halted": 503, "chain-closed": 503, "rolled-back": 503, "disk-full": 507,
		"trimmed": 410, "deleted": 410, "lost": 500, "corrupt": 500, "no-such-stream": 404, "nothing-to-explain": 404, "beyond-tip": 409,
		"catalog-unavailable": 503, "store-denied": 500, "store-unavailable": 503, "timeout": 503, "cancelled": 503,
	}
	seen := map[string]bool{}
	for _, k := range kinds {
		w := &writer{append: func(context.Context, string, []segment.Row, localtier.Ack) (localtier.Result, error) {
			return localtier.Result{}, fmt.Errorf("doing something: %w", k.kind)
		}}
		rec, p := do(t, handler(w, nil), "POST", "/v1/streams/s/rows", "", strings.NewReader("a"))
		if rec.Code != want[k.code] || p.Code != k.code || p.Title == "" || p.Detail == "" {
			t.Errorf("%v: %d %+v, want %d", k.kind, rec.Code, p, want[k.code])
		}
		seen[k.code] = true
	}
	for code := range want {
		if !seen[code] {
			t.Errorf("no error answers %s any more", code)
		}
	}
	w := &writer{append: func(context.Context, string, []segment.Row, localtier.Ack) (localtier.Result, error) {
		return localtier.Result{}, errors.New("a fault without a kind")
	}}
	if rec, p := do(t, handler(w, nil), "POST", "/v1/streams/s/rows", "", strings.NewReader("a")); rec.Code != 500 || p.Code != "internal" {
		t.Errorf("%+v", p)
	}
}

func TestAppendRefusals(t *testing.T) {
	var refusal error
	h := handler(&writer{append: func(context.Context, string, []segment.Row, localtier.Ack) (localtier.Result, error) {
		return localtier.Result{}, refusal
	}}, nil)
	post := func(err error) (*httptest.ResponseRecorder, problem) {
		refusal = fmt.Errorf("append: %w", err)
		return do(t, h, "POST", "/v1/streams/s/rows", "", strings.NewReader("a"))
	}
	if w, p := post(&localtier.NotOwnerError{Stream: "s", Shard: 3, Owner: "host:1"}); w.Code != 421 || p.Owner != "host:1" {
		t.Errorf("not the owner: %+v", p)
	}
	if w, p := post(&localtier.SequenceError{Producer: "p", Sequence: 9, Expect: 7}); w.Code != 409 || p.Code != "sequence" || p.Expect == nil || *p.Expect != 7 {
		t.Errorf("a sequence: %+v", p)
	}
	part := &localtier.PartialError{Result: localtier.Result{Epoch: 1, First: 7, Last: 9}, Rows: 5, Durable: 3, Err: &localtier.BackpressureError{Full: true}}
	if w, p := post(part); w.Code != 507 || p.Code != "disk-full" || p.Durable == nil || *p.Durable != (durable{3, 1, 7, 9}) || !strings.Contains(w.Body.String(), `"durable":{"rows":3,"epoch":1,"first":7,"last":9}`) {
		t.Errorf("half of an append: %s", w.Body)
	}
	if w, p := post(&localtier.BackpressureError{Full: true}); p.Durable != nil || strings.Contains(w.Body.String(), "durable") {
		t.Errorf("nothing of an append: %s", w.Body)
	}
	if w, p := post(&localtier.EpochError{Epoch: 1, State: "closing", RetryAfter: 2 * time.Second}); w.Header().Get("Retry-After") != "2" || p.Code != "epoch-over" {
		t.Errorf("an epoch that is over: %+v, Retry-After %q", p, w.Header().Get("Retry-After"))
	}
	for wait, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", 2500 * time.Millisecond: "3", time.Minute: "60"} {
		if w, p := post(&localtier.BackpressureError{RetryAfter: wait, Full: true}); w.Header().Get("Retry-After") != want || p.Code != "disk-full" || p.Status != http.StatusInsufficientStorage {
			t.Errorf("no room, wait %v: %+v, Retry-After %q", wait, p, w.Header().Get("Retry-After"))
		}
		if w, p := post(&localtier.BackpressureError{RetryAfter: wait}); w.Header().Get("Retry-After") != want || p.Code != "backpressure" {
			t.Errorf("wait %v: Retry-After %q", wait, w.Header().Get("Retry-After"))
		}
	}
}

func TestRoutes(t *testing.T) {
	w := &writer{}
	h := handler(w, nil)
	for _, c := range []struct {
		method, target string
		status         int
		code           string
	}{
		{"GET", "/", 404, "no-such-route"},
		{"GET", "/v1/streams/s", 405, "no-such-method"},
		{"GET", "/v1/nothing", 404, "no-such-route"},
		{"GET", "/v1/status/", 404, "no-such-route"},
		{"GET", "/v1/./status", 404, "no-such-route"},
		{"GET", "/v1/streams/../status", 404, "no-such-route"},
		{"GET", "//v1/status", 404, "no-such-route"},
		{"GET", "/v1/status?x=1", 400, "invalid-request"},
		{"GET", "/v1/status?%zz", 400, "invalid-request"},
		{"GET", "/v1/streams/s/rows?from=1&from=2", 400, "invalid-request"},
		{"DELETE", "/v1/streams/s/rows", 405, "no-such-method"},
		{"POST", "/v1/status", 405, "no-such-method"},
		{"GET", "/v1/status", 200, ""},
		{"GET", "/v1/shards", 200, ""},
		{"POST", "/v1/shards", 405, "no-such-method"},
		{"GET", "/healthz", 200, ""},
		{"GET", "/readyz", 200, ""},
	} {
		if rec, p := do(t, h, c.method, c.target, "", nil); rec.Code != c.status || p.Code != c.code {
			t.Errorf("%s %s: %d %q", c.method, c.target, rec.Code, rec.Body)
		} else if next, ok := map[string]string{"no-such-route": "/v1/openapi.json", "no-such-method": rec.Header().Get("Allow")}[c.code]; ok && !strings.Contains(p.Detail, next) {
			t.Errorf("%s %s: %q does not say what to do", c.method, c.target, p.Detail)
		}
	}
	w.ready = localtier.ErrFenced
	if rec, p := do(t, h, "GET", "/readyz", "", nil); rec.Code != 503 || p.Code != "not-ready" {
		t.Errorf("%d %+v", rec.Code, p)
	}
	bad := Handler(Deps{Status: func(context.Context) (any, error) { return nil, errors.New("no") }})
	if rec, p := do(t, bad, "GET", "/v1/status", "", nil); rec.Code != 500 || p.Code != "internal" {
		t.Errorf("%d %+v", rec.Code, p)
	}
}

// TestAdmission: more requests than may be under way are told to come back, and
// probes are still answered.
func TestAdmission(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	srv := newServer(Deps{Epoch: 1, Shards: 1, Writer: &writer{append: func(context.Context, string, []segment.Row, localtier.Ack) (localtier.Result, error) {
		entered <- struct{}{}
		<-release
		return localtier.Result{}, nil
	}}})
	h := srv.handler()
	done := make(chan int)
	run := func(n int, body string) {
		for range n {
			go func() {
				r := httptest.NewRequest("POST", "/v1/streams/s/rows", strings.NewReader(body))
				r.ContentLength = -1
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				done <- w.Code
			}()
		}
		for range n {
			<-entered
		}
	}
	finish := func(n int) {
		for range n {
			release <- struct{}{}
			if code := <-done; code != 200 {
				t.Errorf("admitted, then %d", code)
			}
		}
	}
	run(MaxRequests, "a")
	if _, p := do(t, h, "POST", "/v1/streams/s/rows", "", strings.NewReader("a")); p.Code != "busy" {
		t.Errorf("%+v", p)
	}
	if w, _ := do(t, h, "GET", "/healthz", "", nil); w.Code != 200 {
		t.Errorf("a busy process is not a dead one: %d", w.Code)
	}
	finish(MaxRequests)
	// Bodies count by what came of them, with their rows; what is announced and does not come
	// takes no room.
	srv.Bodies.free = semaphore.NewWeighted(8 << 20)
	big := strings.Repeat(strings.Repeat("a", 1023)+"\n", 1500)
	run(2, big)
	if _, p := do(t, h, "POST", "/v1/streams/s/rows", "", strings.NewReader(big)); p.Code != "busy" {
		t.Errorf("%+v", p)
	}
	finish(2)
	silent, speak := io.Pipe()
	slow := httptest.NewRequest("POST", "/v1/streams/s/rows", silent)
	slow.ContentLength = MaxBodyBytes
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, slow)
		done <- w.Code
	}()
	_, _ = speak.Write([]byte("a"))
	run(1, big)
	finish(1)
	_ = speak.Close()
	<-entered
	finish(1)
}

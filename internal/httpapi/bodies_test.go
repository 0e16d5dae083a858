package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

func gzipped(t testing.TB, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(body)
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t testing.TB, body []byte, opts ...zstd.EOption) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	return z.EncodeAll(body, nil)
}

// sent makes one request with headers.
func sent(t testing.TB, h http.Handler, body []byte, header map[string]string) (*httptest.ResponseRecorder, problem) {
	t.Helper()
	r := httptest.NewRequest("POST", "/v1/streams/s/rows", bytes.NewReader(body))
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	held(t, r, body, w.Code, w.Header(), w.Body.Bytes())
	var p problem
	if w.Code >= 400 {
		p = mustProblem(t, w)
	}
	return w, p
}

// TestPackedBodies: a packed body is the rows that it holds; whatever it unpacks to is bounded.
func TestPackedBodies(t *testing.T) {
	rows := []byte("a\nb\nc\n")
	wide := bytes.Repeat([]byte("0123456789abcdef\n"), 1<<20)                // 17 MiB
	bomb := bytes.Repeat([]byte{0}, MaxBodyBytes+1)                          // a row too large by one byte
	many := bytes.Repeat([]byte{'\n'}, MaxRows+1)                            // small, too many rows
	twice := append(gzipped(t, rows[:2]), gzipped(t, rows[2:])...)           // two members are one body
	long := bytes.Repeat(append(bytes.Repeat([]byte("x"), 63), '\n'), 1<<17) // 8 MiB
	for name, c := range map[string]struct {
		coding string
		body   []byte
		rows   int
		code   string
	}{
		"gzip":                   {"gzip", gzipped(t, rows), 3, ""},
		"x-gzip, two members":    {"X-GZIP", twice, 3, ""},
		"zstd":                   {"zstd", zstded(t, rows), 3, ""},
		"zstd, widest window":    {"zstd", zstded(t, long, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(maxWindow)), 1 << 17, ""},
		"identity":               {"identity", rows, 3, ""},
		"gzip bomb":              {"gzip", gzipped(t, bomb), 0, "too-large"},
		"zstd bomb":              {"zstd", zstded(t, bomb), 0, "too-large"},
		"too many rows, packed":  {"zstd", zstded(t, many), 0, "too-large"},
		"zstd window too wide":   {"zstd", zstded(t, wide, zstd.WithWindowSize(64<<20)), 0, "invalid-request"},
		"gzip cut":               {"gzip", gzipped(t, rows)[:15], 0, "invalid-request"},
		"gzip, trailing garbage": {"gzip", append(gzipped(t, rows), "xyz"...), 0, "invalid-request"},
		"gzip damaged":           {"gzip", damagedAt(gzipped(t, rows), 12), 0, "invalid-request"},
		"zstd cut":               {"zstd", zstded(t, rows)[:8], 0, "invalid-request"},
		"not gzip":               {"gzip", rows, 0, "invalid-request"},
		"not zstd":               {"zstd", rows, 0, "invalid-request"},
		"empty gzip":             {"gzip", nil, 0, "invalid-request"},
		"twice packed":           {"gzip, zstd", gzipped(t, rows), 0, "unsupported-encoding"},
		"br":                     {"br", rows, 0, "unsupported-encoding"},
	} {
		t.Run(name, func(t *testing.T) {
			var got taken
			srv := newServer(Deps{Writer: taking(&got), Epoch: 1, Shards: 1})
			w, p := sent(t, srv.handler(), c.body, map[string]string{"Content-Encoding": c.coding})
			if p.Code != c.code || c.code == "" && len(got.rows) != c.rows || c.code != "" && got.calls != 0 {
				t.Fatalf("%d %+v: %d rows", w.Code, p, len(got.rows))
			}
			if (c.code == "unsupported-encoding") != (w.Header().Get("Accept-Encoding") != "") {
				t.Errorf("Accept-Encoding %q", w.Header().Get("Accept-Encoding"))
			}
			if !srv.Bodies.free.TryAcquire(MaxBodiesBytes) {
				t.Error("room is held after the answer")
			}
		})
	}
}

func damagedAt(b []byte, i int) []byte {
	b[i] ^= 0x55
	return b
}

// TestPackedRoom: what unpacking takes counts before it is taken.
func TestPackedRoom(t *testing.T) {
	var got taken
	srv := newServer(Deps{Writer: taking(&got), Epoch: 1, Shards: 1})
	h := srv.handler()
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // one row of 1 MiB
	srv.Bodies.free = semaphore.NewWeighted(1 << 20)
	if _, p := sent(t, h, zstded(t, body), map[string]string{"Content-Encoding": "zstd"}); p.Code != "busy" {
		t.Errorf("a window beyond the room: %+v", p)
	}
	if _, p := sent(t, h, gzipped(t, body), map[string]string{"Content-Encoding": "gzip"}); p.Code != "busy" {
		t.Errorf("a body that grows beyond the room: %+v", p)
	}
	srv.Bodies.free = semaphore.NewWeighted(4 << 20)
	if _, p := sent(t, h, gzipped(t, body), map[string]string{"Content-Encoding": "gzip"}); p.Code != "" {
		t.Errorf("%+v", p)
	}
}

// TestSlowBody: a body that trickles is refused in time, one that moves is not, and neither
// its deadline nor its client's leaving outlives it.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got taken
		l := newPipes()
		srv := NewServer(newServer(Deps{Writer: taking(&got), Epoch: 1, Shards: 1}).handler(), discard())
		go func() { _ = srv.Serve(l) }()
		defer func() { _ = srv.Close() }()
		send := func(size int, each time.Duration, chunk int) (int, string) {
			conn := l.dial()
			var sending sync.WaitGroup
			defer sending.Wait()
			defer func() { _ = conn.Close() }()
			sending.Go(func() {
				fmt.Fprintf(conn, "POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
				for n := 0; n < size; n += chunk {
					if _, err := conn.Write(bytes.Repeat([]byte("a"), min(chunk, size-n))); err != nil {
						return
					}
					time.Sleep(each)
				}
			})
			head := make([]byte, 4096)
			n, _ := conn.Read(head)
			var code int
			_, _ = fmt.Sscanf(string(head[:n]), "HTTP/1.1 %d", &code)
			return code, string(head[:n])
		}
		began := time.Now()
		if code, answer := send(100, time.Second, 1); code != 408 || !strings.Contains(answer, `"request-timeout"`) || time.Since(began) > 2*bodyGrace {
			t.Errorf("a byte a second: %d after %v: %s", code, time.Since(began), answer)
		}
		began = time.Now()
		if code, answer := send(8<<20, time.Second, bodyRate*2); code != 200 || time.Since(began) < bodyGrace {
			t.Errorf("twice the rate: %d after %v: %s", code, time.Since(began), answer)
		}
		synctest.Wait()
	})
}

// TestSlowAnswer: the deadline of a body ends with it: an append that waits for its
// acknowledgement for longer is not taken for a client that went away.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		srv := NewServer(handler(&writer{append: func(ctx context.Context, _ string, _ []segment.Row, _ localtier.Ack) (localtier.Result, error) {
			select {
			case <-time.After(3 * bodyGrace):
				return localtier.Result{Epoch: 1, First: 1, Last: 1}, nil
			case <-ctx.Done():
				return localtier.Result{}, context.Cause(ctx)
			}
		}}, nil), discard())
		go func() { _ = srv.Serve(l) }()
		conn := l.dial()
		_, _ = fmt.Fprint(conn, "POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na")
		head := make([]byte, 4096)
		n, err := conn.Read(head)
		if err != nil || !strings.HasPrefix(string(head[:n]), "HTTP/1.1 200") {
			t.Errorf("%q, %v", head[:n], err)
		}
		_ = conn.Close()
		_ = srv.Close()
		synctest.Wait()
	})
}

// pipes is a listener in memory, so that time may be virtual.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	a, b := net.Pipe()
	p.conns <- b
	return a
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// TestUnaryTime: an answer that is one document comes in time, or says that it does not.
func TestUnaryTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handler(&writer{append: func(ctx context.Context, _ string, _ []segment.Row, _ localtier.Ack) (localtier.Result, error) {
			<-ctx.Done()
			return localtier.Result{}, fmt.Errorf("the rows may still become durable: %w", context.Cause(ctx))
		}}, nil)
		began := time.Now()
		if _, p := sent(t, h, []byte("a"), nil); p.Code != "timeout" || time.Since(began) != unaryTime {
			t.Errorf("%+v after %v", p, time.Since(began))
		}
	})
}

// TestRequestIDs: an answer has its request's id, problems repeat it, and what is no id is
// replaced.
func TestRequestIDs(t *testing.T) {
	h := handler(nil, &bucket{looks: [][]segment.Seq{nil}})
	for given, keep := range map[string]bool{
		"abc-1.2_X": true, strings.Repeat("a", 128): true, "": false, strings.Repeat("a", 129): false, "a b": false, "ä": false, "a\nb": false, "<x>": false,
	} {
		r := httptest.NewRequest("GET", "/v1/streams/none/rows", nil)
		if given != "" {
			r.Header[requestHeader] = []string{given}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		p := mustProblem(t, w)
		if id := w.Header().Get(requestHeader); id == "" || (id == given) != keep || p.RequestID != id {
			t.Errorf("%q became %q, the problem has %q", given, id, p.RequestID)
		}
	}
	r := httptest.NewRequest("GET", "/healthz", nil)
	r.Header[requestHeader] = []string{"a", "b"}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if id := w.Header().Get(requestHeader); len(id) != 36 {
		t.Errorf("two ids became %q", id)
	}
}

// TestMedia: types that are not taken or not to be had, and other sites' pages.
func TestMedia(t *testing.T) {
	h := newServer(Deps{Reader: &bucket{looks: [][]segment.Seq{{}}}, Catalog: &bucket{}, Epoch: 1, Shards: 1}).handler()
	for _, c := range []struct {
		method, target, name, value, code string
	}{
		{"GET", "/v1/shards", "Accept", "text/html", "not-acceptable"},
		{"GET", "/v1/shards", "Accept", "text/html, */*;q=0.1", ""},
		{"GET", "/v1/shards", "Accept", "application/*", ""},
		{"GET", "/v1/shards", "Accept", "application/json;q=0", "not-acceptable"},
		{"GET", "/v1/streams/s/rows", "Accept", "text/event-stream", "not-acceptable"},
		{"GET", "/v1/streams/s/rows", "Accept", "application/x-ndjson", ""},
		{"GET", "/v1/streams", "Accept", "application/x-ndjson", ""},
		{"GET", "/v1/openapi.yaml", "Accept", "application/yaml", ""},
		{"GET", "/v1/streams/s/rows?follow=true", "Accept", "text/html", "not-acceptable"},
		{"POST", "/v1/shards/0/consumers/c/ack", "Content-Type", "text/xml", "unsupported-media-type"},
		{"POST", "/v1/flush", "Sec-Fetch-Site", "cross-site", "cross-origin"},
		{"POST", "/v1/flush", "Sec-Fetch-Site", "same-origin", ""},
		{"POST", "/v1/flush", "Origin", "http://evil.example", "cross-origin"},
		{"GET", "/v1/shards", "Sec-Fetch-Site", "cross-site", ""},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Header.Set(c.name, c.value)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		code := ""
		if w.Code >= 400 {
			code = mustProblem(t, w).Code
		}
		if code != c.code {
			t.Errorf("%s %s with %s: %s: %d %q, want %q", c.method, c.target, c.name, c.value, w.Code, code, c.code)
		}
	}
}

// TestGuarded: Guard is asked with each route's scope, within Wrap, and open routes without.
func TestGuarded(t *testing.T) {
	var asked []string
	d := Deps{
		Reader: &bucket{looks: [][]segment.Seq{{}}}, Catalog: &bucket{}, Epoch: 1, Shards: 1,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "# metrics\n") }),
		Logs:    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]any{}) }),
		Guard: func(scope string, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, scope+" "+requestID(w))
				next.ServeHTTP(w, r)
			})
		},
		Wrap: func(pattern string, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, pattern)
				next.ServeHTTP(w, r)
			})
		},
	}
	h := Handler(d)
	for target, want := range map[string]string{
		"GET /metrics": "GET /metrics,read id", "POST /v1/logs": "POST /v1/logs,append id", "GET /healthz": "GET /healthz",
		"DELETE /v1/streams/%2F": "DELETE /v1/streams/{stream},admin id", "POST /v1/streams/a%2Fb/trim": "POST /v1/streams/{stream}/trim,admin id",
		"PUT /v1/healthz": "",
	} {
		asked = nil
		method, path, _ := strings.Cut(target, " ")
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set(requestHeader, "id")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := strings.Join(asked, ","); got != want {
			t.Errorf("%s: %q, want %q (%d)", target, got, want, w.Code)
		}
	}
	for _, r := range Routes() {
		if (r.Scope == ScopeOpen) != (r.Pattern == "/healthz" || r.Pattern == "/readyz") {
			t.Errorf("%s has scope %q", r, r.Scope)
		}
	}
}

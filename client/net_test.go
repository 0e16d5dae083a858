package client

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errRefused is what a host that nobody listens at gives.
var errRefused = errors.New("connection refused")

// hosts is a network in memory: it works in virtual time, and knows who asked whom.
type hosts struct {
	mu   sync.Mutex
	at   map[string]http.Handler // by host; none: nobody listens
	seen []*http.Request
	done sync.WaitGroup
}

func (n *hosts) set(host string, h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at == nil {
		n.at = map[string]http.Handler{}
	}
	n.at[host] = h
}

// asked are the hosts that requests went to, in order.
func (n *hosts) asked() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]string, len(n.seen))
	for i, r := range n.seen {
		out[i] = r.URL.Host
	}
	return out
}

func (n *hosts) requests() []*http.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*http.Request(nil), n.seen...)
}

// RoundTrip runs the host's handler. A handler that panics with http.ErrAbortHandler cuts
// the answer: before its head if nothing was written yet, else within the body.
func (n *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.seen = append(n.seen, r)
	h := n.at[r.URL.Host]
	n.mu.Unlock()
	if h == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	}
	pr, pw := io.Pipe()
	w := &piped{pw: pw, head: http.Header{}, ready: make(chan struct{})}
	n.done.Go(func() { w.serve(h, r) })
	select {
	case <-w.ready:
	case <-r.Context().Done():
		_ = pr.CloseWithError(r.Context().Err()) // a pipe's close does not fail
		return nil, r.Context().Err()
	}
	if w.code == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	body := &pipeBody{PipeReader: pr, stop: make(chan struct{})}
	n.done.Go(func() {
		select {
		case <-r.Context().Done():
			_ = pr.CloseWithError(r.Context().Err()) // likewise
		case <-body.stop:
		}
	})
	return &http.Response{StatusCode: w.code, Header: w.sent, Body: body, Request: r}, nil
}

type pipeBody struct {
	*io.PipeReader
	once sync.Once
	stop chan struct{}
}

func (b *pipeBody) Close() error {
	b.once.Do(func() { close(b.stop) })
	return b.PipeReader.Close()
}

// piped is a response that is read while it is written.
type piped struct {
	pw    *io.PipeWriter
	head  http.Header
	sent  http.Header
	code  int
	once  sync.Once
	ready chan struct{}
}

func (w *piped) serve(h http.Handler, r *http.Request) {
	defer func() {
		cut := recover()
		if err, _ := cut.(error); cut != nil && !errors.Is(err, http.ErrAbortHandler) {
			panic(cut)
		}
		if cut != nil {
			_ = w.pw.CloseWithError(io.ErrUnexpectedEOF) // a pipe's close does not fail
		} else {
			w.WriteHeader(http.StatusOK)
			_ = w.pw.Close() // likewise
		}
		w.once.Do(func() { close(w.ready) })
	}()
	h.ServeHTTP(w, r)
}

func (w *piped) Header() http.Header { return w.head }
func (w *piped) Flush()              { w.WriteHeader(http.StatusOK) }

func (w *piped) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.head.Clone()
		close(w.ready)
	})
}

func (w *piped) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pw.Write(b)
}

// over makes a client of these hosts.
func (n *hosts) client(t *testing.T, cfg Config) *Client {
	t.Helper()
	cfg.HTTP = &http.Client{Transport: n}
	if cfg.URL == "" {
		cfg.URL = "http://a"
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var _ http.Flusher = (*piped)(nil)

// answering is a handler that always says the same.
func answering(status int, head map[string]string, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a test's body is in memory
		for k, v := range head {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may be gone
	})
}

// steps answers each request by the next handler, and fails the test when there is none.
func steps(t *testing.T, all ...http.Handler) http.Handler {
	t.Helper()
	var mu sync.Mutex
	t.Cleanup(func() {
		if len(all) > 0 {
			t.Errorf("%d steps were not taken", len(all))
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if len(all) == 0 {
			mu.Unlock()
			t.Errorf("%s %s: one request more than there are steps", r.Method, r.URL)
			panic(http.ErrAbortHandler)
		}
		h := all[0]
		all = all[1:]
		mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

// aborted takes a request and gives no answer.
var aborted = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // likewise
	panic(http.ErrAbortHandler)
})

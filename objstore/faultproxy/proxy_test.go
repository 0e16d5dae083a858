package faultproxy

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/objstore"
)

// upstream is a server that answers every request with "hello, client" and keeps what
// came whole.
type upstream struct {
	server *httptest.Server

	mu     sync.Mutex
	whole  []string // method, request URI, host, body
	broken int      // bodies that broke off
}

const hello = "hello, client"

func newUpstream(t *testing.T, secure bool) *upstream {
	u := &upstream{}
	u.server = httptest.NewUnstartedServer(u)
	if secure {
		u.server.StartTLS()
	} else {
		u.server.Start()
	}
	t.Cleanup(u.server.Close)
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		u.broken++
		return
	}
	u.whole = append(u.whole, strings.Join([]string{r.Method, r.RequestURI, r.Host, string(body)}, " "))
	w.Header().Set("X-Count", string(rune('0'+len(u.whole))))
	_, _ = io.WriteString(w, hello)
}

func (u *upstream) got() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.whole
}

// rig is a client, a proxy and an upstream.
type rig struct {
	*testing.T
	up     *upstream
	proxy  *Proxy
	client *http.Client
}

func newRig(t *testing.T, fault Fault) *rig {
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	up := newUpstream(t, false)
	p, err := Start(Config{Upstream: up.server.URL})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if fault != nil {
		p.Add(&Rule{Name: "the fault", Fault: fault})
	}
	return &rig{T: t, up: up, proxy: p, client: &http.Client{Transport: transport}}
}

const target = "/bucket/a%2Bb/k%20?x-id=PutObject&z"

// put sends "request" and gives the answer's status and body.
func (r *rig) put(ctx context.Context) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+r.proxy.Endpoint()+target, strings.NewReader("request"))
	if err != nil {
		r.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), errors.Join(err, resp.Body.Close())
}

// until waits for what another goroutine brings about; the test binary's own deadline
// ends a wait in vain.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		runtime.Gosched()
	}
}

// arrived is how "request" looks upstream.
func (r *rig) arrived(body string) string {
	return "PUT " + target + " " + r.proxy.Endpoint() + " " + body
}

func TestTransparent(t *testing.T) {
	r := newRig(t, nil)
	resp, body, err := r.put(t.Context())
	if err != nil || body != hello || resp.ContentLength != int64(len(hello)) || resp.Header.Get("X-Count") != "1" {
		t.Fatalf("%+v %q %v", resp, body, err)
	}
	if got := r.up.got(); len(got) != 1 || got[0] != r.arrived("request") {
		t.Errorf("upstream got %q, want %q", got, r.arrived("request"))
	}
	if r.proxy.Total() != 1 || r.proxy.Counts()[objstore.OpPut] != 1 {
		t.Errorf("counted %v", r.proxy.Counts())
	}
}

func TestUpstreamOverTLS(t *testing.T) {
	up := newUpstream(t, true)
	roots := x509.NewCertPool()
	roots.AddCert(up.server.Certificate())
	p, err := Start(Config{Upstream: up.server.URL, Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + p.Endpoint() + "/b/k")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	if err := errors.Join(resp.Body.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Upstream: "no url"}); err == nil {
		t.Error("a proxy of nothing")
	}
}

// TestFaults holds each fault to what it says: what the client sees, and what the
// upstream got whole.
func TestFaults(t *testing.T) {
	flipped := "r" + string("equest"[0]^1) + "quest"
	for name, c := range map[string]struct {
		fault   Fault
		applied int    // how often it arrived whole
		body    string // as it arrived; "": unchanged
		status  int    // 0: the connection broke before an answer
		sees    string // the answer's body
		cut     bool   // which breaks off
	}{
		"reset":              {fault: Reset{}},
		"reset in the body":  {fault: Reset{After: 3}},
		"answer dropped":     {fault: DropAnswer{}, applied: 1},
		"twice":              {fault: Duplicate{}, applied: 2, status: 200, sees: hello},
		"twice, first kept":  {fault: Duplicate{KeepFirst: true}, applied: 2, status: 200, sees: hello},
		"status":             {fault: Status{Code: 500, Body: "no"}, status: 500, sees: "no"},
		"status after":       {fault: Status{Code: 500, Body: "no"}.Applied(), applied: 1, status: 500, sees: "no"},
		"cut answer":         {fault: CutBody{After: 5}, applied: 1, status: 200, sees: hello[:5], cut: true},
		"cut chunked answer": {fault: CutBody{After: 5, Chunked: true}, applied: 1, status: 200, sees: hello[:5], cut: true},
		"cut request":        {fault: CutRequest{After: 4}},
		"flipped answer":     {fault: FlipBody{At: Byte(len(hello) + 1)}, applied: 1, status: 200, sees: "hdllo, client"},
		"flipped request":    {fault: FlipRequest{At: EndOf("re")}, applied: 1, body: flipped, status: 200, sees: hello},
		"late":               {fault: &ApplyLate{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.fault)
			resp, body, err := r.put(t.Context())
			status := 0
			if resp != nil {
				status = resp.StatusCode
			}
			if status != c.status || body != c.sees || (err != nil) != (c.cut || c.status == 0) {
				t.Errorf("the client sees %d %q %v, want %d %q", status, body, err, c.status, c.sees)
			}
			if c.body == "" {
				c.body = "request"
			}
			got := r.up.got()
			for _, g := range got {
				if g != r.arrived(c.body) {
					t.Errorf("upstream got %q, want %q", g, r.arrived(c.body))
				}
			}
			if len(got) != c.applied || len(r.proxy.Unhit()) != 0 {
				t.Errorf("applied %d times, want %d; not hit: %q", len(got), c.applied, r.proxy.Unhit())
			}
		})
	}
}

func TestDuplicateAnswers(t *testing.T) {
	for first, want := range map[bool]string{true: "1", false: "2"} {
		resp, _, err := newRig(t, Duplicate{KeepFirst: first}).put(t.Context())
		if err != nil || resp.Header.Get("X-Count") != want {
			t.Errorf("first kept %t: answer %v, %v", first, resp, err)
		}
	}
}

func TestCutKeepsLength(t *testing.T) {
	for chunked, want := range map[bool]int64{true: -1, false: int64(len(hello))} {
		resp, _, err := newRig(t, CutBody{After: 5, Chunked: chunked}).put(t.Context())
		if !errors.Is(err, io.ErrUnexpectedEOF) || resp.ContentLength != want {
			t.Errorf("chunked %t: length %d, %v", chunked, resp.ContentLength, err)
		}
	}
}

func TestStatusHeaders(t *testing.T) {
	resp, body, err := newRig(t, SlowDown(7)).put(t.Context())
	if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" || !strings.Contains(body, "<Code>SlowDown</Code>") {
		t.Errorf("%v %q %v", resp, body, err)
	}
	resp, body, err = newRig(t, Page(http.StatusOK)).put(t.Context())
	if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") || body == "" {
		t.Errorf("%v %q %v", resp, body, err)
	}
	if resp, _, err = newRig(t, SlowDown(0)).put(t.Context()); err != nil || resp.Header.Get("Retry-After") != "" {
		t.Errorf("%v %v", resp, err)
	}
}

// TestLate: held requests land in order, only when released, and never after Close.
func TestLate(t *testing.T) {
	late := &ApplyLate{}
	r := newRig(t, late)
	for range 2 {
		if _, _, err := r.put(t.Context()); err == nil {
			t.Fatal("the client got an answer")
		}
	}
	if late.Held() != 2 || len(r.up.got()) != 0 {
		t.Fatalf("%d held, upstream got %q", late.Held(), r.up.got())
	}
	landed, err := late.Release()
	if err != nil || len(landed) != 2 || landed[0].Status != 200 || landed[0].Call.Key != "a+b/k " || late.Held() != 0 {
		t.Fatalf("%+v, %v", landed, err)
	}
	if got := r.up.got(); len(got) != 2 || got[0] != r.arrived("request") {
		t.Errorf("upstream got %q", got)
	}
	_, _, _ = r.put(t.Context())
	if err := r.proxy.Close(); err != nil {
		t.Fatal(err)
	}
	if landed, err := late.Release(); err == nil || len(landed) != 0 {
		t.Errorf("after Close: %+v", landed)
	}
}

// TestSilence: a client in a black hole, or before a silent late request, waits for its
// own deadline; released in time it gets its answer.
func TestSilence(t *testing.T) {
	for _, applied := range []bool{false, true} {
		hole := NewBlackHole(applied)
		r := newRig(t, hole)
		ctx, leave := context.WithCancel(t.Context())
		answers := make(chan error)
		go func() {
			_, _, err := r.put(ctx)
			answers <- err
			_, body, err := r.put(t.Context())
			if body != hello {
				err = errors.Join(err, errors.New(body))
			}
			answers <- err
		}()
		if err := hole.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		leave()
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("left: %v", err)
		}
		if err := hole.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		hole.Release()
		if err := <-answers; err != nil {
			t.Errorf("released: %v", err)
		}
		if want := map[bool]int{true: 2, false: 1}[applied]; len(r.up.got()) != want {
			t.Errorf("applied %t: upstream got %q", applied, r.up.got())
		}
	}
	late := &ApplyLate{Silent: true}
	r := newRig(t, late)
	ctx, leave := context.WithCancel(t.Context())
	answers := make(chan error)
	go func() {
		_, _, err := r.put(ctx)
		answers <- err
	}()
	until(t, func() bool { return late.Held() > 0 })
	leave()
	if err := <-answers; !errors.Is(err, context.Canceled) {
		t.Errorf("left: %v", err)
	}
	if landed, err := late.Release(); err != nil || len(landed) != 1 {
		t.Errorf("%+v, %v", landed, err)
	}
}

// TestCloseInTheHole: Close ends requests that wait in a fault.
func TestCloseInTheHole(t *testing.T) {
	for name, fault := range map[string]Fault{
		"hole": NewBlackHole(false), "applied": NewBlackHole(true),
		"late": &ApplyLate{Silent: true}, "trickle": Trickle{Bytes: 1, Tick: make(chan struct{})},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fault)
			answers := make(chan error)
			go func() {
				_, _, err := r.put(context.Background())
				answers <- err
			}()
			until(t, func() bool { return len(r.proxy.Unhit()) == 0 })
			if err := r.proxy.Close(); err != nil {
				t.Error(err)
			}
			if err := <-answers; err == nil {
				t.Error("an answer")
			}
		})
	}
}

// TestTrickle: the client has what the ticks brought and not a byte more.
func TestTrickle(t *testing.T) {
	tick := make(chan struct{})
	r := newRig(t, Trickle{Bytes: 4, Tick: tick})
	resp, err := r.client.Get("http://" + r.proxy.Endpoint() + "/b/k")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for want := 4; want < len(hello); want += 4 {
		tick <- struct{}{}
		if _, err := io.CopyN(&got, resp.Body, 4); err != nil || got.String() != hello[:want] {
			t.Fatalf("%q %v", got.String(), err)
		}
	}
	close(tick)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || got.String()+string(rest) != hello {
		t.Errorf("%q %q %v", got.String(), rest, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}

// TestStreakOfParts: parts that go side by side count for themselves. One that passes does
// not let the other be struck anew until its Store gives up.
func TestStreakOfParts(t *testing.T) {
	p := &Proxy{streaks: make(map[Call]int), counts: make(map[objstore.Op]int)}
	p.SetStreak(2)
	p.Add(&Rule{Name: "always", Fault: Reset{}})
	var got string
	for _, part := range []string{"1", "2", "1", "2", "2", "1"} {
		r := httptest.NewRequest(http.MethodPut, "/bucket/key?uploadId=u&partNumber="+part, nil)
		fault, _ := p.enter(callOf(r))
		if got += part; fault != nil {
			got += "!"
		}
	}
	if want := "1!2!1!2!21"; got != want {
		t.Errorf("struck %s, want %s", got, want)
	}
}

// TestStreak: random faults leave each call a way through, and rules that never struck
// are named.
func TestStreak(t *testing.T) {
	up := newUpstream(t, false)
	p, err := Start(Config{Upstream: up.server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	p.SetStreak(2)
	always, never := &Rule{Name: "always", Fault: Empty(500)}, &Rule{Name: "never", Key: func(string) bool { return false }, Fault: Reset{}}
	p.Add(always, never)
	r := &rig{T: t, up: up, proxy: p, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	var got []int
	for range 6 {
		resp, _, err := r.put(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, resp.StatusCode)
	}
	for i, want := range []int{500, 500, 200, 500, 500, 200} {
		if got[i] != want {
			t.Fatalf("statuses %v", got)
		}
	}
	if unhit := p.Unhit(); len(unhit) != 1 || unhit[0] != "never" || p.Hits(always) != 4 {
		t.Errorf("not hit: %q, hits %d", unhit, p.Hits(always))
	}
	p.Clear()
	if resp, _, err := r.put(t.Context()); err != nil || resp.StatusCode != 200 || len(p.Unhit()) != 0 {
		t.Errorf("after Clear: %v %v", resp, err)
	}
}

package faultproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/strandline/strandline/objstore"
)

const (
	// upstreamConns is as many as a driver keeps ready.
	upstreamConns = 64
	// expectTimeout: a server that does not say 100 Continue gets the body after it.
	expectTimeout = time.Second
	// headerTimeout bounds a client that connects and says nothing.
	headerTimeout = time.Minute
)

// Config says what stands behind the proxy.
type Config struct {
	Upstream string         // http://HOST:PORT or https://HOST:PORT
	Roots    *x509.CertPool // to trust the upstream; nil: the system's
}

// Proxy is a running proxy. It is safe for concurrent use.
type Proxy struct {
	upstream  *url.URL
	transport *http.Transport
	server    *http.Server
	listener  net.Listener
	served    chan struct{}

	ctx    context.Context // ends with Close: requests made on the proxy's own account
	cancel context.CancelFunc
	active sync.WaitGroup // requests being handled

	mu      sync.Mutex // all below
	closed  bool
	rules   []*Rule
	streak  int
	streaks map[Call]int
	counts  map[objstore.Op]int
}

// Start listens on a free port of 127.0.0.1 until Close.
func Start(cfg Config) (*Proxy, error) {
	upstream, err := url.Parse(cfg.Upstream)
	if err != nil || upstream.Host == "" {
		return nil, fmt.Errorf("upstream %q: want http://HOST:PORT or https://HOST:PORT", cfg.Upstream)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the proxy's clients: %w", err)
	}
	p := &Proxy{
		upstream: upstream, listener: listener, served: make(chan struct{}),
		transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: upstreamConns, ExpectContinueTimeout: expectTimeout, DisableCompression: true,
		},
		streaks: make(map[Call]int), counts: make(map[objstore.Op]int),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: headerTimeout}
	go func() {
		defer close(p.served)
		_ = p.server.Serve(listener) // it ends by Close, and with nothing else to say
	}()
	return p, nil
}

// Endpoint is the proxy's host:port.
func (p *Proxy) Endpoint() string { return p.listener.Addr().String() }

// Add appends rules. Of several that match a request the first that strikes wins; the
// later ones do not see it.
func (p *Proxy) Add(rules ...*Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, rules...)
}

// SetStreak says how many faults in a row may strike one operation on one key, or one part
// of an upload (parts go side by side), of all rules together; 0: any number. With fewer than a Store's attempts, random faults stay
// within what it absorbs.
func (p *Proxy) SetStreak(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streak = n
}

// Clear drops all rules. What their faults hold stays held.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
	clear(p.streaks)
}

// Hits says how often a rule struck.
func (p *Proxy) Hits(r *Rule) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.hits
}

// Unhit names the rules that never struck.
func (p *Proxy) Unhit() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, r := range p.rules {
		if r.hits == 0 {
			names = append(names, r.Name)
		}
	}
	return names
}

// Close ends all connections, requests that wait in a fault included, and returns when
// the last has ended. What ApplyLate still holds is never applied.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	err := p.server.Close()
	<-p.served
	p.active.Wait()
	p.transport.CloseIdleConnections()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// ServeHTTP handles one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{p: p, w: w, r: r, call: callOf(r)}
	fault, ok := p.enter(x.call)
	if !ok {
		x.sever()
		return
	}
	defer p.active.Done()
	if fault != nil {
		fault.strike(x)
		return
	}
	x.pass()
}

// enter counts the request and picks its fault; nil: none. It is false once the proxy
// is closed.
func (p *Proxy) enter(c Call) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false
	}
	p.active.Add(1)
	p.counts[c.Op]++
	for _, r := range p.rules {
		if !r.matches(c) {
			continue
		}
		if p.streak > 0 && p.streaks[c] >= p.streak {
			break
		}
		r.hits++
		p.streaks[c]++
		return r.Fault, true
	}
	delete(p.streaks, c)
	return nil, true
}

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/internal/otlp"
)

// listenFlags are the knobs of a process that serves HTTP: up, writer, reader, auditor.
type listenFlags struct {
	http       string
	advertise  string
	remote     bool
	drainDelay time.Duration
	shutdown   time.Duration
	access     accessFlags
	telemetry  telemetryFlags
	out        *wayOut // of the service that runs; within makes it
}

// defaultHTTP is where a process serves unless told otherwise.
const defaultHTTP = "127.0.0.1:8420"

// defaultShutdown holds the publish of some full segments to a slow bucket.
const defaultShutdown = 2 * time.Minute

// register takes the address that is served without --http; empty: nothing is served then.
func (l *listenFlags) register(f *pflag.FlagSet, address string) {
	help := "address to serve HTTP on"
	if address == "" {
		help += "; empty: none"
	}
	f.StringVar(&l.http, "http", address, help)
	f.BoolVar(&l.remote, "allow-remote", false, "serve on an address that is not loopback without authentication or without TLS: what is in front of it has to do that")
	f.DurationVar(&l.drainDelay, "drain-delay", 0, "how long /readyz fails on the way out before the listener closes: what a load balancer needs to notice, 0 to 5m")
	f.DurationVar(&l.shutdown, "shutdown-timeout", defaultShutdown, "how long the way out may take in all, 1ms to 1h")
	l.access.register(f)
	l.telemetry.register(f)
}

// registerAdvertise is for processes that others are sent to.
func (l *listenFlags) registerAdvertise(f *pflag.FlagSet) {
	f.StringVar(&l.advertise, "advertise", "", "URL that others are sent to for this process's shards (default: the scheme and address of --http)")
}

// Bounds of the way out.
const (
	maxShutdown   = time.Hour
	maxDrainDelay = 5 * time.Minute
)

// validate joins every fault.
func (l *listenFlags) validate() error {
	errs := []error{l.access.validate(), l.telemetry.validate()}
	if l.http != "" {
		_, _, err := net.SplitHostPort(l.http)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--http %q: give HOST:PORT", l.http))
		case !l.remote:
			errs = append(errs, l.access.exposed("--http", l.http))
		}
	}
	switch u, err := url.Parse(l.advertise); {
	case l.advertise == "":
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		errs = append(errs, errors.New("--advertise: give a URL like http://writer-0:8420, without a name or password in it"))
	case u.Scheme == "http" && l.access.tls.Cert != "":
		errs = append(errs, fmt.Errorf("--advertise %s: with --tls-cert it begins with https://", l.advertise))
	}
	if l.shutdown <= 0 || l.shutdown > maxShutdown {
		errs = append(errs, fmt.Errorf("--shutdown-timeout %v: give a positive one, 1h at most", l.shutdown))
	}
	switch {
	case l.drainDelay < 0 || l.drainDelay > maxDrainDelay:
		errs = append(errs, fmt.Errorf("--drain-delay %v: give 0 to 5m", l.drainDelay))
	case l.drainDelay >= l.shutdown:
		errs = append(errs, fmt.Errorf("--drain-delay %v: give less than --shutdown-timeout, %v: what comes after it needs time, too", l.drainDelay, l.shutdown))
	}
	return errors.Join(errs...)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// address is where HTTP will be served: known before recovery, because the chain rows
// tell others of it. Port 0 becomes a free port, held only for a moment.
func (l *listenFlags) address(ctx context.Context) (string, error) {
	host, port, err := net.SplitHostPort(l.http)
	if err != nil || port != "0" {
		return l.http, err
	}
	var lc net.ListenConfig
	free, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("serve HTTP: %w; give another --http", err)
	}
	return free.Addr().String(), free.Close()
}

// advertised is the URL of this process for others.
func (l *listenFlags) advertised(address string, around *surroundings) string {
	if l.advertise != "" {
		return l.advertise
	}
	return around.scheme() + "://" + address
}

// surroundings stand around and beside a process's routes; each is nil where it is off.
type surroundings struct {
	guard   func(scope string, next http.Handler) http.Handler
	wrap    func(pattern string, next http.Handler) http.Handler
	metrics http.Handler
	logs    http.Handler
	tls     *tls.Config
	access  *openAccess
	// parts run beside the server until it stops: a listener of another protocol, a push.
	parts []func(ctx context.Context) error
}

// surround makes what the flags ask for, before anything is served.
func (l *listenFlags) surround(log *slog.Logger) (*surroundings, error) {
	s := &surroundings{}
	return s, l.access.around(s, log)
}

// fill gives the routes what stands around them.
func (s *surroundings) fill(d *httpapi.Deps) {
	d.Guard, d.Wrap, d.Metrics, d.Logs, d.LogsForm = s.guard, s.wrap, s.metrics, s.logs, otlp.InForm
}

func (s *surroundings) scheme() string {
	if s.tls != nil {
		return "https"
	}
	return "http"
}

// httpService is a process that serves until it is told to stop.
type httpService struct {
	flags    *listenFlags
	around   *surroundings
	log      *slog.Logger
	listener net.Listener
	handler  http.Handler
	stopping stopping
	parts    []func(ctx context.Context) error
	// flush publishes what requests wait for, while they drain; nil: nothing.
	flush func(ctx context.Context) error
	// finish comes last, when no request and no part is left; nil: nothing.
	finish func(ctx context.Context) error
}

// stopping tells those who serve that the process is on its way out.
type stopping struct {
	unready chan struct{} // closed: /readyz fails
	drains  chan struct{} // closed: what never ends by itself ends now
}

func newStopping() stopping { return stopping{make(chan struct{}), make(chan struct{})} }

// readiness answers /readyz on the way out, and leaves the rest to the routes.
func (s stopping) readiness(routes http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.unready:
			if r.URL.Path == "/readyz" {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, `{"status":503,"code":"not-ready","title":"not ready","detail":"the process is stopping"}`+"\n")
				return
			}
		default:
		}
		routes.ServeHTTP(w, r)
	})
}

// serveHTTP runs until ctx ends or a part fails, then stops in order: not ready, no more
// requests, no more parts, then what finish does. All of that, and the closing of what was
// opened, has --shutdown-timeout (wayout.go).
func serveHTTP(ctx context.Context, h *httpService) error {
	if h.flags.out == nil {
		h.flags.out = newWayOut(h.flags.shutdown, h.log)
	}
	h.flags.out.step("serving")
	h.flags.access.say(h.log, h.listener.Addr().String())
	server := httpapi.NewServer(h.stopping.readiness(h.handler), h.log)
	if h.around.tls != nil {
		h.listener = tls.NewListener(h.listener, h.around.tls)
	}
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	var own sync.WaitGroup
	parting, part := context.WithCancel(context.WithoutCancel(ctx))
	defer part()
	for _, run := range slices.Concat(h.parts, h.around.parts) {
		own.Add(1)
		g.Go(func() error {
			defer own.Done()
			return run(parting)
		})
	}
	g.Go(func() error {
		<-running.Done()
		return h.stop(ctx, server, func() func() { part(); return own.Wait })
	})
	return g.Wait()
}

// stop is the way out. A crash in it loses nothing: the next start goes on from the disk.
func (h *httpService) stop(ctx context.Context, server *http.Server, endParts func() (wait func())) error {
	out := h.flags.out
	bound, cancel := context.WithDeadline(context.WithoutCancel(ctx), out.begin())
	defer cancel()
	close(h.stopping.unready)
	h.log.Info("stopping", "drain_delay", h.flags.drainDelay, "at_most", h.flags.shutdown)
	if ctx.Err() != nil && h.flags.drainDelay > 0 { // asked to: others have to notice. A fault has no time for that.
		select {
		case <-time.After(h.flags.drainDelay):
		case <-bound.Done():
		}
	}
	close(h.stopping.drains)
	out.step("requests under way were waited for")
	wait := endParts() // they drain beside the server
	err := out.leave(h.drain(bound, server))
	out.step("what runs beside the server was waited for")
	wait() // after it nobody opens another writer
	if h.finish != nil {
		out.step("what is only here was published, and the leases were given up")
		err = errors.Join(err, out.leave(h.finish(bound)))
	}
	return err
}

// drainTime is how long requests may go on once no new ones are taken.
const drainTime = 10 * time.Second

// drain lets requests finish for a while, then cuts them: clients that only hold
// a connection must not hold up the publish. Appends that wait for a shared acknowledgement get it, since
// the writer flushes meanwhile. It takes half of what is left at most: what comes after it
// gives up leases, and has to find time for that beside a bucket that hangs.
func (h *httpService) drain(ctx context.Context, server *http.Server) error {
	most := drainTime
	if by, bounded := ctx.Deadline(); bounded {
		most = min(most, time.Until(by)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error {
		if h.flush != nil {
			_ = h.flush(ctx) // what it could not do, finish does or reports
		}
		return nil
	})
	g.Go(func() error {
		defer cancel() // nobody waits for the flush any more: finish publishes, shard by shard
		if err := server.Shutdown(ctx); err != nil {
			return server.Close()
		}
		return nil
	})
	return g.Wait()
}

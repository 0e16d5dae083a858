package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/strandline/strandline/internal/verbs"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// collector is what receives pushes.
type collector struct {
	mu      sync.Mutex
	metrics map[string]bool
	spans   []ptrace.Span
	service string
}

func (c *collector) takeMetrics(r pmetricotlp.ExportRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.metrics == nil {
		c.metrics = map[string]bool{}
	}
	for _, rm := range r.Metrics().ResourceMetrics().All() {
		if v, ok := rm.Resource().Attributes().Get("service.name"); ok {
			c.service = v.Str()
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				c.metrics[m.Name()] = true
			}
		}
	}
}

func (c *collector) takeTraces(r ptraceotlp.ExportRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range r.Traces().ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				c.spans = append(c.spans, s)
			}
		}
	}
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	b, err := io.ReadAll(body)
	metrics, traces := pmetricotlp.NewExportRequest(), ptraceotlp.NewExportRequest()
	switch {
	case err != nil:
	case r.URL.Path == "/in/v1/metrics":
		if err = metrics.UnmarshalProto(b); err == nil {
			c.takeMetrics(metrics)
		}
	case r.URL.Path == "/in/v1/traces":
		if err = traces.UnmarshalProto(b); err == nil {
			c.takeTraces(traces)
		}
	default:
		err = errors.New("no such path: " + r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

type grpcMetrics struct {
	*pmetricotlp.UnimplementedGRPCServer
	c *collector
}

func (g grpcMetrics) Export(_ context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	g.c.takeMetrics(r)
	return pmetricotlp.NewExportResponse(), nil
}

type grpcTraces struct {
	*ptraceotlp.UnimplementedGRPCServer
	c *collector
}

func (g grpcTraces) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	g.c.takeTraces(r)
	return ptraceotlp.NewExportResponse(), nil
}

// work makes one span of each kind.
func work(t *testing.T, p *Provider) {
	t.Helper()
	appends := p.Appends()
	h := p.Wrap("POST /v1/streams/{stream}/rows", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, end := appends(r.Context(), localtier.Traced{Step: localtier.TraceAppend, Chain: segment.Chain{Epoch: 1, Shard: 2}, Stream: "s", Rows: 3})
		_, committed := appends(ctx, localtier.Traced{Step: localtier.TraceCommit})
		committed(nil)
		end(errors.New("the disk is full"))
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/streams/s/rows", nil))
	for _, worked := range []int{0, 2} {
		_, err := p.Duty(t.Context(), "settle", func(ctx context.Context) (int, error) {
			err := p.Verb(ctx, verbs.Verb{Name: "Window"}, func(context.Context) error { return nil })
			if worked > 0 {
				_, end := p.Jobs()(ctx, "strm/key")
				end(settle.Traced{Bytes: 5})
			}
			return worked, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := verb(t, p, nil); err != nil { // of no span: none of its own
		t.Fatal(err)
	}
}

func (c *collector) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"strandline_build_info", "strandline_wal_sync_seconds", "strandline_duty_seconds", "strandline_cursor_lag_rows", "go_goroutines", "process_start_time_seconds"} {
		if !c.metrics[name] {
			t.Errorf("%s was not pushed", name)
		}
	}
	if c.service != "strandline-writer" {
		t.Errorf("service %q", c.service)
	}
	var names []string
	byID := map[string]ptrace.Span{}
	for _, s := range c.spans {
		names = append(names, s.Name())
		byID[s.SpanID().String()] = s
	}
	slices.Sort(names)
	want := []string{"POST /v1/streams/{stream}/rows", "append", "catalog Window", "commit", "duty settle", "job"}
	if !slices.Equal(names, want) {
		t.Fatalf("spans %q, want %q", names, want)
	}
	parents := map[string]string{"append": want[0], "commit": "append", "job": "duty settle", "catalog Window": "duty settle"}
	for _, s := range c.spans {
		parent := ""
		if p, ok := byID[s.ParentSpanID().String()]; ok {
			parent = p.Name()
		}
		if parent != parents[s.Name()] {
			t.Errorf("%s is within %q, want %q", s.Name(), parent, parents[s.Name()])
		}
		if failed := s.Status().Code() == ptrace.StatusCodeError; failed != (s.Name() == "append") {
			t.Errorf("%s: failed %t", s.Name(), failed)
		}
	}
}

func TestPushHTTP(t *testing.T) {
	var c collector
	server := httptest.NewServer(&c)
	defer server.Close()
	pushed(t, server.URL+"/in", &c)
}

func TestPushGRPC(t *testing.T) {
	var c collector
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pmetricotlp.RegisterGRPCServer(server, grpcMetrics{c: &c})
	ptraceotlp.RegisterGRPCServer(server, grpcTraces{c: &c})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	defer serving.Wait()
	defer server.Stop()
	pushed(t, "grpc://"+l.Addr().String(), &c)
}

// TestPushEnvironment: without the flag the standard variables count.
func TestPushEnvironment(t *testing.T) {
	var c collector
	server := httptest.NewServer(&c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL+"/in")
	pushed(t, "", &c)
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if p := start(t, Config{}); p.Appends() != nil || p.Jobs() != nil || p.traces != nil {
		t.Error("disabled, and traced")
	}
}

func pushed(t *testing.T, url string, c *collector) {
	t.Helper()
	now := time.Now()
	p, err := Start(t.Context(), Config{Command: Writer, OTLP: url, Interval: time.Hour, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	p.Watch(everything(t, now))
	work(t, p)
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.check(t)
	for _, s := range p.push.signals {
		if s.ok.Load() == 0 || s.failed.Load() > 0 {
			t.Errorf("%s: %d pushes, %d failed", s.name, s.ok.Load(), s.failed.Load())
		}
	}
}

// TestPushAway: an endpoint that hangs or refuses is told of once, costs its callers
// nothing, and the end of the process little.
func TestPushAway(t *testing.T) {
	// Of an end that was cut, the exporter's queue is still being emptied: thousands of spans
	// are encoded, which on a loaded machine takes longer than goleak waits.
	before := goleak.IgnoreCurrent()
	defer func() {
		for end := time.Now().Add(time.Minute); goleak.Find(before) != nil && time.Now().Before(end); {
		}
	}()
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer hangs.Close()
	defer close(release)
	for name, url := range map[string]string{"refuses": "http://127.0.0.1:1", "hangs": hangs.URL} {
		t.Run(name, func(t *testing.T) {
			var logged lines
			p, err := Start(t.Context(), Config{Command: Writer, OTLP: url, Interval: time.Hour, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			appends := p.Appends()
			for range 3 * spanQueue { // more than the queue holds
				_, end := appends(t.Context(), localtier.Traced{Step: localtier.TraceAppend})
				end(nil)
			}
			if took := time.Since(began); took > pushTimeout { // who waits for a push waits so long
				t.Errorf("%d spans took %v", 3*spanQueue, took)
			}
			scrape(t, p)
			began = time.Now()
			if err := p.Close(context.Background()); err != nil {
				t.Error(err)
			}
			// closeTimeout and a little; without it, a push's own time.
			if took := time.Since(began); took >= pushTimeout {
				t.Errorf("the end took %v", took)
			}
			if n := strings.Count(logged.String(), "telemetry is not pushed"); n > 2 { // one a signal
				t.Errorf("%d lines: %s", n, logged.String())
			}
		})
	}
}

// TestPushSaysOnce: two lines an outage, whatever its length.
func TestPushSaysOnce(t *testing.T) {
	var logged lines
	p := start(t, Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	say := p.said("metrics")
	for range 5 {
		say(errors.New("connection refused"))
	}
	say(nil)
	say(nil)
	if a, b := strings.Count(logged.String(), "is not pushed"), strings.Count(logged.String(), "is pushed again"); a != 1 || b != 1 {
		t.Errorf("%d and %d lines: %s", a, b, logged.String())
	}
}

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestValidate(t *testing.T) {
	for url, good := range map[string]bool{
		"http://c:4318": true, "https://c/x": true, "grpc://c:4317": true, "grpcs://c:4317": true, "": true,
		"c:4318": false, "tcp://c": false, "http://": false, "http://user:secret@c:4318": false, "http://c?token=secret": false, "grpc://c/x": false,
	} {
		err := Config{OTLP: url}.Validate()
		if (err == nil) != good {
			t.Errorf("%q: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the secret: %v", err)
		}
	}
	if err := (Config{Interval: time.Millisecond}).Validate(); err == nil {
		t.Error("an interval of 1ms was taken")
	}
}

// TestHooksAreNilWhenOff: what is not traced costs nothing.
func TestHooksAreNilWhenOff(t *testing.T) {
	p := start(t, Config{})
	if p.Appends() != nil || p.Jobs() != nil {
		t.Error("hooks, and nothing to send to")
	}
	if _, empty := p.GRPC().(grpc.EmptyServerOption); !empty {
		t.Error("gRPC is traced")
	}
}

package otlp

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/encoding/proto"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/strandline/strandline/localtier"
)

// server serves r until the test ends, or stop is called; it returns what Serve did.
func server(t *testing.T, r *Receiver, g Guarding, drain time.Duration) (conn *grpc.ClientConn, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, NewServer(r, g), l, drain) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), stop()); err != nil {
			t.Error(err)
		}
	})
	return conn, stop
}

func export1(conn *grpc.ClientConn, logs plog.Logs, opts ...grpc.CallOption) (plogotlp.ExportResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return plogotlp.NewGRPCClient(conn).Export(ctx, plogotlp.NewExportRequestFromLogs(logs), opts...)
}

// TestGRPC: the Collector's own client is understood, plain and compressed; and what came
// by HTTP is the same rows.
func TestGRPC(t *testing.T) {
	l := newLog()
	r := receiver(t, l, nil)
	conn, _ := server(t, r, Guarding{}, time.Second)
	for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		out, err := export1(conn, batch(3, "a", "b"), opts...)
		if err != nil || out.PartialSuccess().RejectedLogRecords() != 0 {
			t.Fatal(out, err)
		}
	}
	if w := post(r, asProtobuf, protobuf(t, batch(3, "a", "b"))); w.Code != 200 {
		t.Fatal(w.Code)
	}
	if len(l.calls) != 6 || len(l.rows["a"]) != 3 || len(l.rows["b"]) != 3 {
		t.Errorf("%d appends, %d and %d rows", len(l.calls), len(l.rows["a"]), len(l.rows["b"]))
	}
}

func TestGRPCPartial(t *testing.T) {
	l := newLog()
	l.fail = func(b Batch) error { return map[string]error{"bad": ErrNever}[b.Stream] }
	conn, _ := server(t, receiver(t, l, nil), Guarding{}, time.Second)
	out, err := export1(conn, batch(3, "bad", "good"))
	if err != nil || out.PartialSuccess().RejectedLogRecords() != 3 || out.PartialSuccess().ErrorMessage() == "" {
		t.Error(out.PartialSuccess().RejectedLogRecords(), err)
	}
}

func TestGRPCErrors(t *testing.T) {
	l := newLog()
	conn, _ := server(t, receiver(t, l, nil), Guarding{}, time.Second)
	retry := func(err error) time.Duration { return retryOf(status.Convert(err).Proto()) }

	l.fail = func(Batch) error { return &localtier.BackpressureError{RetryAfter: 3 * time.Second} }
	if _, err := export1(conn, batch(1, "a")); status.Code(err) != codes.ResourceExhausted || retry(err) != 3*time.Second {
		t.Errorf("backpressure: %v, again in %v", err, retry(err))
	}
	l.fail = func(Batch) error { return localtier.ErrClosed }
	if _, err := export1(conn, batch(1, "a")); status.Code(err) != codes.Unavailable || retry(err) < time.Second {
		t.Errorf("closing: %v, again in %v", err, retry(err))
	}
	l.fail = nil
	large := batch(1, "a")
	large.ResourceLogs().At(0).Resource().Attributes().PutStr("x", strings.Repeat("x", MaxBodyBytes))
	if _, err := export1(conn, large); status.Code(err) != codes.ResourceExhausted || retry(err) != 0 {
		t.Errorf("too large: %.100v, again in %v", err, retry(err))
	}
	if _, err := export1(conn, large, grpc.UseCompressor(gzip.Name)); status.Code(err) != codes.InvalidArgument || retry(err) != 0 {
		t.Errorf("too large, packed: %.100v, again in %v", err, retry(err))
	}
	for name, body := range map[string][]byte{"malformed": []byte("\x0a\x03abc"), "deep": deepRequest(150), "many": manyRecords(MaxRecords + 1)} {
		err := conn.Invoke(context.Background(), exportMethod, &raw{body: body}, &raw{}, grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2(proto.Name)}))
		if status.Code(err) != codes.InvalidArgument || retry(err) != 0 {
			t.Errorf("%s: %v, again in %v", name, err, retry(err))
		}
	}
	if len(l.rows) != 0 {
		t.Error("rows were written")
	}
}

// TestGRPCBusy: beyond the calls that may be under way, senders are told to come again; a
// call that ends makes room. Health is answered in any case.
func TestGRPCBusy(t *testing.T) {
	entered, free := make(chan struct{}, maxCalls), make(chan struct{})
	r := receiver(t, newLog(), func(d *Deps) {
		d.Append = func(context.Context, Batch) error {
			entered <- struct{}{}
			<-free
			return nil
		}
	})
	conn, _ := server(t, r, Guarding{}, time.Second)
	results := make(chan error, maxCalls)
	for range maxCalls {
		go func() {
			_, err := export1(conn, batch(1, "a"))
			results <- err
		}()
	}
	for range maxCalls {
		<-entered
	}
	// A second connection, for the first has all of its streams in use.
	second, err := grpc.NewClient(conn.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	if _, err := export1(second, batch(1, "a")); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), errBusy.Error()) {
		t.Errorf("one call too many: %v", err)
	}
	if h, err := healthpb.NewHealthClient(second).Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health of a busy server: %v, %v", h, err)
	}
	close(free)
	for range maxCalls {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	// The places come back once the ends of the calls are noticed.
	for end := time.Now().Add(20 * time.Second); ; {
		_, err := export1(second, batch(1, "a"))
		if err == nil {
			<-entered
			return
		}
		if status.Code(err) != codes.Unavailable || time.Now().After(end) {
			t.Fatalf("no place came back: %v", err)
		}
	}
}

func TestGRPCGuard(t *testing.T) {
	l := newLog()
	var asked string
	conn, _ := server(t, receiver(t, l, nil), Guarding{Interceptor: func(_ any, _ grpc.ServerStream, info *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
		asked += info.FullMethod
		return status.Error(codes.Unauthenticated, "who are you")
	}}, time.Second)
	if _, err := export1(conn, batch(1, "a")); status.Code(err) != codes.Unauthenticated || len(l.calls) != 0 {
		t.Errorf("%v, %d appends", err, len(l.calls))
	}
	if _, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	if asked != exportMethod {
		t.Errorf("the guard was asked of %q", asked)
	}
}

// calls counts what a stats handler hears of.
type calls struct{ n atomic.Int64 }

func (c *calls) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (c *calls) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.Begin); ok {
		c.n.Add(1)
	}
}
func (c *calls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *calls) HandleConn(context.Context, stats.ConnStats)                       {}

func TestGRPCTrace(t *testing.T) {
	seen := &calls{}
	conn, _ := server(t, receiver(t, newLog(), nil), Guarding{Trace: grpc.StatsHandler(seen)}, time.Second)
	if _, err := export1(conn, batch(1, "a")); err != nil || seen.n.Load() != 1 {
		t.Errorf("%d calls were seen, %v", seen.n.Load(), err)
	}
}

func TestHealth(t *testing.T) {
	var down error
	conn, _ := server(t, receiver(t, newLog(), func(d *Deps) { d.Ready = func() error { return down } }), Guarding{}, time.Second)
	c := healthpb.NewHealthClient(conn)
	for _, service := range []string{"", serviceName} {
		for _, x := range []struct {
			err  error
			want healthpb.HealthCheckResponse_ServingStatus
		}{{nil, healthpb.HealthCheckResponse_SERVING}, {localtier.ErrFenced, healthpb.HealthCheckResponse_NOT_SERVING}} {
			down = x.err
			if h, err := c.Check(context.Background(), &healthpb.HealthCheckRequest{Service: service}); err != nil || h.GetStatus() != x.want {
				t.Errorf("%q, %v: %v, %v", service, x.err, h, err)
			}
		}
	}
	if _, err := c.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "x"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
}

// TestServeDrains: a call under way gets its answer though the server stops; new ones do not.
func TestServeDrains(t *testing.T) {
	entered, free := make(chan struct{}), make(chan struct{})
	r := receiver(t, newLog(), func(d *Deps) {
		d.Append = func(context.Context, Batch) error {
			close(entered)
			<-free
			return nil
		}
	})
	conn, stop := server(t, r, Guarding{}, time.Minute)
	result := make(chan error, 1)
	go func() {
		_, err := export1(conn, batch(1, "a"))
		result <- err
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // until it takes no more connections
		c, err := net.Dial("tcp", conn.Target())
		if err != nil {
			break
		}
		_ = c.Close()
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped before the call's answer: %v", err)
	default:
	}
	close(free)
	if err := errors.Join(<-result, <-stopped); err != nil {
		t.Error(err)
	}
}

// TestServeCuts: a call that does not end is cut when its time is over.
func TestServeCuts(t *testing.T) {
	entered := make(chan struct{})
	r := receiver(t, newLog(), func(d *Deps) {
		d.Append = func(ctx context.Context, _ Batch) error {
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		}
	})
	conn, stop := server(t, r, Guarding{}, time.Millisecond)
	result := make(chan error, 1)
	go func() {
		_, err := export1(conn, batch(1, "a"))
		result <- err
	}()
	<-entered
	if err := stop(); err != nil {
		t.Error(err)
	}
	// Its own deadline is far off.
	if err := <-result; status.Code(err) == codes.OK || status.Code(err) == codes.DeadlineExceeded {
		t.Errorf("a call that was to be cut: %v", err)
	}
}

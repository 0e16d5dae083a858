package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // senders compress with it by default
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/keepalive"
)

// Limits of the gRPC server; those of calls are in admit.go.
const (
	// maxStreams of one connection.
	maxStreams        = 64
	maxHeaderBytes    = 64 << 10
	connectionTimeout = 10 * time.Second
	// idleAfter is when a connection without a call is given back, as over HTTP: pings alone do
	// not keep it. Senders dial again by themselves.
	idleAfter = 2 * time.Minute
	// pingAfter finds senders that are gone without a word; pingWait is how long one may take to answer.
	pingAfter = 2 * time.Minute
	pingWait  = 20 * time.Second
	// leastPing is how often senders may ping: proxies and agents do so every 10 s or more.
	leastPing = 10 * time.Second
)

const (
	serviceName  = "opentelemetry.proto.collector.logs.v1.LogsService"
	exportMethod = "/" + serviceName + "/Export"
	healthName   = "grpc.health.v1.Health"
	healthPrefix = "/" + healthName + "/"
)

// Guarding is how a gRPC server is protected and watched; the zero value is not at all.
type Guarding struct {
	TLS *tls.Config
	// Interceptor lets a call pass or fails it by its headers, before anything else of it is
	// read; the health service is open, as /healthz is. nil: all may.
	Interceptor grpc.StreamServerInterceptor
	// Trace makes spans of calls; nil: none are made.
	Trace grpc.ServerOption
}

// NewServer is a gRPC server of the logs service and of health.
func NewServer(r *Receiver, g Guarding) *grpc.Server {
	opts := []grpc.ServerOption{
		grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2(proto.Name)}),
		grpc.MaxRecvMsgSize(MaxBodyBytes), grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(connectionTimeout), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleAfter, Time: pingAfter, Timeout: pingWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
		grpc.InTapHandle(cuttable),
		grpc.RPCDecompressor(asItCame{}), //nolint:staticcheck // an encoding.Compressor is one for the whole process, its callers too
	}
	if g.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(g.TLS)))
	}
	if g.Trace != nil {
		opts = append(opts, g.Trace)
	}
	if g.Interceptor != nil {
		opts = append(opts, grpc.StreamInterceptor(guarded(g.Interceptor)))
	}
	s := grpc.NewServer(opts...)
	s.RegisterService(&logsService, &exports{r: r, places: r.calls})
	s.RegisterService(&healthService, &health{ready: r.Ready, within: r.check, places: r.checks})
	return s
}

// Serve serves until ctx ends; then calls under way may finish for as long as drain, and
// are cut. What they wrote by then is durable, and their senders send it again.
func Serve(ctx context.Context, s *grpc.Server, l net.Listener, drain time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		s.Stop()
		return err
	case <-ctx.Done():
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.GracefulStop()
	}()
	select {
	case <-gone:
	case <-time.After(drain):
		s.Stop()
		<-gone
	}
	if err := <-failed; !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

func guarded(guard grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if strings.HasPrefix(info.FullMethod, healthPrefix) {
			return next(srv, s)
		}
		return guard(srv, s, info, next)
	}
}

// logsService is the service that plogotlp has, on the message's bytes: they are counted
// before they are decoded, and a bad message is INVALID_ARGUMENT. To grpc it is a stream of
// one message, since of a unary call grpc reads all before it asks anybody.
var logsService = grpc.ServiceDesc{
	ServiceName: serviceName, HandlerType: (*any)(nil), Metadata: "opentelemetry/proto/collector/logs/v1/logs_service.proto",
	Streams: []grpc.StreamDesc{{StreamName: "Export", ServerStreams: true, Handler: export}},
}

// exports is the logs service of the servers of one Receiver.
type exports struct {
	r      *Receiver
	places chan struct{}
}

func export(srv any, stream grpc.ServerStream) error {
	e := srv.(*exports)
	return admit(e.places, func() error {
		mine := e.r.share()
		defer mine.release()
		in := &raw{mine: mine}
		if err := receive(stream, in, e.r.message); err != nil {
			return err
		}
		out, err := e.r.export(stream.Context(), in)
		if err != nil {
			return err
		}
		return stream.SendMsg(out)
	})
}

func (r *Receiver) export(ctx context.Context, in *raw) (*raw, error) {
	if in.refused != nil {
		r.end(ctx, 0, rejected{}, in.refused)
		return nil, verdictOf(in.refused).status().Err()
	}
	no, err := r.take(ctx, in.body, in.mine)
	if err != nil {
		return nil, verdictOf(err).status().Err()
	}
	out, err := answer(no).MarshalProto()
	if err != nil {
		return nil, err
	}
	return &raw{body: out}, nil
}

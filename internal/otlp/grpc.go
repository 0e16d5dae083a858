package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // senders compress with it by default
	"google.golang.org/grpc/encoding/proto"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// Limits of the gRPC server.
const (
	// maxCalls under way at once: a message is in memory before it is looked at.
	maxCalls = 64
	// maxStreams of one connection.
	maxStreams        = 64
	maxHeaderBytes    = 64 << 10
	connectionTimeout = 10 * time.Second
	// pingAfter finds senders that are gone without a word; pingWait is how long one may take to answer.
	pingAfter = 2 * time.Minute
	pingWait  = 20 * time.Second
	// leastPing is how often senders may ping: proxies and agents do so every 10 s or more.
	leastPing = 10 * time.Second
)

const (
	serviceName  = "opentelemetry.proto.collector.logs.v1.LogsService"
	exportMethod = "/" + serviceName + "/Export"
	healthPrefix = "/grpc.health.v1.Health/"
)

// Guarding is how a gRPC server is protected and watched; the zero value is not at all.
type Guarding struct {
	TLS *tls.Config
	// Interceptor lets a call pass or fails it, once its message is read; the health
	// service is open, as /healthz is. nil: all may.
	Interceptor grpc.UnaryServerInterceptor
	// Trace makes spans of calls; nil: none are made.
	Trace grpc.ServerOption
}

// NewServer is a gRPC server of the logs service and of health.
func NewServer(r *Receiver, g Guarding) *grpc.Server {
	opts := []grpc.ServerOption{
		grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2(proto.Name)}),
		grpc.MaxRecvMsgSize(MaxBodyBytes), grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(connectionTimeout), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
		grpc.InTapHandle(admit(make(chan struct{}, maxCalls))),
	}
	if g.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(g.TLS)))
	}
	if g.Trace != nil {
		opts = append(opts, g.Trace)
	}
	if g.Interceptor != nil {
		opts = append(opts, grpc.UnaryInterceptor(guarded(g.Interceptor)))
	}
	s := grpc.NewServer(opts...)
	s.RegisterService(&logsService, r)
	healthpb.RegisterHealthServer(s, health{ready: r.Ready})
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

// admit bounds the calls under way before anything of them but their headers is read.
// Who finds no place is told UNAVAILABLE, which may be tried again without a RetryInfo.
func admit(places chan struct{}) tap.ServerInHandle {
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		if strings.HasPrefix(info.FullMethodName, healthPrefix) {
			return ctx, nil // a busy process is not a dead one
		}
		select {
		case places <- struct{}{}:
			context.AfterFunc(ctx, func() { <-places }) // it ends with the call
			return ctx, nil
		default:
			return ctx, status.Error(codes.Unavailable, errBusy.Error())
		}
	}
}

func guarded(guard grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if strings.HasPrefix(info.FullMethod, healthPrefix) {
			return next(ctx, req)
		}
		return guard(ctx, req, info, next)
	}
}

// logsService is the service that plogotlp has, on the message's bytes: they are counted
// before they are decoded, and a bad message is INVALID_ARGUMENT.
var logsService = grpc.ServiceDesc{
	ServiceName: serviceName, HandlerType: (*any)(nil), Metadata: "opentelemetry/proto/collector/logs/v1/logs_service.proto",
	Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: export}},
}

func export(srv any, ctx context.Context, read func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
	in := &raw{}
	if err := read(in); err != nil {
		return nil, err
	}
	call := func(ctx context.Context, req any) (any, error) { return srv.(*Receiver).export(ctx, *req.(*raw)) }
	if around == nil {
		return call(ctx, in)
	}
	return around(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: exportMethod}, call)
}

func (r *Receiver) export(ctx context.Context, body raw) (*raw, error) {
	mine := r.share()
	defer mine.release()
	if err := mine.grow(int64(len(body))); err != nil {
		r.end(ctx, 0, rejected{}, err)
		return nil, verdictOf(err).status().Err()
	}
	no, err := r.take(ctx, body, mine)
	if err != nil {
		return nil, verdictOf(err).status().Err()
	}
	out, err := answer(no).MarshalProto()
	if err != nil {
		return nil, err
	}
	return (*raw)(&out), nil
}

// raw is a message as it is on the wire.
type raw []byte

// rawCodec passes raw messages through, and all others to the usual codec.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(*raw); ok {
		return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if b, ok := v.(*raw); ok {
		*b = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

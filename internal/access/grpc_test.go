package access

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// health is a service with a stream.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (h *health) Watch(_ *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	if Caller(stream.Context()) != "one" {
		return status.Error(codes.Internal, "nobody called")
	}
	return stream.Send(&grpc_health_v1.HealthCheckResponse{})
}

func TestGRPC(t *testing.T) {
	token, one := entryOf(t, "one", "append")
	reader, two := entryOf(t, "two", "read")
	r := open(t, one.Line(), two.Line())
	server := grpc.NewServer(grpc.StreamInterceptor(r.StreamInterceptor(Append)))
	grpc_health_v1.RegisterHealthServer(server, &health{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := grpc_health_v1.NewHealthClient(conn)
	as := func(tokens ...string) context.Context {
		ctx := t.Context()
		for _, token := range tokens {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		return ctx
	}
	for name, c := range map[string]struct {
		ctx  context.Context
		want codes.Code
	}{
		"none": {as(), codes.Unauthenticated}, "unknown": {as(NewToken()), codes.Unauthenticated}, "two": {as(token, token), codes.Unauthenticated},
		"no scope": {as(reader), codes.PermissionDenied}, "right": {as(token), codes.OK},
	} {
		answers, err := client.Watch(c.ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			_, err = answers.Recv()
		}
		if status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if log := r.log.String(); strings.Contains(log, token) || strings.Contains(log, reader) || !strings.Contains(log, "/grpc.health.v1.Health/Watch") {
		t.Errorf("the log:\n%s", log)
	}
}

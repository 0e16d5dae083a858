package otlp

import (
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// healthService is grpc.health.v1.Health as streams of one message: see logsService. It does
// not serve Watch, which clients take as "no health checks".
var healthService = grpc.ServiceDesc{
	ServiceName: healthName, HandlerType: (*any)(nil), Metadata: "grpc/health/v1/health.proto",
	Streams: []grpc.StreamDesc{{StreamName: "Check", ServerStreams: true, Handler: check}},
}

// health answers for the whole server ("") and for the logs service what /readyz would.
type health struct {
	ready  func() error
	within time.Duration
	places chan struct{} // of their own: a busy process is not a dead one
}

func check(srv any, stream grpc.ServerStream) error {
	h := srv.(*health)
	return admit(h.places, func() error {
		mine := &share{all: semaphore.NewWeighted(maxCheckBytes)}
		in, req := &raw{mine: mine}, &healthpb.HealthCheckRequest{}
		if err := receive(stream, in, h.within); err != nil {
			return err
		}
		if in.refused != nil || proto.Unmarshal(in.body, req) != nil {
			return status.Error(codes.InvalidArgument, "not a health check")
		}
		out, err := h.check(req.GetService())
		if err != nil {
			return err
		}
		return stream.SendMsg(out)
	})
}

// check says SERVING while appends are taken.
func (h *health) check(service string) (*healthpb.HealthCheckResponse, error) {
	if service != "" && service != serviceName {
		return nil, status.Error(codes.NotFound, "no such service")
	}
	out := &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}
	if h.ready != nil && h.ready() != nil { // why not, /readyz tells
		out.Status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	return out, nil
}

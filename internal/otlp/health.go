package otlp

import (
	"context"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// health answers for the whole server ("") and for the logs service what /readyz would.
// It does not serve Watch, which clients take as "no health checks".
type health struct {
	healthpb.UnimplementedHealthServer
	ready func() error
}

// Check says SERVING while appends are taken.
func (h health) Check(_ context.Context, in *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if in.GetService() != "" && in.GetService() != serviceName {
		return nil, status.Error(codes.NotFound, "no such service")
	}
	out := &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}
	if h.ready != nil && h.ready() != nil { // why not, /readyz tells
		out.Status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	return out, nil
}

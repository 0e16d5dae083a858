package access

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// UnaryInterceptor lets calls through whose token has the scope. There is none for streams:
// no service here has one that needs a token.
func (t *Tokens) UnaryInterceptor(scope string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		ctx, err := t.allow(ctx, scope, info.FullMethod)
		if err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// allow decides on a call's metadata.
func (t *Tokens) allow(ctx context.Context, scope, method string) (context.Context, error) {
	v, e := t.decide(scope, metadata.ValueFromIncomingContext(ctx, "authorization"))
	from := ""
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr.String()
	}
	// method is one that is registered: gRPC answers others itself.
	t.count(v, e, attempt{what: method, from: from, scope: scope})
	if v == granted {
		return context.WithValue(ctx, callerKey{}, e.Name), nil
	}
	p, _ := problemOf(v, scope)
	code := codes.Unauthenticated
	if v == lacking {
		code = codes.PermissionDenied
	}
	return ctx, status.Error(code, p.Title+": "+p.Detail)
}

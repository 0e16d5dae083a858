package access

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// StreamInterceptor lets calls through whose token has the scope, by their headers: nothing
// else is read of those that have none. There is none for unary calls, of which grpc reads
// the message before it asks: no service here has one that needs a token.
func (t *Tokens) StreamInterceptor(scope string) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx, err := t.allow(stream.Context(), scope, info.FullMethod)
		if err != nil {
			return err
		}
		return next(srv, &named{stream, ctx})
	}
}

// named is a stream whose context has its caller's name.
type named struct {
	grpc.ServerStream
	ctx context.Context // the stream's own, with the name
}

func (n *named) Context() context.Context { return n.ctx }

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

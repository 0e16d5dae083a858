package access

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// UnaryInterceptor lets calls through whose token has the scope.
func (t *Tokens) UnaryInterceptor(scope string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		ctx, err := t.allow(ctx, scope, info.FullMethod)
		if err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// StreamInterceptor does so for streams. A stream that goes on after its token was revoked
// ends with its context.
func (t *Tokens) StreamInterceptor(scope string) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx, err := t.allow(stream.Context(), scope, info.FullMethod)
		if err != nil {
			return err
		}
		// allow granted it a moment ago by this header.
		token, _ := bearer(metadata.ValueFromIncomingContext(ctx, "authorization"))
		h, err := HashOf(token)
		if err != nil {
			return status.Error(codes.Unauthenticated, "send the metadata authorization: Bearer TOKEN")
		}
		ctx, cancel := context.WithCancelCause(ctx)
		s := &session{hash: h, scope: scope, end: func() { cancel(ErrRevoked) }}
		t.begin(s)
		defer func() {
			t.finish(s)
			cancel(nil)
		}()
		return next(srv, &streamIn{stream, ctx})
	}
}

// streamIn is a stream whose context is ours.
type streamIn struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // the interface of a stream is a context's holder
}

func (s *streamIn) Context() context.Context { return s.ctx }

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

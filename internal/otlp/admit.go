package otlp

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// Limits of gRPC calls.
const (
	// maxCalls under way at once: a message is in memory before it is looked at.
	maxCalls = 64
	// maxChecks of health under way at once. They need no token, and grpc reads as large a
	// message for them as for logs.
	maxChecks = 32
	// checkTime is how long the few bytes of a health check may take: who only holds a place
	// of those has to come again and again.
	checkTime = 2 * time.Second
	// messageTime is how long a message may take after its headers: as long as the largest
	// one at the pace that a body over HTTP has to keep (10 s, then 256 KiB a second).
	messageTime = 10*time.Second + MaxBodyBytes/(256<<10)*time.Second
)

// admit takes a place for as long as call runs. Who finds none is told UNAVAILABLE, which
// may be tried again without a RetryInfo.
func admit(places chan struct{}, call func() error) error {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return call()
	default:
		return status.Error(codes.Unavailable, errBusy.Error())
	}
}

// cuttable makes calls' contexts such that receive can end them: grpc gives a handler no
// other way to stop waiting for a message.
func cuttable(ctx context.Context, _ *tap.Info) (context.Context, error) {
	inner, cut := context.WithCancelCause(ctx) // it ends with the call's own
	return context.WithValue(&late{inner}, cutKey{}, cut), nil
}

// cutKey is where a call's context has what ends it.
type cutKey struct{}

// late says of a call that receive has ended what grpc is to tell its sender, who may try
// again: DEADLINE_EXCEEDED.
type late struct{ context.Context }

func (l *late) Err() error {
	if errors.Is(context.Cause(l.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return l.Context.Err()
}

// receive reads the one message of a call. One that does not come in time ends the call: its
// headers alone would hold a place for ever.
func receive(stream grpc.ServerStream, message any, within time.Duration) error {
	cut := stream.Context().Value(cutKey{}).(context.CancelCauseFunc)
	timer := time.AfterFunc(within, func() { cut(context.DeadlineExceeded) })
	defer timer.Stop()
	return stream.RecvMsg(message)
}

package otlp

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const checkMethod = healthPrefix + "Check"

// headersOnly begins n calls of a method, of which nothing but the headers is sent, on a
// connection of their own.
func headersOnly(t *testing.T, target, method string, n int) (out []grpc.ClientStream) {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for range n {
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// ends waits for the server's answer to each call.
func ends(t *testing.T, calls []grpc.ClientStream, code codes.Code, text string) {
	t.Helper()
	for i, s := range calls {
		done := make(chan error, 1)
		go func() { done <- s.RecvMsg(&healthpb.HealthCheckResponse{}) }()
		select {
		case err := <-done:
			if status.Code(err) != code || !strings.Contains(err.Error(), text) {
				t.Errorf("call %d: %v, want %v %s", i, err, code, text)
			}
		case <-time.After(time.Minute):
			t.Fatalf("call %d has no answer", i)
		}
	}
}

// filled waits until all places are taken.
func filled(t *testing.T, places chan struct{}) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(places) < cap(places); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d places are taken", len(places), cap(places))
		}
	}
}

// TestFloodOfStrangers: calls without a token are refused by their headers. They hold no
// place, and nothing of their messages is waited for.
func TestFloodOfStrangers(t *testing.T) {
	guard := func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if len(metadata.ValueFromIncomingContext(stream.Context(), "authorization")) == 0 {
			return status.Error(codes.Unauthenticated, "who are you")
		}
		return next(srv, stream)
	}
	l := newLog()
	conn, _ := server(t, receiver(t, l, nil), Guarding{Interceptor: guard}, time.Second)
	ends(t, headersOnly(t, conn.Target(), exportMethod, maxCalls), codes.Unauthenticated, "who are you")
	known := metadata.AppendToOutgoingContext(t.Context(), "authorization", "x")
	if err := conn.Invoke(known, exportMethod, &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{}); err != nil {
		t.Error(err)
	}
}

// TestFloodOfHeaders: who sends no message loses its place in time, and its sender may try
// again; then the others go on.
func TestFloodOfHeaders(t *testing.T) {
	r := receiver(t, newLog(), nil)
	r.message = 5 * time.Second // from the headers of each to the first that finds no place, on a loaded machine, too
	conn, _ := server(t, r, Guarding{}, time.Second)
	calls := headersOnly(t, conn.Target(), exportMethod, maxCalls)
	filled(t, r.calls)
	_, err := export1(conn, batch(1, "a"))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("beside as many calls as there are places: %v", err)
	}
	for end := time.Now().Add(time.Minute); err != nil; _, err = export1(conn, batch(1, "a")) {
		if status.Code(err) != codes.Unavailable || time.Now().After(end) {
			t.Fatalf("it never finds a place: %v", err)
		}
	}
	ends(t, calls, codes.DeadlineExceeded, "")
}

// TestFloodOfChecks: health has places of its own, which come back by themselves.
func TestFloodOfChecks(t *testing.T) {
	r := receiver(t, newLog(), nil)
	r.check = 5 * time.Second // as above
	conn, _ := server(t, r, Guarding{}, time.Second)
	calls := headersOnly(t, conn.Target(), checkMethod, maxChecks)
	filled(t, r.checks)
	if _, err := export1(conn, batch(1, "a")); err != nil {
		t.Error(err)
	}
	check := func() error {
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		return err
	}
	err := check()
	if status.Code(err) != codes.Unavailable {
		t.Errorf("beside as many checks as there are places: %v", err)
	}
	for end := time.Now().Add(time.Minute); err != nil; err = check() {
		if status.Code(err) != codes.Unavailable || time.Now().After(end) {
			t.Fatalf("it never finds a place: %v", err)
		}
	}
	ends(t, calls, codes.DeadlineExceeded, "")
	ends(t, headersOnly(t, conn.Target(), healthPrefix+"Watch", 1), codes.Unimplemented, "")
}

// TestGRPCMemory: a message beyond what all may take is to be sent again, and nothing of it is kept.
func TestGRPCMemory(t *testing.T) {
	l := newLog()
	r := receiver(t, l, nil)
	conn, _ := server(t, r, Guarding{}, time.Second)
	if !r.memory.TryAcquire(MaxMemory) {
		t.Fatal("some of the memory is taken")
	}
	_, err := export1(conn, batch(1, "a"))
	if status.Code(err) != codes.ResourceExhausted || retryOf(status.Convert(err).Proto()) == 0 || r.Counts().Later != 1 || len(l.calls) != 0 {
		t.Errorf("%v, %+v, %d appends", err, r.Counts(), len(l.calls))
	}
	r.memory.Release(MaxMemory)
	if _, err := export1(conn, batch(1, "a")); err != nil {
		t.Error(err)
	}
}

package postgres

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/strandline/strandline/catalog"
)

// refusing is a server that ends every session at its begin with a code, until the test ends.
func refusing(t *testing.T, code string) (dsn string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := pgproto3.NewBackend(c, c)
			if _, err := b.ReceiveStartupMessage(); err == nil {
				b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "injected"})
				_ = b.Flush() // a client that went away tried again
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "postgres://strandline@" + l.Addr().String() + "/strandline?sslmode=disable"
}

// TestNoSession: a server on a full disk, which cannot begin a session, is away; one that says
// that its data is damaged is not waited for.
func TestNoSession(t *testing.T) {
	for code, want := range map[string]error{codeInternal: catalog.ErrUnavailable, "XX001": catalog.ErrCorrupt, "XX002": catalog.ErrCorrupt} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, err := Open(ctx, Options{DSN: refusing(t, code)})
		cancel()
		if !errors.Is(err, want) || codeOf(err) != code {
			t.Errorf("%s: %v, want %v", code, err, want)
		}
	}
	if err := mapError("a verb", refused(codeInternal)); !errors.Is(err, catalog.ErrCorrupt) {
		t.Errorf("in a session: %v", err)
	}
}

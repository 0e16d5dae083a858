//go:build unix

package pgserver

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
)

// shared is the one server of a test binary. It is package-level state on purpose: a
// server takes a second to start, and tests of one binary have no other place to meet.
// Its keeper ends it with the binary.
var shared struct {
	sync.Mutex
	server *Server
}

// Start runs a server for one test, which may stop, kill and restart it.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.endWith(t)
	return s
}

func (s *Server) endWith(t testing.TB) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of PostgreSQL on port %d:\n%s", s.port, s.Log())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Shared is the test binary's server. No test may end it, so that none can lose what a
// power cut would take: it runs without fsync.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		s, err := Open(context.Background(), Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		shared.server = s
	}
	return shared.server
}

// NewDatabase is the DSN of an empty database on the test binary's server.
func NewDatabase(t testing.TB) string {
	t.Helper()
	return Shared(t).NewDatabase(t)
}

// NewDatabase is the DSN of an empty database of the test's own. It is dropped with the
// test, under whoever is still connected.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	name := "t_" + strings.ToLower(rand.Text())[:20]
	ctx := context.Background()
	if err := s.exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal("creating a database: ", err)
	}
	t.Cleanup(func() {
		if !s.Running() {
			return // it goes with the server's directory
		}
		if err := s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error("dropping the database: ", err)
		}
	})
	return DSN(name, s)
}

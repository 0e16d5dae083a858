//go:build unix

package realstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// shared holds the one server of each kind that a test binary runs. It is package-level
// state on purpose: a server takes a second to start, and tests of one binary have no
// other place to meet. Main closes it.
var shared = struct {
	sync.Mutex
	servers map[Kind]*Server
	dirs    []string
}{servers: make(map[Kind]*Server)}

// Main runs a test binary's tests and then stops the servers they started:
//
//	func TestMain(m *testing.M) { os.Exit(realstore.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the test servers:", err)
		return max(code, 1)
	}
	return code
}

func closeShared() error {
	shared.Lock()
	defer shared.Unlock()
	var errs []error
	for kind, s := range shared.servers {
		errs = append(errs, s.Stop())
		delete(shared.servers, kind)
	}
	for _, dir := range shared.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	shared.dirs = nil
	return errors.Join(errs...)
}

// Minio is the test binary's MinIO server. The test must not stop it.
func Minio(t testing.TB) *Server {
	t.Helper()
	return sharedServer(t, KindMinio)
}

// Versitygw is the test binary's versitygw server. The test must not stop it.
func Versitygw(t testing.TB) *Server {
	t.Helper()
	return sharedServer(t, KindVersitygw)
}

func sharedServer(t testing.TB, kind Kind) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	s := shared.servers[kind]
	if s == nil {
		dir, err := os.MkdirTemp("", "strandline-"+string(kind)+"-")
		if err != nil {
			t.Fatal(err)
		}
		shared.dirs = append(shared.dirs, dir)
		if s, err = Start(context.Background(), kind, dir); err != nil {
			t.Fatal(err)
		}
		shared.servers[kind] = s
	}
	s.logTo(t)
	return s
}

// Own starts a server for one test, which may kill and restart it.
func Own(t testing.TB, kind Kind, secure bool) *Server {
	t.Helper()
	s, err := start(context.Background(), kind, t.TempDir(), secure)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.logTo(t)
	return s
}

func (s *Server) logTo(t testing.TB) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s at %s:\n%s", s.Kind, s.URL, s.Log())
		}
	})
}

// NewBucket makes a bucket of its own for a test. It goes with the server's data.
func (s *Server) NewBucket(t testing.TB) string {
	t.Helper()
	name := "t-" + strings.ToLower(rand.Text())[:20]
	if err := s.CreateBucket(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	return name
}

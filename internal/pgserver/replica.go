//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Standby makes a copy of the server that streams from it. synchronous: from now on a
// commit is acknowledged only when the copy has it on its disk, too. It ends with the test.
func (s *Server) Standby(t testing.TB, synchronous bool) *Server {
	t.Helper()
	standby, err := s.OpenStandby(context.Background(), synchronous)
	if err != nil {
		t.Fatal(err)
	}
	standby.endWith(t)
	return standby
}

// OpenStandby is Standby for a program; the caller closes it.
func (s *Server) OpenStandby(ctx context.Context, synchronous bool) (*Server, error) {
	standby, err := prepare(ctx, s.options)
	if err != nil {
		return nil, err
	}
	standby.primary, standby.password = s, s.password // a copy has the primary's users
	if err := standby.copyFrom(ctx, synchronous); err != nil {
		return nil, errors.Join(err, standby.Close())
	}
	return standby, nil
}

func (s *Server) copyFrom(ctx context.Context, synchronous bool) error {
	err := s.runTool(ctx, "pg_basebackup", "--pgdata", s.data(), "--host", "127.0.0.1", "--port", strconv.Itoa(s.primary.port),
		"--username", superuser, "--wal-method", "stream", "--checkpoint", "fast", "--no-sync")
	if err != nil {
		return err
	}
	if err := s.writeSettings(); err != nil { // postgresql.conf includes it already, it came with the copy
		return err
	}
	if err := s.writeFile(filepath.Join("data", "standby.signal"), ""); err != nil {
		return err
	}
	if err := s.firstRun(ctx); err != nil {
		return err
	}
	if err := s.primary.awaitStandby(ctx, s.name, "state = 'streaming'"); err != nil || !synchronous {
		return err
	}
	if err := s.primary.await(ctx, append(slices.Clone(s.primary.awaiting()), s.name)); err != nil {
		return err
	}
	return s.primary.awaitStandby(ctx, s.name, "sync_state = 'sync'")
}

// await names the standbys that a commit waits for, from now on and after a restart.
func (s *Server) await(ctx context.Context, standbys []string) error {
	s.mu.Lock()
	s.awaits = standbys
	s.mu.Unlock()
	if err := s.writeSettings(); err != nil {
		return err
	}
	return s.exec(ctx, "SELECT pg_reload_conf()")
}

func (s *Server) awaiting() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaits
}

// awaitStandby waits until a standby is in a state, as the primary sees it.
func (s *Server) awaitStandby(ctx context.Context, name, state string) error {
	return until(ctx, "standby "+name+" has "+state, func(ctx context.Context) (is bool, err error) {
		err = s.query(ctx, &is, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = $1 AND "+state+")", name)
		return is, err
	})
}

// CaughtUp waits until a standby that runs has replayed all that its primary has committed.
func (s *Server) CaughtUp(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	var end string
	err := s.primary.query(ctx, &end, "SELECT pg_current_wal_lsn()::text")
	if err == nil {
		err = until(ctx, "the standby has replayed what was committed", func(ctx context.Context) (is bool, err error) {
			err = s.query(ctx, &is, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", end)
			return is, err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Promote makes a standby the primary and returns when it takes writes. Of what its
// primary committed it has what had come over: all, if it was synchronous.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if err := s.PromoteNow(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// PromoteNow is Promote for a program.
func (s *Server) PromoteNow(ctx context.Context) error {
	var done bool
	if err := s.query(ctx, &done, "SELECT pg_promote(true, 60)"); err != nil {
		return fmt.Errorf("promoting the standby: %w", err)
	}
	if !done {
		return errors.New("promoting the standby: it did not become the primary within 60 s")
	}
	s.mu.Lock()
	s.primary = nil
	s.mu.Unlock()
	// The file that made it a standby is gone by now; a restart must not find the name of
	// the old primary, either.
	if _, err := os.Stat(filepath.Join(s.data(), "standby.signal")); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(errors.New("the promoted server is still marked a standby"), err)
	}
	return s.writeSettings()
}

// exec runs one statement as the superuser.
func (s *Server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// query reads one value.
func (s *Server) query(ctx context.Context, into any, statement string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	return errors.Join(conn.QueryRow(ctx, statement, args...).Scan(into), conn.Close(ctx))
}

//go:build unix

package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("PGSERVER_HOLD"); dir != "" {
		hold(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// hold runs a server until it is killed, for TestKeeper.
func hold(string) {
	s, err := Open(context.Background(), Options{NoSync: true})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(s.dir, s.cmd.Process.Pid)
	select {} // until SIGKILL
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the server may be gone by then
	return conn
}

func run(t *testing.T, conn *pgx.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func text(t *testing.T, conn *pgx.Conn, statement string) (v string) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), statement).Scan(&v); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return v
}

// TestShared: one server, databases that know nothing of each other, no fsync.
func TestShared(t *testing.T) {
	if first, second := Shared(t), Shared(t); first != second {
		t.Fatal("two servers in one test binary")
	}
	one, other := connect(t, NewDatabase(t)), connect(t, NewDatabase(t))
	run(t, one, "CREATE TABLE x (a int)")
	run(t, other, "CREATE TABLE x (a int)") // would be refused in the same database
	if got := text(t, one, "SHOW fsync"); got != "off" {
		t.Fatalf("fsync of the shared server: %s", got)
	}
	if os.Geteuid() == 0 {
		info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(Shared(t).cmd.Process.Pid)))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid == 0 {
			t.Fatalf("the server runs as root (%v)", err)
		}
	}
}

// TestDatabaseGoes: a test's database is dropped with it, though a client is connected.
func TestDatabaseGoes(t *testing.T) {
	var dsn string
	t.Run("uses", func(st *testing.T) {
		dsn = NewDatabase(st)
		connect(t, dsn) // until the outer test's end
	})
	if conn, err := pgx.Connect(context.Background(), dsn); err == nil {
		t.Fatal("the database of a test that ended is there", conn.Close(context.Background()))
	}
}

// TestPassword: nobody comes in without it.
func TestPassword(t *testing.T) {
	s := Shared(t)
	dsn := strings.Replace(s.DSN(), s.Password(), "guess", 1)
	conn, err := pgx.Connect(context.Background(), dsn)
	if err == nil {
		t.Fatal("came in with another password", conn.Close(context.Background()))
	}
}

// TestKillRestart: a killed server leaves no process, and what was committed is there
// after its restart on the same port.
func TestKillRestart(t *testing.T) {
	s := Start(t, Options{Settings: map[string]string{"work_mem": "3MB"}})
	conn := connect(t, s.DSN())
	for name, want := range map[string]string{"fsync": "on", "work_mem": "3MB", "listen_addresses": "127.0.0.1"} {
		if got := text(t, conn, "SHOW "+name); got != want {
			t.Fatalf("%s is %s, not %s", name, got, want)
		}
	}
	run(t, conn, "CREATE TABLE x AS SELECT 'kept' AS a")
	dsn, pid := s.DSN(), s.cmd.Process.Pid
	children := childrenOf(pid)
	if len(children) < 3 {
		t.Fatalf("children of the server: %v", children)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(children, pid) {
		if !gone(p) {
			t.Errorf("process %d of the killed server runs", p)
		}
	}
	if _, err := pgx.Connect(context.Background(), dsn); err == nil {
		t.Fatal("a killed server answers")
	}
	for _, stop := range []func() error{func() error { return nil }, s.Stop, s.Kill} {
		if err := errors.Join(stop(), s.Restart(context.Background())); err != nil {
			t.Fatal(err)
		}
		if got := text(t, connect(t, dsn), "SELECT a FROM x"); got != "kept" {
			t.Fatal(got)
		}
	}
	if err := errors.Join(s.Stop(), s.Stop()); err != nil || s.Running() {
		t.Fatalf("stopped twice: %v", err)
	}
}

// TestSynchronous: what was committed is on the standby, whenever the primary dies, and a
// multi-host DSN finds the new primary.
func TestSynchronous(t *testing.T) {
	primary := Start(t, Options{})
	standby := primary.Standby(t, true)
	dsn := DSN("postgres", primary, standby)
	conn := connect(t, dsn)
	run(t, conn, "CREATE TABLE x (a int)")
	for i := range 50 {
		run(t, conn, "INSERT INTO x VALUES ($1)", i)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if conn, err := pgx.Connect(context.Background(), dsn); err == nil {
		t.Fatal("a standby passed as one that takes writes", conn.Close(context.Background()))
	}
	standby.Promote(t)
	conn = connect(t, dsn)
	run(t, conn, "INSERT INTO x VALUES (50)") // must not wait for a standby of its own
	if got := text(t, conn, "SELECT count(*)::text FROM x"); got != "51" {
		t.Fatalf("%s of 51 commits are left", got)
	}
}

// TestSynchronousWaits: no commit is acknowledged while the standby is away.
func TestSynchronousWaits(t *testing.T) {
	primary := Start(t, Options{})
	standby := primary.Standby(t, true)
	conn := connect(t, primary.DSN())
	run(t, conn, "CREATE TABLE x (a int)")
	if err := standby.Stop(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "INSERT INTO x VALUES (1)")
		done <- err
	}()
	err := until(context.Background(), "the commit waits", func(ctx context.Context) (is bool, err error) {
		err = primary.query(ctx, &is, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
		return is, err
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Fatalf("acknowledged without the standby: %v", err)
	default:
	}
	if err := standby.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestAsynchronousLoses: a standby that was away is promoted without what it missed, and
// two standbys are told apart.
func TestAsynchronousLoses(t *testing.T) {
	primary := Start(t, Options{})
	standby, other := primary.Standby(t, false), primary.Standby(t, false)
	conn := connect(t, primary.DSN())
	run(t, conn, "CREATE TABLE x (a int)")
	standby.CaughtUp(t)
	if got := text(t, connect(t, standby.DSN()), "SELECT to_regclass('x')::text"); got != "x" {
		t.Fatalf("the table is not on the standby: %q", got)
	}
	if err := standby.Stop(); err != nil {
		t.Fatal(err)
	}
	run(t, conn, "INSERT INTO x VALUES (1)")
	if err := errors.Join(primary.Kill(), other.Stop(), standby.Restart(context.Background())); err != nil {
		t.Fatal(err)
	}
	standby.Promote(t)
	conn = connect(t, standby.DSN())
	if got := text(t, conn, "SELECT count(*)::text FROM x"); got != "0" {
		t.Fatalf("the standby has %s rows that it could not have", got)
	}
	if err := standby.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	run(t, connect(t, standby.DSN()), "INSERT INTO x VALUES (2)") // still the primary
}

// TestKeeper: a test binary that is killed leaves neither a server nor its directory.
func TestKeeper(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PGSERVER_HOLD=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var dir string
	var pid int
	if _, err2 := fmt.Sscan(line, &dir, &pid); err != nil || err2 != nil || gone(pid) {
		t.Fatalf("no server: %q %v %v", line, err, err2)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if !awaitEnd(stopTimeout, pid) {
		t.Fatalf("the server %d outlives its test binary", pid)
	}
	if err := until(context.Background(), "the directory is removed", func(context.Context) (bool, error) {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist), nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestStartFails: a server that cannot run is an error with its log, not a wait.
func TestStartFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := Open(ctx, Options{NoSync: true, Settings: map[string]string{"shared_buffers": "none"}})
	if err == nil {
		t.Fatal("started", s.Close())
	}
	if !strings.Contains(err.Error(), "shared_buffers") || ctx.Err() != nil {
		t.Fatalf("does not say why: %v", err)
	}
}

//go:build unix

package pgserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	readyTimeout = 60 * time.Second // a loaded CI machine; usually under 1 s
	stopTimeout  = 20 * time.Second
	pollEvery    = 20 * time.Millisecond
	startTries   = 3 // another process may take the port between its choice and the start
)

// Server is a PostgreSQL server. Its methods are safe for concurrent use, but only one
// goroutine at a time may start or end it.
type Server struct {
	name     string // as a standby calls itself
	bin, dir string
	port     int
	password string
	options  Options
	primary  *Server // whose standby this one is; nil after promotion
	owner    *syscall.Credential
	keeper   *keeper

	mu     sync.Mutex // cmd, awaits
	cmd    *exec.Cmd
	awaits []string // standbys that a commit waits for
}

// Open installs PostgreSQL if need be and runs a new, empty server until Close.
func Open(ctx context.Context, o Options) (*Server, error) {
	s, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.initialise(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.firstRun(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare makes the directory, and whoever removes it.
func prepare(ctx context.Context, o Options) (*Server, error) {
	bin, err := debian().programs(ctx)
	if err != nil {
		return nil, err
	}
	owner, err := runAs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "strandline-pg-") // short: a socket's path has about 100 bytes
	if err != nil {
		return nil, err
	}
	s := &Server{name: "s" + strings.ToLower(rand.Text())[:8], bin: bin, dir: dir, password: rand.Text(), options: o, owner: owner}
	if s.keeper, err = keep(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.owned(dir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// runAs is the user that the server runs as; nil: ourselves.
func runAs() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres to run it as: %w; add that user, or run the tests as an ordinary one", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// owned gives a file to the server's user.
func (s *Server) owned(path string) error {
	if s.owner == nil {
		return nil
	}
	return os.Chown(path, int(s.owner.Uid), int(s.owner.Gid))
}

// command prepares one of PostgreSQL's programs, as the server's user. It sees nothing
// of our environment: a PGHOST of the user's shell must not lead it elsewhere.
func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "PGPASSWORD=" + s.password}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	return cmd
}

func (s *Server) runTool(ctx context.Context, name string, args ...string) error {
	out, err := s.command(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, tail(out))
	}
	return nil
}

// initialise makes the data directory. The files need no fsync: a machine that loses its
// power now starts the test anew.
func (s *Server) initialise(ctx context.Context) error {
	if err := s.writeFile("password", s.password+"\n"); err != nil {
		return err
	}
	err := s.runTool(ctx, "initdb", "--pgdata", s.data(), "--username", superuser, "--pwfile", filepath.Join(s.dir, "password"),
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if err != nil {
		return err
	}
	return s.include()
}

// include has postgresql.conf read our settings, last.
func (s *Server) include() error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\ninclude '" + confName + "'\n")
	return errors.Join(err, f.Close(), s.writeSettings())
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// firstRun finds a port and starts the server on it.
func (s *Server) firstRun(ctx context.Context) error {
	var err error
	for range startTries {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.run(ctx); err == nil {
			return nil
		}
	}
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// run starts the process and waits until it answers.
func (s *Server) run(ctx context.Context) error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor, and we wrote nothing
	cmd := s.command(context.Background(), "postgres", "-D", s.data(), "-p", strconv.Itoa(s.port))
	cmd.Cancel = nil
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting postgres: %w", err)
	}
	s.mu.Lock()
	s.cmd = cmd
	s.mu.Unlock()
	if err := s.keeper.watch(cmd.Process.Pid); err != nil {
		return errors.Join(err, s.Kill())
	}
	if err := s.awaitReady(ctx, cmd.Process.Pid); err != nil {
		return errors.Join(fmt.Errorf("%w\nlog: %s", err, s.Log()), s.Kill())
	}
	return nil
}

func (s *Server) awaitReady(ctx context.Context, pid int) error {
	return until(ctx, "the server answers", func(ctx context.Context) (bool, error) {
		if gone(pid) {
			return false, errors.New("postgres ended before it served")
		}
		conn, err := pgx.Connect(ctx, s.DSN())
		if err != nil {
			return false, nil //nolint:nilerr // not yet; the log says more if it stays so
		}
		return true, conn.Close(ctx)
	})
}

// until asks again and again, for at most readyTimeout.
func until(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ok, err := ask(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// DSN is the URL of the server's first database. It holds the password.
func (s *Server) DSN() string { return DSN("postgres", s) }

// DSN is the URL of a database on several servers, of which the primary is meant. All of
// them must be copies of the first.
func DSN(database string, servers ...*Server) string {
	hosts := make([]string, len(servers))
	for i, s := range servers {
		hosts[i] = "127.0.0.1:" + strconv.Itoa(s.port)
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, servers[0].password), Host: strings.Join(hosts, ","), Path: "/" + database}
	query := url.Values{"sslmode": {"disable"}}
	if len(servers) > 1 {
		query.Set("target_session_attrs", "read-write")
		query.Set("connect_timeout", "2")
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Password is what the DSN holds, for tests that look for it where it must not be.
func (s *Server) Password() string { return s.password }

// Log is the end of what the server printed.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(tail(text))
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

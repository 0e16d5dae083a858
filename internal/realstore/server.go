//go:build unix

package realstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/strandline/strandline/internal/child"
)

// Kind is a server program.
type Kind string

// The servers.
const (
	KindMinio     Kind = "minio"
	KindVersitygw Kind = "versitygw"
)

const (
	readyTimeout = 60 * time.Second // a loaded CI machine; usually under 2 s
	stopTimeout  = 20 * time.Second
	pollEvery    = 25 * time.Millisecond
	startTries   = 3 // another process may take the port between its choice and the start
	logTail      = 16 << 10
)

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	Kind      Kind
	Endpoint  string // host:port
	URL       string // http://host:port, or https
	CAFile    string // certificate to trust, if TLS
	AccessKey string
	SecretKey string

	binary string
	dir    string
	tls    bool

	mu   sync.Mutex
	proc *process
}

// Start builds the server if need be and runs it with its data under dir, until Stop.
func Start(ctx context.Context, kind Kind, dir string) (*Server, error) {
	return start(ctx, kind, dir, false)
}

// start is Start; secure: behind a certificate of its own, in CAFile.
func start(ctx context.Context, kind Kind, dir string, secure bool) (*Server, error) {
	binary, err := Build(ctx, string(kind))
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Kind: kind, AccessKey: "strandline-access", SecretKey: "strandline-secret-key",
		binary: binary, dir: dir, tls: secure,
	}
	for _, sub := range []string{"data", "certs", "home"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("making the folders of a %s server: %w", kind, err)
		}
	}
	if secure {
		if s.CAFile, err = writeCertificate(filepath.Join(dir, "certs")); err != nil {
			return nil, err
		}
	}
	for range startTries {
		if err = s.choosePort(); err != nil {
			return nil, err
		}
		if err = s.run(ctx); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func (s *Server) choosePort() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("looking for a free port: %w", err)
	}
	s.Endpoint = l.Addr().String()
	s.URL = "http://" + s.Endpoint
	if s.tls {
		s.URL = "https://" + s.Endpoint
	}
	return l.Close()
}

// run starts the process and waits until it serves.
func (s *Server) run(ctx context.Context) error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of a %s server: %w", s.Kind, err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor, and we wrote nothing
	cmd := exec.Command(s.binary, s.arguments()...)
	cmd.Env = s.environment()
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = log, log
	gone, err := child.Start(cmd)
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.Kind, err)
	}
	proc := &process{cmd, gone}
	if err := s.awaitReady(ctx, proc); err != nil {
		return errors.Join(fmt.Errorf("%w\nlog: %s", err, s.Log()), proc.end(syscall.SIGKILL))
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	return nil
}

func (s *Server) arguments() []string {
	data := filepath.Join(s.dir, "data")
	if s.Kind == KindMinio {
		args := []string{"server", "--quiet", "--address", s.Endpoint, "--certs-dir", filepath.Join(s.dir, "certs")}
		return append(args, data)
	}
	args := []string{"--port", s.Endpoint, "--keep-alive", "--quiet", "--health", "/health"}
	if s.tls {
		args = append(args, "--cert", filepath.Join(s.dir, "certs", certName), "--key", filepath.Join(s.dir, "certs", keyName))
	}
	return append(args, "posix", data)
}

// environment gives the server its keys and nothing of ours but the path: a variable
// of the user's shell must not configure it.
func (s *Server) environment() []string {
	home := filepath.Join(s.dir, "home")
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home,
		"MINIO_ROOT_USER=" + s.AccessKey, "MINIO_ROOT_PASSWORD=" + s.SecretKey,
		"MINIO_BROWSER=off", "MINIO_UPDATE=off", "MINIO_CI_CD=on",
		"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey,
	}
}

func (s *Server) awaitReady(ctx context.Context, proc *process) error {
	path := "/health"
	if s.Kind == KindMinio {
		path = "/minio/health/cluster"
	}
	transport, err := s.transport()
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport, Timeout: time.Second}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if served(ctx, client, s.URL+path) {
			return nil
		}
		select {
		case <-proc.gone:
			return fmt.Errorf("%s ended before it served", s.Kind)
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve at %s: %w", s.Kind, s.URL, ctx.Err())
		case <-tick.C:
		}
	}
}

func served(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	return errors.Join(err, resp.Body.Close()) == nil && resp.StatusCode == http.StatusOK
}

// CreateBucket makes a bucket; one that is there already is an error.
func (s *Server) CreateBucket(ctx context.Context, name string) error {
	transport, err := s.transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	client, err := minio.New(s.Endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""), Secure: s.tls,
		Region: "us-east-1", MaxRetries: 1, Transport: transport,
	})
	if err != nil {
		return err
	}
	if err := client.MakeBucket(ctx, name, minio.MakeBucketOptions{Region: "us-east-1"}); err != nil {
		return fmt.Errorf("creating bucket %s: %w", name, err)
	}
	return nil
}

// Stop ends the server and waits for it. A stopped server may be restarted.
func (s *Server) Stop() error { return s.end(syscall.SIGTERM) }

// Kill ends the server as a crash would.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Restart runs the server again on the same port and data, after Stop or Kill if it
// still runs.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.run(ctx)
}

func (s *Server) end(sig syscall.Signal) error {
	s.mu.Lock()
	proc := s.proc
	s.proc = nil
	s.mu.Unlock()
	if proc == nil {
		return nil
	}
	return proc.end(sig)
}

// Log is the end of what the server printed.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-logTail):])
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/strandline/strandline/internal/child"
)

// startWithin holds a recovery while everything else runs on the same two cores.
const startWithin = 60 * time.Second

// Process is a running command.
type Process struct {
	*child.Process
	out *transcript
}

// transcript is what a process says on its standard output.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// launch starts the command with these arguments and what says where bucket and catalog are.
func (s *Site) launch(name string, args ...string) (*Process, error) {
	log := filepath.Join(s.dir, "logs", fmt.Sprintf("%04d-%s.log", s.started.Add(1), name))
	return s.child(name, log, exec.Command(s.Binary, append(args, s.Backend()...)...))
}

// child starts a program that ends when we do.
func (s *Site) child(name, log string, cmd *exec.Cmd) (*Process, error) {
	out := &transcript{}
	cmd.Env, cmd.Dir, cmd.Stdout = s.env, s.dir, out
	p, err := child.Launch(name, log, cmd)
	if err != nil {
		return nil, err
	}
	return &Process{p, out}, nil
}

// Start starts a command that serves, and waits until it says where.
func (s *Site) Start(ctx context.Context, name string, args ...string) (*Process, error) {
	p, err := s.launch(name, args...)
	if err != nil {
		return nil, err
	}
	err = child.Poll(ctx, startWithin, name+" serves", func() (bool, error) {
		return p.Ended() || p.URL() != "", nil
	})
	if err == nil && p.Ended() {
		err = &child.EndedError{Process: p.Process}
	}
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// URL is where it serves HTTP; empty before it said so.
func (p *Process) URL() string { return p.listening("http://") }

func (p *Process) listening(scheme string) string {
	for line := range strings.Lines(p.out.String()) {
		if at, ok := strings.CutPrefix(line, "listening on "); ok && strings.HasPrefix(at, scheme) && strings.HasSuffix(at, "\n") {
			return strings.TrimSpace(at)
		}
	}
	return ""
}

// Stop asks it to end and demands that it does, with 0.
func (p *Process) Stop() error {
	if !p.Ended() {
		if code, err := p.Process.Stop(); err != nil || code == 0 {
			return err
		}
	}
	return &child.EndedError{Process: p.Process}
}

// Run is a command that ends by itself, with 0: what it printed.
func (s *Site) Run(ctx context.Context, args ...string) (string, error) {
	p, err := s.launch(args[0], args...)
	if err != nil {
		return "", err
	}
	return s.finished(ctx, p)
}

func (s *Site) finished(ctx context.Context, p *Process) (string, error) {
	if err := p.Wait(ctx); err != nil {
		return "", err
	}
	if p.Code() != 0 {
		return p.out.String(), &child.EndedError{Process: p.Process}
	}
	return p.out.String(), nil
}

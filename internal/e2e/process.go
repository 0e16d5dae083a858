//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startWithin holds a recovery while everything else runs on the same two cores.
	startWithin = 60 * time.Second
	// endWithin is how long a process may take to end by itself after a signal.
	endWithin = 60 * time.Second
	// shownTail is how much of a log an error shows.
	shownTail = 3000
)

// Process is a running command. Only its own id is ever signalled.
type Process struct {
	Name string
	Log  string // file of its standard error

	cmd  *exec.Cmd
	out  *transcript
	done chan struct{} // closed when it is gone and reaped
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
func (s *Site) child(name, logPath string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, Log: logPath, cmd: cmd, out: &transcript{}, done: make(chan struct{})}
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor, and we write nothing
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.env, s.dir, p.out, log, dieWithUs()
	begun := make(chan error)
	go func() {
		// On Linux the death signal is sent when the thread ends that started the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is asked by Code
		close(p.done)
	}()
	if err := <-begun; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Start starts a command that serves, and waits until it says where.
func (s *Site) Start(ctx context.Context, name string, args ...string) (*Process, error) {
	p, err := s.launch(name, args...)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, startWithin, name+" serves", func() (bool, error) {
		return p.Ended() || p.URL() != "", nil
	})
	if err == nil && p.Ended() {
		err = &EndedError{p}
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

// PID is its id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

func (p *Process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s to %s, process %d: %w", sig, p.Name, p.PID(), err)
	}
	return nil
}

// Kill ends it as a crash would.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop asks it to end and demands that it does, with 0.
func (p *Process) Stop() error {
	if p.Ended() {
		return &EndedError{p}
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		if p.Code() != 0 {
			return &EndedError{p}
		}
		return nil
	case <-time.After(endWithin):
		// Its goroutines, into its log: that is what one wants to see of a process that hangs.
		err := errors.Join(p.signal(syscall.SIGQUIT), fmt.Errorf("%s, process %d, does not end; its goroutines are in %s", p.Name, p.PID(), p.Log))
		select {
		case <-p.done:
		case <-time.After(time.Second):
			err = errors.Join(err, p.Kill())
		}
		return err
	}
}

// Ended says whether it is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Code is the exit code of one that ended; -1: by a signal.
func (p *Process) Code() int { return p.cmd.ProcessState.ExitCode() }

// Said is the end of its standard error.
func (p *Process) Said() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-shownTail):])
}

// EndedError: a process ended by itself, or not with 0.
type EndedError struct{ Process *Process }

func (e *EndedError) Error() string {
	p := e.Process
	return p.Name + " ended: " + p.cmd.ProcessState.String() + "; log " + p.Log + ": " + p.Said()
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
	select {
	case <-p.done:
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), p.Kill())
	}
	if p.Code() != 0 {
		return p.out.String(), &EndedError{p}
	}
	return p.out.String(), nil
}

// poll asks until it is so, at most until the deadline.
func poll(ctx context.Context, within time.Duration, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := so()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %w", what, within, errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

// pause lets time pass between acts. It is pace and waits for nothing; false: ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

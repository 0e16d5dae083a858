//go:build unix

package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// endWithin is how long a process may take to end by itself after a signal.
	endWithin = 60 * time.Second
	// shownTail is how much of a log an error shows.
	shownTail = 3000
)

// Process is a child whose standard error goes to a file.
type Process struct {
	Name string
	Log  string
	Gone <-chan struct{} // closed when it has ended and is reaped

	cmd *exec.Cmd
}

// Launch starts a command; its standard error is appended to the file.
func Launch(name, log string, cmd *exec.Cmd) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the child has its own descriptor, and we write nothing
	cmd.Stderr = f
	gone, err := Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &Process{Name: name, Log: log, Gone: gone, cmd: cmd}, nil
}

// PID is its id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends one; a process that has ended takes any.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s to %s, process %d: %w", sig, p.Name, p.PID(), err)
	}
	return nil
}

// Kill ends it as a crash would, a stopped one too.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Gone
	return nil
}

// Stop asks it to end and gives its exit code.
func (p *Process) Stop() (code int, err error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-p.Gone:
		return p.Code(), nil
	case <-time.After(endWithin):
		// Its goroutines, into its log: that is what one wants to see of a process that hangs.
		err := errors.Join(p.Signal(syscall.SIGQUIT), fmt.Errorf("%s, process %d, does not end; its goroutines are in %s", p.Name, p.PID(), p.Log))
		select {
		case <-p.Gone:
		case <-time.After(time.Second):
			err = errors.Join(err, p.Kill())
		}
		return -1, err
	}
}

// Wait waits until it has ended by itself; at the end of ctx it is killed.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.Gone:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Kill())
	}
}

// Ended says whether it is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.Gone:
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

// EndedError: a process ended by itself, or not as it was to.
type EndedError struct{ *Process }

func (e *EndedError) Error() string {
	return e.Name + " ended: " + e.cmd.ProcessState.String() + "; log " + e.Log + ": " + e.Said()
}

//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// endTimeout is how long a child may take to end by itself after a signal.
const endTimeout = 60 * time.Second

// process is one child. Only its own id is ever signalled.
type process struct {
	name string
	log  string // file of its standard error
	cmd  *exec.Cmd
	done chan struct{} // closed when it is gone and reaped
	err  error         // how it ended, after done
}

// launch starts the command with these arguments. Its standard output goes to out, its
// standard error to a file of its own.
func (s *site) launch(name string, out io.Writer, args ...string) (*process, error) {
	p := &process{name: name, done: make(chan struct{})}
	p.log = filepath.Join(s.logs, fmt.Sprintf("%04d-%s.log", s.started.Add(1), name))
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor, and we write nothing behind it
	fmt.Fprintf(log, "%q\n", args)
	p.cmd = exec.Command(s.binary, args...)
	p.cmd.Env = s.env
	p.cmd.Dir = s.dir
	p.cmd.Stdout, p.cmd.Stderr = out, log
	p.cmd.SysProcAttr = dieWithUs()
	begun := make(chan error)
	go func() {
		// On Linux the death signal is sent when the thread ends that started the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		begun <- err
		if err != nil {
			return
		}
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if err := <-begun; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s to %s, process %d: %w", sig, p.name, p.cmd.Process.Pid, err)
	}
	return nil
}

// kill ends it as a crash would, a stopped one too.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// stop asks it to end and gives its exit code.
func (p *process) stop() (code int, err error) {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-p.done:
		return p.code(), nil
	case <-time.After(endTimeout):
		// Its goroutines, into its log: that is what one wants to see of a process that hangs.
		err := errors.Join(p.signal(syscall.SIGQUIT), fmt.Errorf("%s, process %d, does not end; its goroutines are in %s", p.name, p.cmd.Process.Pid, p.log))
		select {
		case <-p.done:
		case <-time.After(time.Second):
			err = errors.Join(err, p.kill())
		}
		return -1, err
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// code is the exit code of one that ended; -1: by a signal.
func (p *process) code() int { return p.cmd.ProcessState.ExitCode() }

// said is the end of its standard error.
func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// run is a command that ends by itself: its output and exit code.
func (s *site) run(ctx context.Context, name string, args ...string) (out []byte, p *process, err error) {
	f, err := os.CreateTemp(s.dir, "out-")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		_ = f.Close()           // only read from here on
		_ = os.Remove(f.Name()) // it goes with the directory at the latest
	}()
	if p, err = s.launch(name, f, args...); err != nil {
		return nil, nil, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, p, errors.Join(context.Cause(ctx), p.kill())
	}
	out, err = os.ReadFile(f.Name())
	return out, p, err
}

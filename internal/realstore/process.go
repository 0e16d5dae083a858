//go:build unix

package realstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child and the goroutine that waits for it.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child is gone and reaped
}

// launch starts a child that does not outlive us. The goroutine keeps its thread for as
// long as the child runs: on Linux the death signal is sent when the thread that started
// the child ends, not the process.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.SysProcAttr = dieWithUs()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is no one's question: we end it by signals
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// end signals the child by its id and waits until it is gone.
func (p *process) end(sig syscall.Signal) error {
	for {
		if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("ending process %d: %w", p.cmd.Process.Pid, err)
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(stopTimeout):
			if sig == syscall.SIGKILL {
				return fmt.Errorf("process %d does not end", p.cmd.Process.Pid)
			}
			sig = syscall.SIGKILL
		}
	}
}

//go:build unix

package realstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a child.
type process struct {
	cmd  *exec.Cmd
	gone <-chan struct{} // closed when the child is gone and reaped
}

// end signals the child by its id and waits until it is gone.
func (p *process) end(sig syscall.Signal) error {
	for {
		if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("ending process %d: %w", p.cmd.Process.Pid, err)
		}
		select {
		case <-p.gone:
			return nil
		case <-time.After(stopTimeout):
			if sig == syscall.SIGKILL {
				return fmt.Errorf("process %d does not end", p.cmd.Process.Pid)
			}
			sig = syscall.SIGKILL
		}
	}
}

//go:build unix

package child

import (
	"os/exec"
	"runtime"
)

// Start starts a command that does not outlive us. gone is closed when it has ended and is
// reaped; how it ended is in cmd.ProcessState then.
//
// The goroutine keeps its thread for as long as the child runs: on Linux the death signal is
// sent when the thread that started the child ends, not the process.
func Start(cmd *exec.Cmd) (gone <-chan struct{}, err error) {
	cmd.SysProcAttr = dieWithUs()
	done, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is in ProcessState
		close(done)
	}()
	return done, <-started
}

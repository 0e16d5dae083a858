//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// keeperScript reads process ids until the pipe closes, then ends the last one (0: there
// is none) and removes the directory. SIGQUIT has a server end its children, too.
const keeperScript = `trap '' INT TERM HUP
pid=0
while read -r line; do pid=$line; done
if [ "$pid" -gt 0 ]; then
	kill -QUIT "$pid" 2>/dev/null
	i=0
	while kill -0 "$pid" 2>/dev/null && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done
	kill -KILL "$pid" 2>/dev/null
fi
rm -rf -- "$1"`

// keeper ends a server when we are gone, however we go. A process id that it was told
// stays ours until we tell the next one: a child that ended is a zombie until it is
// waited for, so the number cannot be another process's.
type keeper struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// keep starts a keeper for a directory. It is in a session of its own, so that the
// terminal's interrupt does not end it before us.
func keep(dir string) (*keeper, error) {
	read, write, err := os.Pipe() // neither end is inherited by other children
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", keeperScript, "keeper", dir)
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the keeper of %s: %w", dir, err), read.Close(), write.Close())
	}
	return &keeper{cmd: cmd, pipe: write}, read.Close()
}

// watch names the server's process; 0: none runs.
func (k *keeper) watch(pid int) error {
	_, err := fmt.Fprintln(k.pipe, pid)
	return err
}

// release ends the keeper, and with it the directory.
func (k *keeper) release() error {
	if err := k.pipe.Close(); err != nil {
		return err
	}
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("the keeper did not remove the server's directory: %w", err)
	}
	return nil
}

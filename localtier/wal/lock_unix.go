//go:build unix

package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lockFile takes the flock of name and leaves this process's id in it. The lock
// dies with the process, so nothing has to be cleaned up after a crash; the file
// stays, because removing it would let two processes lock two files.
func lockFile(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close() //nolint:errcheck // only read from
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &LockedError{Path: name, PID: readPID(f)}
		}
		return nil, fmt.Errorf("flock %s: %w", name, err)
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", name, err), f.Close())
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readPID is 0 if the holder has not written its id yet: the lock counts, the
// number only helps.
func readPID(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0) // a short or failed read leaves the number unknown
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}

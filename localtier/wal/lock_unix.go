//go:build unix

package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockFile takes the flock of name and leaves this process's id in it. The lock
// dies with the process, so nothing has to be cleaned up after a crash; the file
// stays, because removing it would let two processes lock two files.
func lockFile(name string) (io.Closer, error) {
	for {
		f, err := lockOnce(name)
		if err != nil {
			return nil, err
		}
		// The directory may have been set aside, with the file, between open and flock: a
		// lock on a file that does not stand here any more keeps nobody out of here.
		here, err := isAt(f, name)
		if err == nil && here {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

func isAt(f *os.File, name string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// probeTries and probePause outlast those who only look (Held): they share the lock for a
// moment.
const (
	probeTries = 100
	probePause = time.Millisecond
)

// flock takes the lock for itself, or says at once that another has it for itself.
func flock(f *os.File, pause func()) (err error) {
	fd := int(f.Fd())
	for range probeTries {
		if err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if shared := syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB); shared != nil {
			return err
		}
		if err := syscall.Flock(fd, syscall.LOCK_UN); err != nil {
			return err
		}
		pause()
	}
	return err
}

// Held says whether a process has the lock of a directory's log, and so serves it or is about
// to. It dies with the process: a number in the file may be another's by now, or that of one
// which is dead and not yet buried. A start that meets the look waits for its end.
func Held(name string) (held bool, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // closing unlocks
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("flock %s: %w", name, err)
	}
	return false, nil
}

func lockOnce(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	if err := flock(f, func() { time.Sleep(probePause) }); err != nil {
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

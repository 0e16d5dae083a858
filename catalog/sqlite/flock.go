package sqlite

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/catalog"
)

// turnstile is the outer lock between processes. Who wants to write takes the
// turnstile file, waits with it for the writer file, and lets the turnstile go. The
// one that just wrote finds the turnstile taken and queues, so nobody starves. The
// kernel drops the locks of a process that dies.
type turnstile struct{ gate, writer *os.File }

func openTurnstile(path string) (*turnstile, error) {
	gate, err := os.OpenFile(path+"-turnstile", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("%w: lock file: %w", catalog.ErrUnavailable, err)
	}
	writer, err := os.OpenFile(path+"-writer", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: lock file: %w", catalog.ErrUnavailable, err), gate.Close())
	}
	return &turnstile{gate, writer}, nil
}

func (t *turnstile) lock() error {
	if err := flock(t.gate, unix.LOCK_EX); err != nil {
		return err
	}
	err := flock(t.writer, unix.LOCK_EX)
	if uerr := flock(t.gate, unix.LOCK_UN); err == nil && uerr != nil {
		err = errors.Join(uerr, flock(t.writer, unix.LOCK_UN))
	}
	return err
}

func (t *turnstile) unlock() error { return flock(t.writer, unix.LOCK_UN) }

func (t *turnstile) close() error { return errors.Join(t.gate.Close(), t.writer.Close()) }

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: lock of %s: %w", catalog.ErrUnavailable, f.Name(), err)
		}
		return nil
	}
}

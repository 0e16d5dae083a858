package sqlite

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/catalog"
)

// lockWait is how long a verb waits for another process's commit. Commits take
// milliseconds; who holds the lock for longer is stopped, or stuck on its disk.
const lockWait = 10 * time.Second

// turnstile is the outer lock between processes. Who wants to write takes the
// turnstile file, waits with it for the writer file, and lets the turnstile go. The
// one that just wrote finds the turnstile taken and queues, so nobody starves. The
// kernel drops the locks of a process that dies.
type turnstile struct {
	gate, writer *os.File
	wait         time.Duration
	attempt      *attempt // the last one; lock's caller only
}

// attempt is one wait for the lock. The kernel cannot be told to give up, so a wait
// that nobody wants any more goes on, and gives the lock back when it gets it.
type attempt struct {
	mu     sync.Mutex // wanted, over, err
	wanted bool
	over   bool
	err    error
	done   chan struct{}
}

func openTurnstile(path string) (*turnstile, error) {
	gate, err := os.OpenFile(path+"-turnstile", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("%w: lock file: %w", catalog.ErrUnavailable, err)
	}
	writer, err := os.OpenFile(path+"-writer", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: lock file: %w", catalog.ErrUnavailable, err), gate.Close())
	}
	return &turnstile{gate: gate, writer: writer, wait: lockWait}, nil
}

// lock waits for its turn, but not for ever.
func (t *turnstile) lock() error {
	a := t.attempt
	if a == nil || !a.want() {
		a = &attempt{wanted: true, done: make(chan struct{})}
		t.attempt = a
		go a.run(t)
	}
	timer := time.NewTimer(t.wait)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	}
	if a.leave() {
		return fmt.Errorf("%w: another process holds the lock %s; see which with fuser, and try again", catalog.ErrUnavailable, t.writer.Name())
	}
	t.attempt = nil
	return a.err
}

// want takes over an attempt that is still waiting.
func (a *attempt) want() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = true
	return !a.over
}

// leave gives an attempt up, unless it is over.
func (a *attempt) leave() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = a.over
	return !a.over
}

func (a *attempt) run(t *turnstile) {
	err := t.acquire()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && !a.wanted {
		err = t.unlock()
	}
	a.over, a.err = true, err
	close(a.done)
}

func (t *turnstile) acquire() error {
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

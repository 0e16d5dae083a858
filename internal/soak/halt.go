//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/internal/child"
)

// halt stops a process that others must be able to do without. One that is stopped in the
// middle of a transaction holds SQLite's lock, and with it everybody on the machine: it is
// let on and stopped again.
func (c *chaos) halt(ctx context.Context, p *child.Process) error {
	return child.Poll(ctx, startTimeout, "stop "+p.Name+" outside a transaction", func() (bool, error) {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return false, err
		}
		until := time.Now().Add(500 * time.Millisecond)
		for time.Now().Before(until) && ctx.Err() == nil {
			if stands(p) && c.site.catalogFree() {
				return true, nil
			}
			child.Pause(ctx, 5*time.Millisecond)
		}
		return false, p.Signal(syscall.SIGCONT)
	})
}

// stands says whether every thread has stopped: one that was just given a lock takes it
// before it heeds the signal. Where there is no /proc it cannot be seen.
func stands(p *child.Process) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
	if err != nil {
		return false
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		if _, rest, ok := strings.Cut(string(text), ") "); !ok || !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return true
}

// catalogFree says whether nobody holds the catalog's locks this very moment.
func (s *site) catalogFree() bool {
	for _, lock := range []string{"-turnstile", "-writer"} {
		f, err := os.OpenFile(filepath.Join(s.dir, "catalog.db"+lock), os.O_RDWR, 0)
		if err != nil {
			return false
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Join(err, f.Close()) != nil { // closing lets the lock go
			return false
		}
	}
	return true
}

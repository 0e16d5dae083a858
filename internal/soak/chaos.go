//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/internal/child"
)

// fault is one thing that is done to the processes.
type fault struct {
	name   string
	victim string
	weight int
	do     func(ctx context.Context) error
}

// chaos breaks things until the time is up. What it broke runs again when it returns.
type chaos struct {
	*run
	rng  *rand.Rand
	away atomic.Bool    // the server is
	side sync.WaitGroup // faults that go on beside the next ones

	mu   sync.Mutex
	errs []error
}

func (r *run) chaos(ctx context.Context) error {
	c := &chaos{run: r, rng: r.rng(1)}
	ends := time.Now().Add(r.opts.Duration)
	for time.Now().Before(ends) && ctx.Err() == nil {
		if !child.Pause(ctx, time.Duration(200+c.rng.IntN(1300))*time.Millisecond) || r.opts.Calm {
			continue
		}
		c.look()
		f := c.draw(c.faults())
		r.event("%s %s", f.name, f.victim)
		if err := f.do(ctx); err != nil {
			c.failed(fmt.Errorf("%s %s: %w", f.name, f.victim, err))
			break
		}
		r.report.count(f.name)
	}
	c.side.Wait()
	c.look()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

func (c *chaos) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

func (c *chaos) draw(faults []fault) fault {
	sum := 0
	for _, f := range faults {
		sum += f.weight
	}
	at := c.rng.IntN(sum)
	for _, f := range faults {
		if at -= f.weight; at < 0 {
			return f
		}
	}
	panic("unreachable: the weights do not sum up")
}

// faults are those of now: each with a victim that was drawn.
func (c *chaos) faults() []fault {
	i := c.rng.IntN(2)
	w, v, a := c.fleet.writers[i], c.fleet.writers[1-i], c.fleet.auditors[c.rng.IntN(2)]
	fs := []fault{
		{"kill writer", w.name, 5, func(ctx context.Context) error { return c.killWriter(ctx, w) }},
		{"restart writer", w.name, 2, func(ctx context.Context) error { return c.restartWriter(ctx, w) }},
		{"stall writer", w.name, 3, func(ctx context.Context) error { return c.stallWriter(ctx, w) }},
		{"lose the disk of writer", w.name, 3, func(ctx context.Context) error { return c.loseDisk(ctx, w) }},
		{"kill", a.name, 3, func(context.Context) error { return c.killAuditor(a) }},
		{"stall", a.name, 3, func(ctx context.Context) error { return c.stallAuditor(ctx, a) }},
		{"kill the server", "", 2, c.killServer},
	}
	if len(w.held()) > 1 {
		fs = append(fs,
			fault{"take a shard of living writer", w.name, 3, func(ctx context.Context) error { return c.takeShard(ctx, w, v, false) }},
			fault{"take a shard of stopped writer", w.name, 3, func(ctx context.Context) error { return c.takeShard(ctx, w, v, true) }},
		)
	}
	return fs
}

// look finds processes that ended by themselves: no fault of ours lets them.
func (c *chaos) look() {
	for _, w := range c.fleet.writers {
		if p := w.running(); p != nil && p.Ended() {
			c.complain("%v", &child.EndedError{Process: p})
		}
	}
	for _, a := range c.fleet.auditors {
		if !a.busy.TryLock() {
			continue // stopped: it cannot have ended
		}
		if a.proc != nil && a.proc.Ended() {
			c.startAgain(a)
		}
		a.busy.Unlock()
	}
}

// between draws a duration.
func (c *chaos) between(low, high time.Duration) time.Duration {
	return low + time.Duration(c.rng.Int64N(int64(high-low)))
}

// startAgain does what whoever supervises an auditor does: one that found the server away when
// it started has said that trying again may help (exit 5). Any other end is a finding.
func (c *chaos) startAgain(a *auditor) {
	if a.proc.Code() != exitUnavailable {
		c.complain("%v", &child.EndedError{Process: a.proc})
	}
	c.report.count("auditor starts again")
	if err := a.start(); err != nil {
		c.failed(err)
	}
}

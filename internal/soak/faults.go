//go:build unix

package soak

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// readGrace is what auditFlags set.
const readGrace = time.Second

// killWriter kills a writer and starts it again on its disk: nothing acknowledged may go.
func (c *chaos) killWriter(ctx context.Context, w *writer) error {
	if err := w.kill(); err != nil {
		return err
	}
	return w.start(ctx, false)
}

// restartWriter ends a writer in order, and starts it again.
func (c *chaos) restartWriter(ctx context.Context, w *writer) error {
	if err := c.endWriter(w); err != nil {
		return err
	}
	return w.start(ctx, false)
}

// endWriter stops a writer. One that was fenced, or whose server is away, may have to say
// that rows stay on its disk; nothing else is a good end.
func (c *chaos) endWriter(w *writer) error {
	code, err := w.stop()
	if code != exitOK && code != exitFenced && code != exitUnavailable {
		c.complain("%v", err)
	}
	if code < 0 {
		return err
	}
	return nil
}

// stallWriter stops a writer for longer than its lease. Nobody takes its shards: it goes on.
func (c *chaos) stallWriter(ctx context.Context, w *writer) error {
	return c.stall(ctx, w.running(), c.between(leaseTime, 2*leaseTime))
}

func (c *chaos) stall(ctx context.Context, p *child.Process, d time.Duration) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	child.Pause(ctx, d)
	c.report.stalled(d)
	return p.Signal(syscall.SIGCONT)
}

// loseDisk kills a writer and deletes its disk. Its shards begin again on an empty one, with all
// that was absorbed.
func (c *chaos) loseDisk(ctx context.Context, w *writer) error {
	if err := w.kill(); err != nil {
		return err
	}
	disk := w.diskName()
	shards := w.held()
	for _, s := range shards {
		if err := c.losing(ctx, s, disk); err != nil {
			return err
		}
	}
	c.ledger.diskGone(disk)
	if err := w.loseDisk(); err != nil {
		return err
	}
	if err := w.start(ctx, true); err != nil {
		return err
	}
	for _, s := range shards {
		c.ledger.released(s)
	}
	return nil
}

// losing enters what a shard has absorbed before it changes hands.
func (c *chaos) losing(ctx context.Context, s segment.Shard, disk string) error {
	row, err := c.chain(ctx, s)
	if err != nil {
		return err
	}
	c.ledger.losing(s, loss{term: row.Term, next: row.NextSeq, disk: disk})
	return nil
}

// chain reads a chain's row; processes of ours that hold the catalog are waited for.
func (r *run) chain(ctx context.Context, s segment.Shard) (row catalog.ChainRow, err error) {
	err = child.Poll(ctx, startTimeout, "read a chain's row", func() (bool, error) {
		row, err = r.site.catalog.Chain(ctx, segment.Chain{Epoch: 1, Shard: s})
		return err == nil, err
	})
	return row, err
}

// takeShard has v take a shard of w, which runs all the time, or is stopped meanwhile for
// longer than its lease and then wakes up as a ghost. After a while w starts again without
// the shard: whatever it acknowledged to the last must be in the history, or on its disk.
func (c *chaos) takeShard(ctx context.Context, w, v *writer, stopped bool) error {
	held := w.held()
	s := held[c.rng.IntN(len(held))]
	p := w.running()
	if stopped {
		if err := c.halt(ctx, p); err != nil {
			return err
		}
	}
	begun := time.Now()
	if err := c.losing(ctx, s, w.diskName()); err != nil {
		return err
	}
	if err := v.kill(); err != nil {
		return err
	}
	w.take(s)
	v.give(s)
	if err := v.start(ctx, true); err != nil {
		return errors.Join(err, p.Signal(syscall.SIGCONT))
	}
	c.event("  shard %d: writer %s took it from %s", s, v.name, w.name)
	if stopped {
		d := c.between(leaseTime, 2*leaseTime)
		child.Pause(ctx, d-time.Since(begun))
		c.report.stalled(time.Since(begun))
		if err := p.Signal(syscall.SIGCONT); err != nil {
			return err
		}
	}
	child.Pause(ctx, c.between(0, 2*time.Second))
	if err := c.anyEnd(w); err != nil {
		return err
	}
	if err := w.start(ctx, false); err != nil {
		return err
	}
	c.ledger.released(s)
	return nil
}

// anyEnd ends a writer one way or the other.
func (c *chaos) anyEnd(w *writer) error {
	if c.rng.IntN(2) == 0 {
		return w.kill()
	}
	return c.endWriter(w)
}

func (c *chaos) killAuditor(a *auditor) error {
	if !a.busy.TryLock() {
		return nil // it is stopped now
	}
	defer a.busy.Unlock()
	if err := a.kill(); err != nil {
		return err
	}
	return a.start()
}

// stallAuditor stops an auditor for longer than the read grace, and mostly for longer than
// its leases, while everything else goes on.
func (c *chaos) stallAuditor(ctx context.Context, a *auditor) error {
	d := c.between(readGrace, 9*time.Second)
	if !a.busy.TryLock() {
		return nil // it is stopped already
	}
	c.side.Go(func() {
		defer a.busy.Unlock()
		if err := c.stall(ctx, a.proc, d); err != nil {
			c.failed(err)
		}
	})
	return nil
}

// killServer takes the bucket away for a while, beside what else is done.
func (c *chaos) killServer(ctx context.Context) error {
	if !c.away.CompareAndSwap(false, true) {
		return nil
	}
	if err := c.site.server.Kill(); err != nil {
		return err
	}
	d := c.between(200*time.Millisecond, 4*time.Second)
	c.side.Go(func() {
		defer c.away.Store(false)
		child.Pause(ctx, d)
		if err := c.site.server.Restart(context.WithoutCancel(ctx)); err != nil {
			c.failed(err)
		}
	})
	return nil
}

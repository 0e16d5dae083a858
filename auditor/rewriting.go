package auditor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/settle"
)

// idleLease is a marker that another auditor is working on.
const idleLease = settle.IdleLease

const (
	// rewriteTries: gc, tail-fill and pack-merge may want the same refs in the same
	// moment. The one that commits second is planned anew, once, before it waits.
	rewriteTries = 2
	// keptRaced is a marker that lost that race each time.
	keptRaced = "raced"
)

// runRewrites serves the due markers of gc, tail-fill or pack-merge. It takes no more
// of them than it works on at once: each may move gigabytes, and what is not taken is
// another auditor's to do.
func (a *Auditor) runRewrites(d catalog.Duty) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		markers, err := a.takeUpTo(ctx, d, min(a.cfg.Concurrency, a.cfg.Batch))
		if err != nil {
			return 0, err
		}
		return a.each(ctx, markers, a.rewriteOne), nil
	}
}

// rewriteOne moves what one marker owes. The settler resolves the marker with the
// commit; after an error, or with members left out, it stands and is put back.
func (a *Auditor) rewriteOne(ctx context.Context, m catalog.Marker) error {
	name := string(m.Duty)
	r, err := a.tryRewrite(ctx, m)
	if err != nil {
		return err
	}
	switch {
	case r.Idle == idleLease:
		// Whoever holds it resolves the marker. Should it die instead, we are back after
		// one lease.
		a.ledger.keep(name, r.Idle, 1)
		return a.leave(ctx, m, a.cfg.Lease)
	case raced(&r):
		// Another duty is at work on the same refs, and gets on: that is no failure.
		a.ledger.keep(name, keptRaced, 1)
		a.unmeet(m.MarkerRef)
		return a.leave(ctx, m, a.cfg.Backoff)
	case r.Idle != "":
		a.ledger.outcome(name, "idle", false)
		a.ledger.keep(name, r.Idle, 1)
		return nil
	case len(r.Failures) > 0:
		a.alarms(ctx, m.Duty, r.Failures)
		f := r.Failures[0]
		return fmt.Errorf("%s of %s: %d members failed, first stream %q: %w", name, m.ID, len(r.Failures), f.Stream, f.Err)
	}
	a.ledger.outcome(name, "rewritten", false)
	return nil
}

// tryRewrite runs a marker, and at once again if another job's commit came before its own:
// the second run plans from the refs as they are by then.
func (a *Auditor) tryRewrite(ctx context.Context, m catalog.Marker) (r settle.Report, err error) {
	for range rewriteTries {
		r, err = a.Settler.RunMarker(ctx, m, a.ID)
		a.moved(string(m.Duty), &r)
		if err != nil || !raced(&r) || ctx.Err() != nil {
			break
		}
		// A crash here leaves the marker to its lease, and the output to its intent.
	}
	return r, err
}

// raced says that all that failed lost the race for its refs: what it had planned was
// swapped or given up by another before its commit (03 §4 step 5: validate or abandon).
func raced(r *settle.Report) bool {
	for _, f := range r.Failures {
		var c *catalog.ConflictError
		if !errors.As(f.Err, &c) || c.Verb != "CommitRewrite" || !errors.Is(c.Kind, catalog.ErrConflict) {
			return false
		}
	}
	return len(r.Failures) > 0
}

// moved enters what a batch of the mover did, finished or not.
func (a *Auditor) moved(name string, r *settle.Report) {
	a.ledger.count(name, "outputs", r.Outputs)
	a.ledger.count(name, "members failed", len(r.Failures))
	a.ledger.note(name, func(d *DutySummary) {
		d.Bytes += r.StoredBytes
		d.Through += r.Through
		d.ServerSide += r.ServerSide
	})
}

// leave puts a marker off that another works on, or on whose refs: no attempt of it
// failed. One that was armed or resolved meanwhile is as it should be.
func (a *Auditor) leave(ctx context.Context, m catalog.Marker, pause time.Duration) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a stop writes nothing: the lease ends by itself
	}
	err := a.Catalog.Postpone(ctx, m.MarkerRef, pause, "")
	if errors.Is(err, catalog.ErrConflict) || errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	return err
}

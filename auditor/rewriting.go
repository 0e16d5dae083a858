package auditor

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/settle"
)

// idleLease is a marker that another auditor is working on.
const idleLease = settle.IdleLease

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
	r, err := a.Settler.RunMarker(ctx, m, a.ID)
	a.moved(name, &r)
	if err != nil {
		return err
	}
	switch {
	case r.Idle == idleLease:
		// Whoever holds it resolves the marker. Should it die instead, we are back after
		// one lease.
		a.ledger.keep(name, r.Idle, 1)
		return a.leave(ctx, m)
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

// leave puts a marker off that another works on: no attempt of it failed. One that
// was armed or resolved meanwhile is as it should be.
func (a *Auditor) leave(ctx context.Context, m catalog.Marker) error {
	err := a.Catalog.Postpone(ctx, m.MarkerRef, a.cfg.Lease, "")
	if errors.Is(err, catalog.ErrConflict) || errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	return err
}

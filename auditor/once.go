package auditor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
)

// OnceOptions shape Once.
type OnceOptions struct {
	// Linger also waits for markers that come due within this time of the last
	// thing done (see Linger for the usual value). 0: what is due now.
	Linger time.Duration
}

// Once runs what is due until nothing is due, then returns what was done. Its
// error joins what still stands failed: those markers are postponed, and a later
// run takes them again. In a dry run it tells what would go, and changes nothing.
func (a *Auditor) Once(ctx context.Context, o OnceOptions) (Summary, error) {
	if a.cfg.DryRun { // it takes no share of the budgets either
		err := a.dryRun(ctx)
		return a.Summary(), err
	}
	if err := a.register(ctx); err != nil {
		return a.Summary(), fmt.Errorf("register auditor: %w", err)
	}
	defer a.leaveBudget(ctx)
	if a.cfg.Sweep {
		if err := a.sweepNow(ctx); err != nil {
			return a.Summary(), fmt.Errorf("make the sweep due: %w", err)
		}
	}
	a.forget()
	for last := a.Clock(); ctx.Err() == nil; {
		worked := a.round(ctx)
		if worked > 0 {
			last = a.Clock()
			continue
		}
		d, ok, err := a.soon(ctx, last.Add(o.Linger))
		if err != nil {
			a.fail("auditor", "", err)
		}
		if err != nil || !ok || a.Wait(ctx, d) != nil {
			break
		}
		a.forget()
	}
	return a.finish(ctx)
}

// leaveBudget ends the auditor's lease, so that its share is the others' at once. Should
// that fail, the lease ends by itself.
func (a *Auditor) leaveBudget(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	if _, err := a.Catalog.RegisterAuditor(ctx, a.ID, time.Nanosecond); err != nil {
		a.Logger.Debug("the auditor's lease runs out by itself", "error", err)
	}
}

// round runs every duty once, a few at a time.
func (a *Auditor) round(ctx context.Context) int {
	var worked atomic.Int64
	var g errgroup.Group
	g.SetLimit(a.cfg.Concurrency)
	for _, d := range a.duties {
		g.Go(func() error {
			n, _ := a.pass(ctx, d) // pass has counted and kept the error
			worked.Add(int64(n))
			return nil
		})
	}
	_ = g.Wait() // the functions return nil
	a.ledger.round()
	return int(worked.Load())
}

// soon is how long to wait for the next marker, if one is due before the
// deadline. One that another auditor holds is waited for in small steps.
func (a *Auditor) soon(ctx context.Context, deadline time.Time) (time.Duration, bool, error) {
	left := a.rest(deadline)
	if left <= 0 {
		return 0, false, nil
	}
	due, ok, err := a.Catalog.NextDue(ctx, a.awaited())
	if err != nil || !ok {
		return 0, false, err
	}
	now, err := a.Catalog.Now(ctx)
	if err != nil {
		return 0, false, err
	}
	d := max(due.Sub(now), minWait)
	return d, d <= left, nil
}

// minWait keeps the wait for another auditor's marker from spinning.
const minWait = 50 * time.Millisecond

// awaited are the duties whose markers Once lingers for: none that stand always.
func (a *Auditor) awaited() []catalog.Duty {
	var out []catalog.Duty
	for _, d := range a.duties {
		switch d.name {
		case catalog.DutyPackMerge, catalog.DutyTailFill, catalog.DutyGC, catalog.DutyTrimCheck, catalog.DutyReapCheck, catalog.DutyOrphan, catalog.DutyTeardown, catalog.DutyReclaim:
			out = append(out, d.name)
		}
	}
	return out
}

// finish reads the debts that stand and joins what failed.
func (a *Auditor) finish(ctx context.Context) (Summary, error) {
	var errs []error
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	} else if owed, err := a.Catalog.Debts(ctx); err != nil {
		errs = append(errs, err)
	} else {
		a.ledger.debts(&owed)
		a.lookAtLost(ctx)
	}
	a.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(a.failures)) {
		errs = append(errs, a.failures[key])
	}
	a.mu.Unlock()
	return a.Summary(), errors.Join(errs...)
}

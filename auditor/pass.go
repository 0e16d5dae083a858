package auditor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
)

const (
	// maxCause bounds the error text that a marker keeps.
	maxCause = 500
	// maxFailures bounds the errors that Once returns.
	maxFailures = 100
	// maxMet is how often a marker at one version may come up in one Once without
	// anything being done about it.
	maxMet = 3
)

// pass runs one duty once: guard, run, account. Its error is in the ledger too.
func (a *Auditor) pass(ctx context.Context, d duty) (int, error) {
	name := string(d.name)
	if d.deletes && !a.cfg.DryRun {
		if ok, err := a.mayDelete(ctx, d.name); !ok {
			return 0, err
		}
	}
	start, before := a.Clock(), requests(a.Classes)
	run := d.run
	if a.Around != nil {
		run = func(ctx context.Context) (int, error) { return a.Around(ctx, name, d.run) }
	}
	worked, err := run(ctx)
	took, after := a.Clock().Sub(start), requests(a.Classes)
	if err != nil {
		a.fail(d.name, "", err)
	} else {
		a.clear(d.name, "")
	}
	if err != nil && ctx.Err() == nil { // a stop that cuts a duty short is nothing to be alarmed at
		a.Logger.Error("duty failed", "duty", name, "error", err)
	}
	a.ledger.note(name, func(s *DutySummary) {
		if err == nil {
			s.LastSuccess = start
		}
		if worked == 0 && err == nil {
			return
		}
		s.Started++
		s.Seconds += took.Seconds()
		for op, n := range after {
			if n > before[op] {
				s.Requests[string(op)] += n - before[op]
			}
		}
		if err == nil {
			s.Completed++
		}
	})
	return worked, err
}

// mayDelete asks the guard.
func (a *Auditor) mayDelete(ctx context.Context, d catalog.Duty) (bool, error) {
	why, err := a.guard.allow(ctx)
	if err == nil {
		err = a.guard.belongs(ctx)
	}
	if ctx.Err() == nil {
		a.noteHold(why, err)
	}
	if err != nil {
		a.fail(d, "", err)
		if errors.Is(err, ErrNotOurs) {
			a.ledger.hold(err.Error())
			a.ledger.keep(string(d), "bucket not ours", 1)
		}
		return false, err
	}
	a.ledger.hold(why)
	if why != "" {
		a.ledger.keep(string(d), "clock", 1)
	}
	return why == "", nil
}

// take leases due markers of a duty. One that came up at the same version again
// and again without an error is treated as failed: nothing may spin.
func (a *Auditor) take(ctx context.Context, d catalog.Duty) ([]catalog.Marker, error) {
	return a.takeUpTo(ctx, d, a.cfg.Batch)
}

func (a *Auditor) takeUpTo(ctx context.Context, d catalog.Duty, limit int) ([]catalog.Marker, error) {
	taken, err := a.Catalog.TakeDue(ctx, catalog.Take{Duties: []catalog.Duty{d}, Owner: a.ID, Lease: a.cfg.Lease, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("take due %s markers: %w", d, err)
	}
	markers := taken[:0]
	for _, m := range taken {
		if a.meet(m.MarkerRef) {
			markers = append(markers, m)
			continue
		}
		a.putBack(ctx, m, errors.New("it came up again and again without a change"))
	}
	if len(markers) == 0 || !gatedPass(d) {
		return markers, nil // that nothing is due costs no look
	}
	if err := a.gate.open(ctx); err != nil {
		return nil, a.refuse(ctx, markers, err)
	}
	return markers, nil
}

// gatedPass says whether the markers of a duty go through the gate as a whole: to be refused
// before work is done in vain, and, as the sweep is daily, to tell of a rollback where nothing
// else is due. A trim-check has mostly nothing to move, and comes by the gate where it has.
func gatedPass(d catalog.Duty) bool {
	switch d {
	case catalog.DutyReclaim, catalog.DutyReapCheck, catalog.DutyOrphan, catalog.DutySweep:
		return true
	}
	return false
}

// meet counts how often a marker came up unchanged.
func (a *Auditor) meet(m catalog.MarkerRef) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.met[m]++
	return a.met[m] <= maxMet
}

// unmeet takes a marker out of the count of take: that it came up unchanged is explained.
func (a *Auditor) unmeet(m catalog.MarkerRef) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.met, m)
}

// forget starts the count of take anew.
func (a *Auditor) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.met)
}

// putBack postpones a failed marker and counts it.
func (a *Auditor) putBack(ctx context.Context, m catalog.Marker, cause error) {
	a.fail(m.Duty, m.ID, cause)
	if ctx.Err() != nil {
		return // it was cut short by a stop, and comes up again
	}
	a.Logger.Warn("marker failed", "duty", string(m.Duty), "id", m.ID, "attempts", m.Attempts+1, "error", cause)
	a.alarm(ctx, m.Duty, cause)
	a.postpone(ctx, m, cause)
}

// postpone backs a marker off that cannot be served yet; by itself it does not call
// it failed. A cancelled ctx writes nothing: the lease ends by itself.
func (a *Auditor) postpone(ctx context.Context, m catalog.Marker, cause error) {
	if ctx.Err() != nil {
		return
	}
	text := cause.Error()
	err := a.Catalog.Postpone(ctx, m.MarkerRef, objstore.Backoff(m.Attempts, a.cfg.Backoff, a.cfg.BackoffMax, cause), text[:min(len(text), maxCause)])
	// A conflict means that it was armed since, or resolved by another: both are
	// what such a marker may hope for.
	if err != nil && !errors.Is(err, catalog.ErrConflict) && !errors.Is(err, catalog.ErrNotFound) {
		a.fail(m.Duty, m.ID, errors.Join(cause, fmt.Errorf("postpone: %w", err)))
	}
}

// each runs one step per marker, a few at once, and puts back what failed. It
// returns how many got done.
func (a *Auditor) each(ctx context.Context, markers []catalog.Marker, step func(context.Context, catalog.Marker) error) int {
	errs := make([]error, len(markers))
	var g errgroup.Group
	g.SetLimit(a.cfg.Concurrency)
	for i, m := range markers {
		g.Go(func() error {
			if errs[i] = context.Cause(ctx); errs[i] == nil {
				errs[i] = step(ctx, m)
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return nil: their errors are in errs
	done := 0
	for i, m := range markers {
		if a.settleFate(ctx, m, errs[i]) {
			done++
		}
	}
	return done
}

// settleFate accounts for one marker.
func (a *Auditor) settleFate(ctx context.Context, m catalog.Marker, err error) bool {
	if err != nil {
		a.putBack(ctx, m, err)
		return false
	}
	a.clear(m.Duty, m.ID)
	return true
}

// fail remembers an error until the same thing succeeds.
func (a *Auditor) fail(d catalog.Duty, id string, err error) {
	a.ledger.fail(string(d), err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.failures) < maxFailures {
		a.failures[string(d)+" "+id] = fmt.Errorf("%s %s: %w", d, id, err)
	}
}

func (a *Auditor) clear(d catalog.Duty, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.failures, string(d)+" "+id)
}

// rest is the time until t by the process's clock.
func (a *Auditor) rest(t time.Time) time.Duration { return t.Sub(a.Clock()) }

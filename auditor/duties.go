package auditor

import (
	"context"
	"errors"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
)

// runAbsorb looks at chains whose lease ended. Each costs a GET, and nothing in the
// catalog says that there is something to find: so it looks again only after a while.
func (a *Auditor) runAbsorb(ctx context.Context) (int, error) {
	if a.restsFrom(&a.looked, a.cfg.AbsorbEvery) {
		return 0, nil
	}
	r, err := a.absorber.RunOnce(ctx)
	if r.Absorbed+r.Voided > 0 || err != nil {
		a.lookAgain(&a.looked)
	}
	a.ledger.count(string(catalog.DutyAbsorbCheck), "absorbed", r.Absorbed)
	a.ledger.count(string(catalog.DutyAbsorbCheck), "voided", r.Voided)
	a.ledger.count(string(catalog.DutyAbsorbCheck), "copies made", r.Copied)
	return r.Absorbed + r.Voided, err
}

// restsFrom says whether less than every has passed since the moment kept in at; if
// not, that moment is now.
func (a *Auditor) restsFrom(at *time.Time, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !at.IsZero() && a.rest(at.Add(every)) > 0 {
		return true
	}
	*at = a.Clock()
	return false
}

func (a *Auditor) lookAgain(at *time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*at = time.Time{}
}

// runTrim is the slots' check of every due chain.
func (a *Auditor) runTrim(ctx context.Context) (int, error) {
	markers, err := a.take(ctx, catalog.DutyTrimCheck)
	if err != nil {
		return 0, err
	}
	return a.each(ctx, markers, a.trimOne), nil
}

func (a *Auditor) trimOne(ctx context.Context, m catalog.Marker) error {
	const name = string(catalog.DutyTrimCheck)
	r, err := a.trimmer.RunOnce(ctx, m)
	a.ledger.count(name, "slots deleted", r.Deleted)
	a.ledger.count(name, "slots condemned", r.Condemned)
	if !r.StoreTime.IsZero() {
		err = errors.Join(err, a.guard.observeStore(ctx, r.StoreTime, r.Before, r.After))
	}
	if errors.Is(err, catalog.ErrRolledBack) {
		a.ledger.holdFor(HoldRolledBack, true, a.Clock())
	}
	if err != nil {
		return err
	}
	a.ledger.outcome(name, string(r.Outcome), r.Outcome == reap.TrimWaits)
	a.condemnedSlots(ctx, m, &r)
	return nil
}

// runReap is one pass of the two-phase reap over the due reap-checks.
func (a *Auditor) runReap(ctx context.Context) (int, error) {
	markers, err := a.take(ctx, catalog.DutyReapCheck)
	if err != nil || len(markers) == 0 {
		return 0, err
	}
	done := 0
	for _, r := range a.reaper.RunOnce(ctx, markers) {
		if r.Outcome != "" {
			kept := r.Outcome != reap.Reaped && r.Outcome != reap.GoneBefore && r.Outcome != reap.GoneAlone
			a.ledger.outcome(string(catalog.DutyReapCheck), string(r.Outcome), kept)
		}
		a.reaped(&r)
		if r.Outcome == reap.Reaped {
			a.ledger.note(string(catalog.DutyReapCheck), func(d *DutySummary) { d.Bytes += r.Tally.DeadBytes })
		}
		if r.Outcome == reap.Refused {
			// As it may be: a teardown still owes the retirement of a dead ref.
			a.postpone(ctx, r.Marker, r.Err)
			continue
		}
		if a.settleFate(ctx, r.Marker, r.Err) {
			done++
		}
	}
	return done, nil
}

// refuse puts all markers of a pass back that may not delete.
func (a *Auditor) refuse(ctx context.Context, markers []catalog.Marker, cause error) error {
	reason := "heads unread"
	if errors.Is(cause, catalog.ErrRolledBack) {
		reason = "rolled back"
	}
	for _, m := range markers {
		a.putBack(ctx, m, cause)
		a.ledger.keep(string(m.Duty), reason, 1)
	}
	return cause
}

// runOrphan judges the due intents.
func (a *Auditor) runOrphan(ctx context.Context) (int, error) {
	markers, err := a.take(ctx, catalog.DutyOrphan)
	if err != nil || len(markers) == 0 {
		return 0, err
	}
	return a.each(ctx, markers, a.judgeOne), nil
}

func (a *Auditor) judgeOne(ctx context.Context, m catalog.Marker) error {
	const name = string(catalog.DutyOrphan)
	r, err := a.judge.RunOnce(ctx, m)
	a.countAborts(name, r.Aborts)
	if err != nil {
		return err
	}
	a.ledger.outcome(name, string(r.Outcome), r.Outcome.Kept())
	if r.Finding != "" {
		a.ledger.count(name, "found "+string(r.Finding), 1)
	}
	return nil
}

func (a *Auditor) countAborts(name string, aborts orphan.Aborts) {
	a.ledger.count(name, "uploads aborted", aborts.Aborted)
	a.ledger.count(name, "aborts failed", aborts.Failed)
}

// runTeardown walks the due streams.
func (a *Auditor) runTeardown(ctx context.Context) (int, error) {
	const name = string(catalog.DutyTeardown)
	markers, err := a.take(ctx, catalog.DutyTeardown)
	if err != nil || len(markers) == 0 {
		return 0, err
	}
	done := 0
	for _, r := range a.walker.RunOnce(ctx, markers) {
		a.ledger.count(name, "refs retired", r.Retired)
		if r.Outcome != "" {
			a.ledger.outcome(name, string(r.Outcome), false)
		}
		if a.settleFate(ctx, r.Marker, r.Err) {
			done++
		}
	}
	return done, nil
}

// markersOf pages all markers of a duty.
func (a *Auditor) markersOf(ctx context.Context, d catalog.Duty, visit func(catalog.Marker)) error {
	const page = 1000
	for after := ""; ; {
		ms, err := a.Catalog.MarkersOf(ctx, d, after, page)
		if err != nil {
			return err
		}
		for _, m := range ms {
			visit(m)
			after = m.ID
		}
		if len(ms) < page {
			return nil
		}
	}
}

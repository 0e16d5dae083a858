package auditor

import (
	"context"
	"errors"
	"fmt"
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
	if err != nil {
		return err
	}
	a.ledger.outcome(name, string(r.Outcome), r.Outcome == reap.TrimWaits)
	return nil
}

// runReap is one pass of the two-phase reap over the due reap-checks.
func (a *Auditor) runReap(ctx context.Context) (int, error) {
	markers, err := a.take(ctx, catalog.DutyReapCheck)
	if err != nil || len(markers) == 0 {
		return 0, err
	}
	if err := a.guard.rolledBack(ctx); err != nil {
		return 0, a.refuse(ctx, markers, err)
	}
	done := 0
	for _, r := range a.reaper.RunOnce(ctx, markers) {
		if r.Outcome != "" {
			kept := r.Outcome != reap.Reaped && r.Outcome != reap.GoneBefore && r.Outcome != reap.GoneAlone
			a.ledger.outcome(string(catalog.DutyReapCheck), string(r.Outcome), kept)
		}
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
	if err := a.guard.rolledBack(ctx); err != nil {
		return 0, a.refuse(ctx, markers, err)
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

// sweepBuckets is the id of the sweep's marker for the buckets; those of chains
// stand for their strays.
const sweepBuckets = "buckets"

// runSweep runs what is due of the daily looks.
func (a *Auditor) runSweep(ctx context.Context) (int, error) {
	if err := a.ensureSweeps(ctx); err != nil {
		return 0, err
	}
	markers, err := a.take(ctx, catalog.DutySweep)
	if err != nil || len(markers) == 0 {
		return 0, err
	}
	if err := a.guard.rolledBack(ctx); err != nil {
		return 0, a.refuse(ctx, markers, err)
	}
	return a.each(ctx, markers, a.sweepOne), nil
}

func (a *Auditor) sweepOne(ctx context.Context, m catalog.Marker) error {
	look := a.sweepChain
	if m.ID == sweepBuckets {
		look = a.sweepAll
	}
	if err := look(ctx, m); err != nil {
		return err
	}
	a.ledger.outcome(string(catalog.DutySweep), "done", false)
	if a.cfg.DryRun {
		return nil
	}
	return a.Catalog.Postpone(ctx, m.MarkerRef, a.cfg.SweepEvery, "")
}

// sweepAll looks for what nothing watches, in every bucket.
func (a *Auditor) sweepAll(ctx context.Context, _ catalog.Marker) error {
	const name = string(catalog.DutySweep)
	r, err := a.sweeper.RunOnce(ctx)
	a.countAborts(name, r.Aborts)
	a.ledger.count(name, "reap-checks armed", r.Armed)
	a.ledger.keep(name, "unwatched", r.Unwatched)
	a.ledger.keep(name, "unknown shape", r.Unknown)
	if err != nil || len(r.Found) == 0 || a.cfg.DryRun {
		return err
	}
	for _, f := range r.Found {
		a.Logger.Warn("sweep found a key that nothing watches", "store", f.Store, "key", f.Key, "bytes", f.Size, "why", f.Reason)
	}
	return a.Catalog.Audit(ctx, "sweep", r.Found[0].Key, fmt.Sprintf("%d keys that nothing watches, %d of unknown shape; the first: %s", r.Unwatched, r.Unknown, r.Found[0].Reason))
}

// sweepChain looks below one chain's trimmed cursor, and keeps its trim journal short.
func (a *Auditor) sweepChain(ctx context.Context, m catalog.Marker) error {
	const name = string(catalog.DutySweep)
	chain, err := catalog.ParseChainID(m.ID)
	if err != nil {
		return err
	}
	r, err := a.trimmer.Strays(ctx, chain)
	a.ledger.count(name, "strays deleted", r.Deleted)
	a.ledger.keep(name, "young strays", r.Young)
	if err != nil {
		return err
	}
	f, err := a.trimmer.Fold(ctx, chain)
	a.ledger.count(name, "trim records folded", f.Folded)
	a.ledger.count(name, "trim records deleted", f.Deleted)
	return err
}

// ensureSweeps arms the standing markers that are missing: one for the buckets,
// one for each chain. Arming twice at once is harmless.
func (a *Auditor) ensureSweeps(ctx context.Context) error {
	a.mu.Lock()
	fresh := !a.ensured.IsZero() && a.rest(a.ensured.Add(a.cfg.Lease)) > 0
	a.mu.Unlock()
	if fresh || a.cfg.DryRun {
		return nil
	}
	rows, err := a.Catalog.Chains(ctx)
	if err != nil {
		return err
	}
	missing := map[string]bool{sweepBuckets: true}
	for i := range rows {
		missing[catalog.ChainID(rows[i].Chain)] = true
	}
	if err := a.markersOf(ctx, catalog.DutySweep, func(m catalog.Marker) { delete(missing, m.ID) }); err != nil {
		return err
	}
	for id := range missing {
		if err := a.Catalog.Arm(ctx, catalog.DutySweep, id, "", 0); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ensured = a.Clock()
	return nil
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

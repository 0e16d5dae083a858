package reap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/segment"
)

// TrimOutcome of one trim-check.
type TrimOutcome string

// The outcomes.
const (
	TrimDone      TrimOutcome = "done"      // nothing condemned, nothing to condemn; resolved
	TrimCondemned TrimOutcome = "condemned" // slots condemned now; due one grace from now
	TrimWaits     TrimOutcome = "waits"     // condemned before, their grace runs; due at its end
	TrimArmed     TrimOutcome = "armed since"
	TrimDry       TrimOutcome = "dry run"
)

// TrimReport is one run of the trim-check.
type TrimReport struct {
	Outcome   TrimOutcome
	Deleted   int // slots gone from every bucket of the set
	Condemned int // slots condemned by this run
	Chain     catalog.ChainRow
	// StoreTime is the store's clock at this run's write of the head, Before and After
	// are the catalog's around it; zero without a write.
	StoreTime, Before, After time.Time

	seen *seenHead // read at the run's begin, until it is written
}

// TrimCatalog is what the slots' check needs of the catalog.
type TrimCatalog interface {
	HeadCatalog
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (catalog.ChainRow, error)
	DueSlots(ctx context.Context, c segment.Chain, limit int) (catalog.TrimPlan, error)
	AdvanceTrim(ctx context.Context, c segment.Chain, from, to segment.ID) (catalog.ChainRow, error)
	CondemnSlots(ctx context.Context, m catalog.MarkerRef, c segment.Chain, expect, to segment.ID) (catalog.ChainRow, error)
	AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error
	Resolve(ctx context.Context, m catalog.MarkerRef) error
	Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error
}

// Trimmer runs trim-checks and the daily look for strays.
type Trimmer struct {
	cat     TrimCatalog
	classes objstore.Classes
	del     *orphan.Deleter
	holdMax int64
}

// NewTrimmer wires a trimmer. consumerHoldMax is how many bytes of slots a slow
// durable consumer may hold back.
func NewTrimmer(cat TrimCatalog, classes objstore.Classes, del *orphan.Deleter, consumerHoldMax int64) *Trimmer {
	return &Trimmer{cat: cat, classes: classes, del: del, holdMax: consumerHoldMax}
}

// trimBatch is how many slots one round deletes: a bulk delete's worth.
const trimBatch = orphan.BatchMax

// RunOnce takes one chain's due trim-check through its steps. An error leaves the
// cursors as far as they got and the marker standing.
func (t *Trimmer) RunOnce(ctx context.Context, m catalog.Marker) (TrimReport, error) {
	chain, err := catalog.ParseChainID(m.ID)
	if err != nil {
		return TrimReport{}, err
	}
	at, err := t.placeOf(ctx, chain)
	if err != nil {
		return TrimReport{}, err
	}
	// The head is read first, then the row: a row behind it was rolled back, and
	// nothing is deleted on such a chain.
	seen, err := lookHead(ctx, at.set.First(), t.cat, chain)
	if err != nil {
		return TrimReport{}, err
	}
	if t.del.Dry() {
		return t.dryRun(ctx, at)
	}
	row, err := t.cat.AdvanceRewritten(ctx, chain, t.holdMax)
	if err != nil {
		return TrimReport{Chain: row}, fmt.Errorf("trim-check %s: rewritten: %w", chain, err)
	}
	// Crash here: the cursor stands where the markers say; the next run derives the same.
	r := TrimReport{Chain: row, seen: seen}
	if err := t.deleteDue(ctx, at, &r); err != nil {
		return r, fmt.Errorf("trim-check %s: %w", chain, err)
	}
	return r, t.conclude(ctx, m, at, &r)
}

func (t *Trimmer) placeOf(ctx context.Context, chain segment.Chain) (place, error) {
	return placeOf(ctx, t.cat, t.classes, chain)
}

// deleteDue is step 2, a batch at a time.
func (t *Trimmer) deleteDue(ctx context.Context, at place, r *TrimReport) error {
	for headWritten := false; ; {
		plan, err := t.cat.DueSlots(ctx, at.chain, trimBatch)
		if err != nil {
			return err
		}
		r.Chain = plan.Chain
		right, why, err := planTrim(plan)
		if err != nil || why != "" {
			return err
		}
		if !headWritten {
			// Crash before it: nothing is deleted yet. After it: the bucket alone says
			// what may be missing, which a rebuild relies on.
			if err := t.writeHead(ctx, at, r); err != nil {
				return err
			}
			headWritten = true
		}
		gone, derr := t.deleteSlots(ctx, at.class, right)
		if gone == 0 {
			return derr
		}
		// Crash here: absent slots at and above trimmed; deleting them again is fine.
		row, err := t.cat.AdvanceTrim(ctx, at.chain, right.from, right.from+segment.ID(gone))
		if err != nil {
			return errors.Join(derr, fmt.Errorf("trimmed: %w", err)) // K12: no further delete follows
		}
		r.Chain = row
		r.Deleted += gone
		if derr != nil {
			return derr
		}
	}
}

// deleteSlots deletes what the right covers from every bucket of the set. It says
// how many are gone from the right's begin on: the cursor goes up to the first
// that is not, and the others are deleted again.
func (t *Trimmer) deleteSlots(ctx context.Context, class segment.Class, right slotRight) (gone int, err error) {
	results, err := t.del.Slots(ctx, class, right.keys())
	for gone < len(results) && results[gone].Err == nil {
		gone++
	}
	return gone, errors.Join(err, failures(results))
}

// failures joins what a bulk delete says of single keys.
func failures(results []objstore.DeleteResult) error {
	var errs []error
	for _, res := range results {
		if res.Err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", res.Key, res.Err))
		}
	}
	return errors.Join(errs...)
}

// conclude is step 3.
func (t *Trimmer) conclude(ctx context.Context, m catalog.Marker, at place, r *TrimReport) error {
	switch planConclude(&r.Chain) {
	case nothingLeft:
		r.Outcome = TrimDone
		return t.cat.Resolve(ctx, m.MarkerRef)
	case graceRuns:
		r.Outcome = TrimWaits
		return t.waitOut(ctx, m, &r.Chain)
	}
	from, to := r.Chain.Condemned, r.Chain.Rewritten
	row, err := t.cat.CondemnSlots(ctx, m.MarkerRef, at.chain, from, to)
	if errors.Is(err, catalog.ErrConflict) {
		r.Outcome = TrimArmed // another check came first, or an arm: it is due again
		return t.cat.Postpone(ctx, m.MarkerRef, 0, "")
	}
	if err != nil {
		return fmt.Errorf("condemn slots of %s: %w", at.chain, err)
	}
	// Crash here: condemned in the row, not yet in the head. The next check writes
	// the head before its first delete.
	r.Chain, r.Outcome, r.Condemned = row, TrimCondemned, int(to-from)
	return t.writeHead(ctx, at, r)
}

// writeHead brings the head up to the row, and notes both clocks.
func (t *Trimmer) writeHead(ctx context.Context, at place, r *TrimReport) error {
	before, err := t.cat.Now(ctx)
	if err != nil {
		return err
	}
	written, err := at.writeHead(ctx, t.del, t.cat, r.seen)
	r.seen = nil // what stands now is another
	if err != nil || written.IsZero() {
		return err
	}
	after, err := t.cat.Now(ctx)
	if err != nil {
		return err
	}
	r.StoreTime, r.Before, r.After = written, before, after
	return nil
}

// waitOut leaves the marker due when the condemned slots' grace ends; an early run
// never resets that.
func (t *Trimmer) waitOut(ctx context.Context, m catalog.Marker, row *catalog.ChainRow) error {
	now, err := t.cat.Now(ctx)
	if err != nil {
		return err
	}
	settings, err := t.cat.Settings(ctx)
	if err != nil {
		return err
	}
	grace := settings.ReadGrace.Deleting(now, catalog.DefaultReadGrace)
	return t.cat.Postpone(ctx, m.MarkerRef, max(0, row.CondemnedAt.Add(grace).Sub(now)), "")
}

// dryRun tells what step 2 would delete, and why the rest stays.
func (t *Trimmer) dryRun(ctx context.Context, at place) (TrimReport, error) {
	plan, err := t.cat.DueSlots(ctx, at.chain, trimBatch)
	if err != nil {
		return TrimReport{}, err
	}
	r := TrimReport{Outcome: TrimDry, Chain: plan.Chain}
	right, why, err := planTrim(plan)
	if err != nil {
		return r, err
	}
	if why != "" {
		t.del.Stays(at.class, segment.SlotKey(at.chain, plan.Chain.Trimmed), why)
	}
	for _, key := range right.keys() {
		t.del.WouldGo(at.class, key, "condemned a grace ago")
	}
	return r, nil
}

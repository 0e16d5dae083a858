package reap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// StrayReport is one look below a chain's trimmed cursor.
type StrayReport struct {
	Listed  int
	Young   int // below trimmed, not yet a grace old
	Deleted int
}

// Strays deletes slots that stand below trimmed although they were deleted: a
// stalled owner's PUT that landed late. They are of no history, because the
// catalog's guard refuses to absorb them again. It looks first and deletes after:
// an error in listing ends it with no delete (K16).
func (t *Trimmer) Strays(ctx context.Context, chain segment.Chain) (StrayReport, error) {
	var r StrayReport
	at, err := t.placeOf(ctx, chain)
	if err != nil {
		return r, err
	}
	if err := CheckHead(ctx, at.set.First(), t.cat, chain); err != nil {
		return r, err
	}
	// The row before the listing: trimmed only grows, so what is below it stays so.
	row, err := t.cat.Chain(ctx, chain)
	if err != nil {
		return r, err
	}
	old, err := t.graceAgo(ctx)
	if err != nil {
		return r, err
	}
	look := strayLook{row: &row, old: old, seen: map[string]bool{}, report: &r}
	for _, store := range at.set {
		if err := look.below(ctx, store); err != nil {
			return r, fmt.Errorf("strays of %s in %s: %w", chain, store.Name(), err)
		}
	}
	return r, t.deleteStrays(ctx, at.class, look.seen, &r)
}

func (t *Trimmer) graceAgo(ctx context.Context) (time.Time, error) {
	now, err := t.cat.Now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	settings, err := t.cat.Settings(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return now.Add(-settings.ReadGrace.Deleting(now, catalog.DefaultReadGrace)), nil
}

// strayLook is a look over the buckets of a chain.
type strayLook struct {
	row    *catalog.ChainRow
	old    time.Time       // what was put after it is let be
	seen   map[string]bool // what may go, by key
	report *StrayReport
}

// below lists one bucket. Where listings come in order, it ends at trimmed.
func (l *strayLook) below(ctx context.Context, store *objstore.Store) error {
	ordered := store.Capabilities().OrderedList
	for info, err := range store.List(ctx, segment.SlotPrefix(l.row.Chain), "") {
		if err != nil {
			return err
		}
		l.report.Listed++
		k, err := segment.ParseKey(info.Key)
		switch {
		case err != nil || k.Kind != segment.KeySlot || k.Chain != l.row.Chain:
			continue // of unknown shape: the sweep reports it
		case k.ID >= l.row.Trimmed && ordered:
			return nil
		case k.ID >= l.row.Trimmed:
			continue
		case info.Modified.After(l.old):
			l.report.Young++
		case len(l.seen) < trimBatch: // tomorrow is another day
			l.seen[info.Key] = true
		}
	}
	return nil
}

func (t *Trimmer) deleteStrays(ctx context.Context, class segment.Class, seen map[string]bool, r *StrayReport) error {
	keys := slices.Sorted(maps.Keys(seen))
	if t.del.Dry() {
		for _, key := range keys {
			t.del.WouldGo(class, key, "a slot below trimmed")
		}
		return nil
	}
	if len(keys) == 0 {
		return nil
	}
	results, err := t.del.Slots(ctx, class, keys)
	for _, res := range results {
		if res.Err == nil {
			r.Deleted++
		}
	}
	return errors.Join(err, failures(results))
}

package check

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// MissingCopy is a slot that refs name and that one bucket of its set does not have.
type MissingCopy struct {
	Key    string `json:"key"`
	Bucket string `json:"bucket"`
}

// copyMissing notes a slot that a bucket for copies did not list. The rows are read from
// the other buckets, and the auditor's absorb-check makes the copy: it is no damage, and
// nothing is left over. Settled objects have no copies.
func (w *walk) copyMissing(ctx context.Context, at place, k seen) error {
	if k.refs[0].Kind != catalog.RefSlot {
		return nil
	}
	// By name: it may have been made since the listing.
	_, _, err := at.store.ReadSuffix(ctx, k.key, 1)
	there, err := stands(ctx, at.store, k.key, err)
	switch {
	case err != nil:
		return fmt.Errorf("look for the copy of %s: %w", k.key, err)
	case there:
		return nil
	}
	// And refs that died since want no copy any more.
	now, err := w.cat.Liveness(ctx, k.key)
	if err != nil || len(now) == 0 {
		return err
	}
	w.add(func(r *Report) {
		add(&r.Missing, &r.MissingTotal, w.cfg.MaxFindings, MissingCopy{Key: k.key, Bucket: at.store.Name()})
	})
	return nil
}

// isStray says that a slot which is not absorbed stands in a bucket for copies alone.
func (w *walk) isStray(ctx context.Context, at place, s standing) (bool, error) {
	if at.deciding || s.key.Kind != segment.KeySlot || s.chain == nil || s.key.ID < s.chain.AbsorbedEnd {
		return false, nil
	}
	first, key := w.classes[at.class].First(), segment.SlotKey(s.key.Chain, s.key.ID)
	_, _, err := first.ReadSuffix(ctx, key, 1)
	there, err := stands(ctx, first, key, err)
	return !there && err == nil, err
}

package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// reclaims looks for refs that their chain's watermark gave up and that still stand:
// the reclaim's marker, armed when the watermark was committed, sees to them. No row of
// theirs is live, so a missing object of theirs is no damage (K29).
func (w *walk) reclaims(ctx context.Context) error {
	for _, c := range w.sortedChains() {
		if row := w.chains[c]; row.WatermarkSeq == 0 {
			continue
		}
		if err := w.reclaim(ctx, c); err != nil {
			return fmt.Errorf("chain %s: %w", c, err)
		}
	}
	return nil
}

func (w *walk) sortedChains() []segment.Chain {
	return slices.SortedFunc(maps.Keys(w.chains), func(a, b segment.Chain) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Shard, b.Shard))
	})
}

// reclaim reports the first dead ref of a chain. Refs before the marker: one whose
// reclaim ended in between is gone at the second look, and one that a newer watermark
// gave up meanwhile has its marker then.
func (w *walk) reclaim(ctx context.Context, c segment.Chain) error {
	var dead catalog.Ref
	for range 3 {
		refs, _, err := w.cat.DeadRefs(ctx, c, 1)
		if err != nil || len(refs) == 0 {
			return err
		}
		dead = refs[0]
		owed, err := w.hasMarker(ctx, catalog.DutyReclaim, catalog.ChainID(c))
		if err != nil {
			return err
		}
		if owed {
			w.givenUp(&dead, Pending, "its refs up to the watermark of chain "+c.String()+" are given up; reclaim retires them")
			return nil
		}
	}
	w.givenUp(&dead, Leaked, "its refs up to the watermark of chain "+c.String()+" are given up, and no reclaim stands that retires them")
	return nil
}

func (w *walk) givenUp(ref *catalog.Ref, state State, why string) {
	item := GarbageItem{Key: ref.Key, State: state, Why: why}
	if set := w.classes[string(ref.Class)]; len(set) > 0 {
		item.Bucket = set.First().Name()
	}
	w.garbage(item)
}

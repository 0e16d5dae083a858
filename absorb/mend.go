package absorb

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// MendCatalog is what mending reads.
type MendCatalog interface {
	Catalog
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error)
}

// slotPage is how many slot rows are read at a time.
const slotPage = 1000

// Mend makes the copies of absorbed slots that a bucket of the set does not have: those
// that were owed when their owner died, and those of a bucket that was away. rows are the
// chains whose slots stand in the set; slots that are condemned already are left out,
// since they go.
//
// It lists the slots of every bucket but the first once, and holds the catalog's slots
// against them, both in the order of their keys. Who else may be copying does no harm:
// copies are create-once. One bucket's failure holds up no other.
func Mend(ctx context.Context, cat MendCatalog, b Bucket, rows []catalog.ChainRow) (made int, err error) {
	rows = slices.SortedFunc(slices.Values(rows), func(x, y catalog.ChainRow) int {
		return strings.Compare(segment.SlotPrefix(x.Chain), segment.SlotPrefix(y.Chain))
	})
	var errs []error
	for _, to := range b.others() {
		n, err := mendBucket(ctx, cat, b, to, rows)
		made += n
		if err != nil {
			errs = append(errs, fmt.Errorf("mend the copies in %s: %w", to.Name(), err))
		}
	}
	return made, errors.Join(errs...)
}

func mendBucket(ctx context.Context, cat MendCatalog, b Bucket, to *objstore.Store, rows []catalog.ChainRow) (made int, err error) {
	next, stop := iter.Pull2(to.ListSorted(ctx, segment.SegPrefix))
	defer stop()
	listed, lerr, more := next()
	for key, err := range absorbed(ctx, cat, rows) {
		if err != nil {
			return made, err
		}
		for more && lerr == nil && listed.Key < key {
			listed, lerr, more = next()
		}
		if lerr != nil {
			return made, lerr // K16: what was not listed is not known to be missing
		}
		if more && listed.Key == key {
			continue
		}
		// Crash here, or between two copies: the next run finds the rest.
		done, err := mendOne(ctx, cat, b, to, key)
		if err != nil {
			return made, err
		}
		if done {
			made++
		}
	}
	return made, nil
}

// absorbed yields the keys of the slots that stand by the catalog, in order.
func absorbed(ctx context.Context, cat MendCatalog, rows []catalog.ChainRow) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, row := range rows {
			for at := max(1, row.Trimmed, row.Condemned); at < row.AbsorbedEnd; {
				page, err := cat.Slots(ctx, row.Chain, at, slotPage)
				if err != nil {
					yield("", fmt.Errorf("read the slots of %s: %w", row.Chain, err))
					return
				}
				if len(page) == 0 {
					break
				}
				for _, slot := range page {
					if slot.ID < row.AbsorbedEnd && !slot.Void && !yield(segment.SlotKey(row.Chain, slot.ID), nil) {
						return
					}
				}
				at = page[len(page)-1].ID + 1
			}
		}
	}
}

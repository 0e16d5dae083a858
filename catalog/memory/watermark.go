package memory

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// RaiseWatermark commits what a chain gives up, and arms its reclaim (03 §9 step 3).
func (c *Catalog) RaiseWatermark(ctx context.Context, w catalog.Watermark) (row catalog.ChainRow, err error) {
	err = c.write(ctx, "RaiseWatermark", func(t *tx) (err error) {
		if row, err = t.row(w.Chain); err != nil {
			return err
		}
		var ends *catalog.SlotRow
		if s, ok := t.slot.get(slotKey{w.Chain, w.Segment}); ok {
			ends = &s.SlotRow
		}
		consumers := row.Consumers
		if t.skip[Consumer] {
			row.Consumers = nil
		}
		var raised bool
		row, raised, err = catalog.WatermarkRow(row, &w, ends, t.now)
		row.Consumers = consumers
		if err != nil || !raised {
			return err
		}
		t.forgetSlots(&row)
		t.arm(catalog.DutyReclaim, catalog.ChainID(w.Chain), "", 0)
		return t.putChain(&row)
	})
	return row, err
}

// DeadRefs is a page of what the watermark gave up wholly. Retired ones are gone, so
// the next call goes on where this one ended.
func (c *Catalog) DeadRefs(ctx context.Context, ch segment.Chain, limit int) (refs []catalog.Ref, more bool, err error) {
	err = c.read(ctx, "DeadRefs", func(t *tx) error {
		row, err := t.given("DeadRefs", ch)
		if err != nil {
			return err
		}
		for r := range t.chainRefs(ch, 0) {
			if r.Last > row.WatermarkSeq {
				break
			}
			if more = len(refs) == catalog.PageSize(limit); more {
				break
			}
			refs = append(refs, *r)
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return refs, more, nil
}

// StraddlingRefs is a page of the settled refs that the watermark cuts in two.
func (c *Catalog) StraddlingRefs(ctx context.Context, ch segment.Chain, after *catalog.Ref, limit int) (refs []catalog.Ref, more bool, err error) {
	err = c.read(ctx, "StraddlingRefs", func(t *tx) error {
		row, err := t.given("StraddlingRefs", ch)
		if err != nil || row.WatermarkSeq == 0 {
			return err
		}
		refs, more = t.across(ch, row.WatermarkSeq, after, catalog.PageSize(limit), true)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return refs, more, nil
}

// given reads the chain of a walk over what it gave up.
func (t *tx) given(verb string, c segment.Chain) (catalog.ChainRow, error) {
	if err := t.checkKinds(verb); err != nil {
		return catalog.ChainRow{}, err
	}
	return t.row(c)
}

// RefsAcross is a page of the refs that hold rows on both sides of a seq's end.
func (c *Catalog) RefsAcross(ctx context.Context, ch segment.Chain, at segment.Seq, after *catalog.Ref, limit int) (refs []catalog.Ref, more bool, err error) {
	err = c.read(ctx, "RefsAcross", func(t *tx) error {
		refs, more = t.across(ch, at, after, catalog.PageSize(limit), false)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return refs, more, nil
}

// across are refs with First <= at < Last, by (last, stream), after the one given.
func (t *tx) across(ch segment.Chain, at segment.Seq, after *catalog.Ref, n int, settled bool) (refs []catalog.Ref, more bool) {
	from := lastKey{Chain: ch, last: at + 1}
	if after != nil && after.Last > at {
		from = lastKey{ch, after.Last, after.StreamID + 1}
	}
	for r := range t.chainRefsFrom(from) {
		if r.First > at || settled && !r.Kind.Settled() {
			continue
		}
		if more = len(refs) == n; more {
			break
		}
		refs = append(refs, *r)
	}
	return refs, more
}

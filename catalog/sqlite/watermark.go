package sqlite

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// RaiseWatermark commits what a chain gives up, and arms its reclaim (03 §9 step 3).
func (d *DB) RaiseWatermark(ctx context.Context, w catalog.Watermark) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "RaiseWatermark", func(t *tx) (err error) {
		if row, err = t.chain(w.Chain); err != nil {
			return err
		}
		at, err := t.slots("SELECT "+column.Slots+" FROM slot s WHERE epoch = ? AND shard = ? AND id = ?", w.Epoch, w.Shard, int64(w.Segment))
		if err != nil {
			return err
		}
		var raised bool
		if row, raised, err = catalog.WatermarkRow(row, &w, column.One(at), t.now); err != nil || !raised {
			return err
		}
		if err := t.forgetSlots(&row); err != nil {
			return err
		}
		if err := t.arm(catalog.DutyReclaim, catalog.ChainID(w.Chain), "", 0); err != nil {
			return err
		}
		return t.putChain(&row)
	})
	return row, err
}

// DeadRefs is a page of what the watermark gave up wholly. Retired ones are gone, so
// the next call goes on where this one ended.
func (d *DB) DeadRefs(ctx context.Context, c segment.Chain, limit int) (refs []catalog.Ref, more bool, err error) {
	err = d.read(ctx, "DeadRefs", func(t *tx) error {
		row, err := t.given("DeadRefs", c)
		if err != nil {
			return err
		}
		n := catalog.PageSize(limit)
		live, err := t.refs(selectRefs+"WHERE r.epoch = ? AND r.shard = ? AND r.last <= ? ORDER BY r.last, r.stream LIMIT ?",
			c.Epoch, c.Shard, int64(row.WatermarkSeq), n+1)
		refs, more = catalog.PageOf(live, n)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return refs, more, nil
}

// StraddlingRefs is a page of the settled refs that the watermark cuts in two.
func (d *DB) StraddlingRefs(ctx context.Context, c segment.Chain, after *catalog.Ref, limit int) (refs []catalog.Ref, more bool, err error) {
	err = d.read(ctx, "StraddlingRefs", func(t *tx) error {
		row, err := t.given("StraddlingRefs", c)
		if err != nil || row.WatermarkSeq == 0 {
			return err
		}
		refs, more, err = t.across(column.Cut{Chain: c, At: row.WatermarkSeq, Settled: true}, after, catalog.PageSize(limit))
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return refs, more, nil
}

// RefsAcross is a page of the refs that hold rows on both sides of a seq's end.
func (d *DB) RefsAcross(ctx context.Context, c segment.Chain, at segment.Seq, after *catalog.Ref, limit int) (refs []catalog.Ref, more bool, err error) {
	err = d.read(ctx, "RefsAcross", func(t *tx) (err error) {
		refs, more, err = t.across(column.Cut{Chain: c, At: at}, after, catalog.PageSize(limit))
		return err
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
	return t.chain(c)
}

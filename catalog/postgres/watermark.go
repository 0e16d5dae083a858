package postgres

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// RaiseWatermark commits what a chain gives up, and arms its reclaim (03 §9 step 3). The
// consumers stand in the chain's row, which it holds: an absorb that brings one, or moves
// one, comes before and is minded, or after and starts at the watermark.
func (d *DB) RaiseWatermark(ctx context.Context, w catalog.Watermark) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "RaiseWatermark", func(t *tx) (err error) {
		stands := t.askChain(w.Chain, " FOR UPDATE")
		var at []catalog.SlotRow
		t.askSlots(&at, "s.id = $3", w.Chain, int64(w.Segment))
		if err := t.flush(); err != nil {
			return err
		}
		if row, err = stands.get(w.Chain); err != nil {
			return err
		}
		var raised bool
		if row, raised, err = catalog.WatermarkRow(row, &w, column.One(at), t.now); err != nil || !raised {
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
func (d *DB) DeadRefs(ctx context.Context, c segment.Chain, limit int) (refs []catalog.Ref, more bool, err error) {
	err = d.read(ctx, "DeadRefs", func(t *tx) error {
		row, err := t.given("DeadRefs", c)
		if err != nil {
			return err
		}
		n := catalog.PageSize(limit)
		var live []catalog.LiveRef
		t.askRefs(&live, selectRefs+"WHERE r.epoch = $1::int8 AND r.shard = $2::int8 AND r.last <= $3 ORDER BY r.last, r.stream LIMIT $4",
			int64(c.Epoch), int64(c.Shard), int64(row.WatermarkSeq), int64(n+1))
		err = t.flush()
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
		refs, more = nil, false
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
	t.askKinds(verb)
	return t.chain(c)
}

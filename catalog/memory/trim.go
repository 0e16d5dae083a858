package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// AdvanceRewritten is the trim-check's first step (03 §7).
func (c *Catalog) AdvanceRewritten(ctx context.Context, ch segment.Chain, consumerHoldMax int64) (row catalog.ChainRow, err error) {
	err = c.write(ctx, "AdvanceRewritten", func(t *tx) (err error) {
		if row, err = t.row(ch); err != nil {
			return err
		}
		in, err := t.rewrittenInput(row, consumerHoldMax)
		if err != nil {
			return err
		}
		to := catalog.NextRewritten(in)
		if to == row.Rewritten {
			return nil
		}
		row.Rewritten = to
		return t.putChain(&row)
	})
	return row, err
}

func (t *tx) rewrittenInput(row catalog.ChainRow, holdMax int64) (in catalog.RewrittenInput, err error) {
	in.Row = row
	if in.Settle, err = t.settles(row.Epoch); err != nil {
		return in, err
	}
	if !in.Settle {
		in.Named = t.firstNamed(&row)
	}
	prefix := catalog.ChainID(row.Chain)
	for k := range t.marker.from(markerKey{catalog.DutySettle, prefix + "."}) {
		if k.duty == catalog.DutySettle && k.id < prefix+"/" {
			if _, in.Earliest, err = catalog.ParseSettleID(k.id); err != nil {
				return in, err
			}
		}
		break
	}
	slowest := catalog.SlowestCursor(row.Consumers)
	if slowest.OK && slowest.Seq+1 < row.NextSeq {
		t.consumerHold(&in, slowest.Seq, holdMax)
	}
	return in, nil
}

// firstNamed finds the earliest slot that a ref names, of those that the watermark
// gave up.
func (t *tx) firstNamed(row *catalog.ChainRow) segment.ID {
	for k, s := range t.slot.from(slotKey{row.Chain, row.Rewritten}) {
		if k.Chain != row.Chain || k.id > row.WatermarkSegment {
			break
		}
		if t.isNamed(s.key) {
			return k.id
		}
	}
	return 0
}

// consumerHold finds the slot of the slowest consumer's next row, and how far back
// its hold may reach; holdMax of 0 or less sets no bound.
func (t *tx) consumerHold(in *catalog.RewrittenInput, cursor segment.Seq, holdMax int64) {
	row := &in.Row
	in.HoldFloor = row.AbsorbedEnd
	if holdMax <= 0 {
		in.HoldFloor = 0
	}
	var bytes int64
	for k, s := range t.slot.below(slotKey{row.Chain, row.AbsorbedEnd}) {
		if k.Chain != row.Chain || k.id < row.Rewritten || !s.Void && s.Next <= cursor+1 {
			return // this slot and those before it are acknowledged
		}
		if bytes += s.Bytes; bytes <= holdMax && in.HoldFloor != 0 {
			in.HoldFloor = k.id
		}
		if !s.Void {
			in.Slowest = k.id
		}
	}
}

// due says whether condemned slots may be deleted now.
func (t *tx) due(row *catalog.ChainRow) bool {
	return catalog.SlotsDue(t.condemnedAt(row), t.grace(), t.now)
}

// condemnedAt is the row that due times are judged by.
func (t *tx) condemnedAt(row *catalog.ChainRow) *catalog.ChainRow {
	if !t.skip[CondemnedAt] {
		return row
	}
	old := *row
	old.CondemnedAt = time.Time{}
	return &old
}

// DueSlots is the look of the trim-check's second step: what may be deleted now.
func (c *Catalog) DueSlots(ctx context.Context, ch segment.Chain, limit int) (p catalog.TrimPlan, err error) {
	err = c.read(ctx, "DueSlots", func(t *tx) error {
		p.Now = t.now
		if err := t.checkKinds("DueSlots"); err != nil {
			return err
		}
		if p.Chain, err = t.row(ch); err != nil {
			return err
		}
		p.Due = t.due(&p.Chain)
		for k, s := range t.slot.from(slotKey{ch, p.Chain.Trimmed}) {
			if k.Chain != ch || k.id >= p.Chain.Condemned || len(p.Slots) == catalog.PageSize(limit) {
				break
			}
			p.Slots = append(p.Slots, s.SlotRow)
		}
		p.Named = t.namedSlots(ch, p.Chain.Trimmed, p.Chain.Condemned)
		return nil
	})
	if err != nil {
		return catalog.TrimPlan{}, err
	}
	return p, nil
}

// namedSlots are refs that name a slot in [from, to): at most a page of them, one is
// enough to stop.
func (t *tx) namedSlots(c segment.Chain, from, to segment.ID) (out []catalog.Ref) {
	const enough = 100
	if t.skip[Named] {
		return nil
	}
	for k, s := range t.slot.from(slotKey{c, from}) {
		if k.Chain != c || k.id >= to {
			break
		}
		for r := range t.naming(s.key) {
			if out = append(out, *r); len(out) == enough {
				return out
			}
		}
	}
	return out
}

// AdvanceTrim moves trimmed over slots that are deleted from every bucket.
func (c *Catalog) AdvanceTrim(ctx context.Context, ch segment.Chain, from, to segment.ID) (row catalog.ChainRow, err error) {
	err = c.write(ctx, "AdvanceTrim", func(t *tx) (err error) {
		if err := t.checkKinds("AdvanceTrim"); err != nil {
			return err
		}
		if row, err = t.row(ch); err != nil {
			return err
		}
		if err := catalog.CheckAdvanceTrim(t.condemnedAt(&row), from, to, t.grace(), t.now); err != nil {
			return err
		}
		if named := t.namedSlots(ch, from, to); len(named) > 0 {
			return catalog.Conflict("AdvanceTrim", "refs", fmt.Sprintf("none that names a slot of %s below %d", ch, to), fmt.Sprintf("%s names %s", named[0].FirstPos(), named[0].Key))
		}
		row.Trimmed = to
		t.forgetSlots(&row)
		if err := t.mergeSlots(&row, from); err != nil {
			return err
		}
		return t.putChain(&row)
	})
	return row, err
}

// armTrim arms a chain's trim-check, one grace out as every arm of it.
func (t *tx) armTrim(c segment.Chain) {
	t.arm(catalog.DutyTrimCheck, catalog.ChainID(c), "", t.grace())
}

// CondemnSlots is the trim-check's third step, and the next arm with it.
func (c *Catalog) CondemnSlots(ctx context.Context, m catalog.MarkerRef, ch segment.Chain, expect, to segment.ID) (row catalog.ChainRow, err error) {
	if m.Duty != catalog.DutyTrimCheck || m.ID != catalog.ChainID(ch) {
		return row, catalog.Invalid("CondemnSlots", "marker %s %s is not the trim-check of chain %s", m.Duty, m.ID, ch)
	}
	err = c.write(ctx, "CondemnSlots", func(t *tx) (err error) {
		if row, err = t.row(ch); err != nil {
			return err
		}
		if err := catalog.CheckCondemnSlots(&row, expect, to); err != nil {
			return err
		}
		have, ok := t.at(m)
		if !ok {
			return t.movedOn("CondemnSlots", m)
		}
		t.putMarker(t.restart(have, t.grace()))
		row.Condemned, row.CondemnedAt = to, t.now
		return t.putChain(&row)
	})
	return row, err
}

// AdvanceJournal moves the number of a chain's next trim record.
func (c *Catalog) AdvanceJournal(ctx context.Context, ch segment.Chain, n uint64) error {
	return c.write(ctx, "AdvanceJournal", func(t *tx) error {
		row, err := t.row(ch)
		if err != nil {
			return err
		}
		if row.TrimJournal != n {
			return catalog.Conflict("AdvanceJournal", "trim journal of chain "+ch.String(), n, row.TrimJournal)
		}
		row.TrimJournal++
		return t.putChain(&row)
	})
}

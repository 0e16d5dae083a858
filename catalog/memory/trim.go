package memory

import (
	"context"
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
	t.consumerHold(&in, holdMax)
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

// consumerHold finds what the slowest consumer holds back.
func (t *tx) consumerHold(in *catalog.RewrittenInput, holdMax int64) {
	hold := in.Holds(holdMax)
	if hold == nil {
		return
	}
	for k, s := range t.slot.below(slotKey{in.Row.Chain, in.Row.AbsorbedEnd}) {
		if k.Chain != in.Row.Chain || k.id < in.Row.Rewritten || hold.Take(in, &s.SlotRow) {
			return
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
		next, err := catalog.TrimRow(*t.condemnedAt(&row), catalog.Trimming{From: from, To: to, Grace: t.grace(), Named: t.namedSlots(ch, from, to)}, t.now)
		if err != nil {
			return err
		}
		row.Trimmed = next.Trimmed
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
	if err := catalog.ValidateCondemnSlots(m, ch); err != nil {
		return row, err
	}
	err = c.write(ctx, "CondemnSlots", func(t *tx) (err error) {
		if row, err = t.row(ch); err != nil {
			return err
		}
		if row, err = catalog.CondemnRow(row, catalog.Trimming{From: expect, To: to}, t.now); err != nil {
			return err
		}
		have, ok := t.at(m)
		if !ok {
			return t.movedOn("CondemnSlots", m)
		}
		t.putMarker(t.restart(have, t.grace()))
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
		if row, err = catalog.JournalRow(row, n); err != nil {
			return err
		}
		return t.putChain(&row)
	})
}

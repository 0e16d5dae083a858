package sqlite

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// AdvanceRewritten is the trim-check's first step (03 §7).
func (d *DB) AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "AdvanceRewritten", func(t *tx) (err error) {
		if row, err = t.chain(c); err != nil {
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
		if err := t.firstNamed(&in); err != nil {
			return in, err
		}
	}
	prefix := catalog.ChainID(row.Chain)
	var id string
	standing, err := t.one("SELECT id FROM marker WHERE duty = 'settle' AND id > ? AND id < ? ORDER BY id LIMIT 1", []any{prefix + ".", prefix + "/"}, &id)
	if err != nil {
		return in, err
	}
	if standing {
		if _, in.Earliest, err = catalog.ParseSettleID(id); err != nil {
			return in, err
		}
	}
	return in, t.consumerHold(&in, holdMax)
}

// firstNamed finds the earliest slot that a ref names, of those that the watermark
// gave up.
func (t *tx) firstNamed(in *catalog.RewrittenInput) error {
	row := &in.Row
	_, err := t.one(`SELECT w.id FROM slot w CROSS JOIN object o ON o.key = w.key CROSS JOIN ref r ON r.object = o.id
 WHERE w.epoch = ? AND w.shard = ? AND w.id >= ? AND w.id <= ? ORDER BY w.id LIMIT 1`,
		[]any{row.Epoch, row.Shard, int64(row.Rewritten), int64(row.WatermarkSegment)}, &in.Named)
	return err
}

// consumerHold finds what the slowest consumer holds back.
func (t *tx) consumerHold(in *catalog.RewrittenInput, holdMax int64) error {
	hold, row := in.Holds(holdMax), &in.Row
	if hold == nil {
		return nil
	}
	return t.query("SELECT id, next, bytes, void FROM slot WHERE epoch = ? AND shard = ? AND id >= ? ORDER BY id DESC", func(scan column.Scan) error {
		var s catalog.SlotRow
		if err := scan(&s.ID, &s.Next, &s.Bytes, &s.Void); err != nil {
			return err
		}
		if hold.Take(in, &s) {
			return errStop
		}
		return nil
	}, row.Epoch, row.Shard, int64(row.Rewritten))
}

// DueSlots is the look of the trim-check's second step: what may be deleted now.
func (d *DB) DueSlots(ctx context.Context, c segment.Chain, limit int) (p catalog.TrimPlan, err error) {
	err = d.read(ctx, "DueSlots", func(t *tx) error {
		p, err = t.dueSlots(c, limit)
		return err
	})
	if err != nil {
		return catalog.TrimPlan{}, err
	}
	return p, nil
}

func (t *tx) dueSlots(c segment.Chain, limit int) (p catalog.TrimPlan, err error) {
	p.Now = t.now
	if err := t.checkKinds("DueSlots"); err != nil {
		return p, err
	}
	if p.Chain, err = t.chain(c); err != nil {
		return p, err
	}
	grace, err := t.grace()
	if err != nil {
		return p, err
	}
	p.Due = catalog.SlotsDue(&p.Chain, time.Duration(grace), t.now)
	if p.Slots, err = t.slots("SELECT "+column.Slots+" FROM slot s WHERE epoch = ? AND shard = ? AND id >= ? AND id < ? ORDER BY id LIMIT ?",
		c.Epoch, c.Shard, int64(p.Chain.Trimmed), int64(p.Chain.Condemned), catalog.PageSize(limit)); err != nil {
		return p, err
	}
	p.Named, err = t.namedSlots(c, p.Chain.Trimmed, p.Chain.Condemned)
	return p, err
}

// namedSlots are refs that name a slot in [from, to): at most a page of them, one is
// enough to stop.
func (t *tx) namedSlots(c segment.Chain, from, to segment.ID) ([]catalog.Ref, error) {
	live, err := t.refs("SELECT "+refCols+` FROM slot w CROSS JOIN object o ON o.key = w.key CROSS JOIN ref r ON r.object = o.id
 LEFT JOIN stream s ON s.id = r.stream LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard
 WHERE w.epoch = ? AND w.shard = ? AND w.id >= ? AND w.id < ? LIMIT 100`, c.Epoch, c.Shard, int64(from), int64(to))
	return catalog.PlainRefs(live), err
}

// AdvanceTrim moves trimmed over slots that are deleted from every bucket.
func (d *DB) AdvanceTrim(ctx context.Context, c segment.Chain, from, to segment.ID) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "AdvanceTrim", func(t *tx) (err error) {
		if err := t.checkKinds("AdvanceTrim"); err != nil {
			return err
		}
		if row, err = t.chain(c); err != nil {
			return err
		}
		grace, err := t.grace()
		if err != nil {
			return err
		}
		named, err := t.namedSlots(c, from, to)
		if err != nil {
			return err
		}
		if row, err = catalog.TrimRow(row, catalog.Trimming{From: from, To: to, Grace: time.Duration(grace), Named: named}, t.now); err != nil {
			return err
		}
		if err := t.forgetSlots(&row); err != nil {
			return err
		}
		if err := t.mergeSlots(&row, from); err != nil {
			return err
		}
		return t.putChain(&row)
	})
	return row, err
}

// armTrim arms a chain's trim-check, one grace out as every arm of it.
func (t *tx) armTrim(c segment.Chain) error {
	grace, err := t.grace()
	if err != nil {
		return err
	}
	return t.arm(catalog.DutyTrimCheck, catalog.ChainID(c), "", time.Duration(grace))
}

// CondemnSlots is the trim-check's third step, and the next arm with it.
func (d *DB) CondemnSlots(ctx context.Context, m catalog.MarkerRef, c segment.Chain, expect, to segment.ID) (row catalog.ChainRow, err error) {
	if err := catalog.ValidateCondemnSlots(m, c); err != nil {
		return row, err
	}
	err = d.write(ctx, "CondemnSlots", func(t *tx) (err error) {
		if row, err = t.chain(c); err != nil {
			return err
		}
		if row, err = catalog.CondemnRow(row, catalog.Trimming{From: expect, To: to}, t.now); err != nil {
			return err
		}
		grace, err := t.grace()
		if err != nil {
			return err
		}
		v, err := t.version()
		if err != nil {
			return err
		}
		n, err := t.execN("UPDATE marker SET version = ?, due = ?, lease_owner = '', lease_end = 0, attempts = 0, last_error = '' WHERE duty = ? AND id = ? AND version = ?",
			v, column.Nanos(t.now)+grace, string(m.Duty), m.ID, m.Version)
		if err != nil {
			return err
		}
		if n == 0 {
			return t.movedOn("CondemnSlots", m)
		}
		return t.putChain(&row)
	})
	return row, err
}

// AdvanceJournal moves the number of a chain's next trim record.
func (d *DB) AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error {
	return d.write(ctx, "AdvanceJournal", func(t *tx) error {
		row, err := t.chain(c)
		if err != nil {
			return err
		}
		if row, err = catalog.JournalRow(row, n); err != nil {
			return err
		}
		return t.putChain(&row)
	})
}

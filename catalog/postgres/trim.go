package postgres

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// AdvanceRewritten is the trim-check's first step (03 §7). It holds the chain's row from
// before it looks: an absorb, and with it a new settle marker or a consumer, comes before
// and is seen, or after and lies at absorbed_end or above. A settle marker that goes away
// meanwhile only let it go less far.
func (d *DB) AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "AdvanceRewritten", func(t *tx) (err error) {
		if row, err = t.lockChain(c); err != nil {
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
	epoch, shard := int64(row.Epoch), int64(row.Shard)
	known := false
	t.askOne("SELECT settle FROM topology WHERE epoch = $1::int8", []any{epoch}, &known, &in.Settle)
	prefix := catalog.ChainID(row.Chain)
	t.ask("SELECT id FROM marker WHERE duty = 'settle' AND id > $1 AND id < $2 ORDER BY id LIMIT 1", func(scan column.Scan) error {
		var id string
		err := scan(&id)
		if err == nil {
			_, in.Earliest, err = catalog.ParseSettleID(id)
		}
		return err
	}, prefix+".", prefix+"/")
	// The earliest slot that a ref names, of those that the watermark gave up.
	var named segment.ID
	t.askOne(`SELECT w.id FROM slot w JOIN object o ON o.key = w.key WHERE w.epoch = $1::int8 AND w.shard = $2::int8 AND w.id >= $3 AND w.id <= $4
 AND EXISTS (SELECT 1 FROM ref r WHERE r.object = o.id) ORDER BY w.id LIMIT 1`,
		[]any{epoch, shard, int64(row.Rewritten), int64(row.WatermarkSegment)}, nil, &named)
	if err := t.flush(); err != nil {
		return in, err
	}
	if !known {
		return in, catalog.NoTopology(row.Epoch)
	}
	if !in.Settle {
		in.Named = named
	}
	return in, t.consumerHold(&in, holdMax)
}

// consumerHold finds what the slowest consumer holds back.
func (t *tx) consumerHold(in *catalog.RewrittenInput, holdMax int64) error {
	hold, row := in.Holds(holdMax), &in.Row
	if hold == nil {
		return nil
	}
	// Slots behind the last that is acknowledged, newest first.
	return t.query(`SELECT id, next, bytes, void FROM slot WHERE epoch = $1::int8 AND shard = $2::int8 AND id >= $3 AND id > COALESCE((
 SELECT id FROM slot WHERE epoch = $1::int8 AND shard = $2::int8 AND id >= $3 AND NOT void AND next <= $4 ORDER BY id DESC LIMIT 1), 0) ORDER BY id DESC`, func(scan column.Scan) error {
		var s catalog.SlotRow
		err := scan(&s.ID, &s.Next, &s.Bytes, &s.Void)
		hold.Take(in, &s)
		return err
	}, int64(row.Epoch), int64(row.Shard), int64(row.Rewritten), int64(catalog.SlowestCursor(row.Consumers).Seq+1))
}

// DueSlots is the look of the trim-check's second step: what may be deleted now.
func (d *DB) DueSlots(ctx context.Context, c segment.Chain, limit int) (p catalog.TrimPlan, err error) {
	err = d.read(ctx, "DueSlots", func(t *tx) error {
		p = catalog.TrimPlan{}
		t.askKinds("DueSlots")
		stands, settings := t.askChain(c, ""), t.askSettings("")
		err := t.flush()
		if err != nil {
			return err
		}
		if p.Chain, err = stands.get(c); err != nil {
			return err
		}
		p.Now, p.Due = t.now, catalog.SlotsDue(&p.Chain, t.graceOf(settings), t.now)
		var named []catalog.LiveRef
		t.askSlots(&p.Slots, "s.id >= $3 AND s.id < $4 ORDER BY s.id LIMIT $5", c, int64(p.Chain.Trimmed), int64(p.Chain.Condemned), int64(catalog.PageSize(limit)))
		t.askNamedSlots(&named, c, p.Chain.Trimmed, p.Chain.Condemned)
		err = t.flush()
		p.Named = catalog.PlainRefs(named)
		return err
	})
	if err != nil {
		return catalog.TrimPlan{}, err
	}
	return p, nil
}

// askNamedSlots reads refs that name a slot in [from, to): at most a page of them, one is
// enough to stop.
func (t *tx) askNamedSlots(out *[]catalog.LiveRef, c segment.Chain, from, to segment.ID) {
	t.askRefs(out, "SELECT "+refCols+` FROM slot w JOIN object o ON o.key = w.key JOIN ref r ON r.object = o.id`+streamJoin+`
 WHERE w.epoch = $1::int8 AND w.shard = $2::int8 AND w.id >= $3 AND w.id < $4 LIMIT 100`, int64(c.Epoch), int64(c.Shard), int64(from), int64(to))
}

// AdvanceTrim moves trimmed over slots that are deleted from every bucket. It holds the
// chain's row, and asks behind it whether a ref names one of the slots. A commit under way
// cannot bring such a ref back: what it leaves of a slot's ref names the slot before and
// after, so either state is seen, and a slot that no ref names is never named again.
func (d *DB) AdvanceTrim(ctx context.Context, c segment.Chain, from, to segment.ID) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "AdvanceTrim", func(t *tx) (err error) {
		stands, settings := t.askChain(c, " FOR UPDATE"), t.askSettings("")
		t.askKinds("AdvanceTrim")
		var named []catalog.LiveRef
		t.askNamedSlots(&named, c, from, to)
		var epochs []catalog.Topology
		t.askTopologies(&epochs, "WHERE epoch = $1::int8", int64(c.Epoch))
		if err := t.flush(); err != nil {
			return err
		}
		if row, err = stands.get(c); err != nil {
			return err
		}
		if row, err = catalog.TrimRow(row, catalog.Trimming{From: from, To: to, Grace: t.graceOf(settings), Named: catalog.PlainRefs(named)}, t.now); err != nil {
			return err
		}
		if len(epochs) == 0 {
			return catalog.NoTopology(c.Epoch)
		}
		t.forgetSlots(&row)
		if epochs[0].Retention.Keeps() {
			if err := t.mergeSlots(&row, from); err != nil {
				return err
			}
		}
		return t.putChain(&row)
	})
	return row, err
}

// armTrim arms a chain's trim-check, one grace out as every arm of it.
func (t *tx) armTrim(c segment.Chain, settings *catalog.Settings) {
	t.arm(catalog.DutyTrimCheck, catalog.ChainID(c), "", t.graceOf(settings))
}

// CondemnSlots is the trim-check's third step, and the next arm with it.
func (d *DB) CondemnSlots(ctx context.Context, m catalog.MarkerRef, c segment.Chain, expect, to segment.ID) (row catalog.ChainRow, err error) {
	if err := catalog.ValidateCondemnSlots(m, c); err != nil {
		return row, err
	}
	err = d.write(ctx, "CondemnSlots", func(t *tx) (err error) {
		stands, settings := t.askChain(c, " FOR UPDATE"), t.askSettings("")
		if err := t.flush(); err != nil {
			return err
		}
		if row, err = stands.get(c); err != nil {
			return err
		}
		if row, err = catalog.CondemnRow(row, catalog.Trimming{From: expect, To: to}, t.now); err != nil {
			return err
		}
		if err := t.nextTrim(m, t.graceOf(settings)); err != nil {
			return err
		}
		return t.putChain(&row)
	})
	return row, err
}

// nextTrim makes the trim-check that was taken due again, one grace out.
func (t *tx) nextTrim(m catalog.MarkerRef, grace time.Duration) error {
	n, err := t.execN("UPDATE marker SET version = nextval('marker_version'), due = $1, lease_owner = '', lease_end = 0, attempts = 0, last_error = '' WHERE duty = $2 AND id = $3 AND version = $4",
		column.Nanos(t.now.Add(grace)), string(m.Duty), m.ID, m.Version)
	if err != nil || n == 1 {
		return err
	}
	return t.movedOn("CondemnSlots", m)
}

// AdvanceJournal moves the number of a chain's next trim record.
func (d *DB) AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error {
	return d.write(ctx, "AdvanceJournal", func(t *tx) error {
		row, err := t.lockChain(c)
		if err != nil {
			return err
		}
		if row, err = catalog.JournalRow(row, n); err != nil {
			return err
		}
		return t.putChain(&row)
	})
}

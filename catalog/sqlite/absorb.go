package sqlite

import (
	"context"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// AbsorbSlot takes a published slot into the history (03 §2 step 3).
func (d *DB) AbsorbSlot(ctx context.Context, a catalog.Absorb) (out catalog.Absorbed, err error) {
	if err := catalog.ValidateAbsorb(&a); err != nil {
		return out, err
	}
	err = d.write(ctx, "AbsorbSlot", func(t *tx) (err error) {
		out, err = t.absorb(&a)
		return err
	})
	return out, err
}

func (t *tx) absorb(a *catalog.Absorb) (catalog.Absorbed, error) {
	s := &a.Slot
	row, err := t.chain(s.Chain)
	if err != nil {
		return catalog.Absorbed{}, err
	}
	stood, term, err := t.stood(s, &row)
	if err != nil {
		return catalog.Absorbed{}, err
	}
	already, err := catalog.CheckAbsorb(&row, a, catalog.Absorbing{Stood: stood, Term: term}, t.now)
	if err != nil || already {
		return catalog.Absorbed{Chain: row, Already: already && err == nil}, err
	}
	if a.Void {
		err = t.absorbVoid(a, &row)
		return catalog.Absorbed{Chain: row}, err
	}
	out := catalog.Absorbed{}
	if out.Inserted, out.Dead, err = t.absorbRefs(a, &row); err != nil {
		return out, err
	}
	if err := t.absorbSlotRow(a, &row); err != nil {
		return out, err
	}
	err = t.advanceChain(a, &row, term)
	out.Chain = row
	return out, err
}

// stood reads what stands at the slot's position, and the row of its term.
func (t *tx) stood(s *catalog.SlotRow, row *catalog.ChainRow) (*catalog.SlotRow, *catalog.TermRow, error) {
	var stood *catalog.SlotRow
	if s.ID < row.AbsorbedEnd {
		have, err := t.slots("SELECT "+column.Slots+" FROM slot s WHERE epoch = ? AND shard = ? AND id = ?", s.Epoch, s.Shard, int64(s.ID))
		if err != nil {
			return nil, nil, err
		}
		stood = column.One(have)
	}
	var term *catalog.TermRow
	err := t.query("SELECT "+column.Terms+" FROM term WHERE epoch = ? AND shard = ? AND term = ?", func(scan column.Scan) error {
		r, err := column.Term(scan)
		term = &r
		return err
	}, s.Epoch, s.Shard, s.Term)
	return stood, term, err
}

// absorbVoid: only absorbed_end moves. A slot that may hold rows keeps a parked
// marker, which nothing passes, until a person accepts the loss.
func (t *tx) absorbVoid(a *catalog.Absorb, row *catalog.ChainRow) error {
	s := a.Slot
	s.Void = true
	if err := t.insertSlot(&s, a.Key, false); err != nil {
		return err
	}
	if a.HoldsRows() {
		if err := t.arm(catalog.DutySettle, catalog.SettleID(s.Chain, s.ID), a.Class, catalog.Parked.Sub(t.now)); err != nil {
			return err
		}
		if err := t.exec("UPDATE marker SET last_error = ? WHERE duty = ? AND id = ?",
			"void: "+a.Reason, string(catalog.DutySettle), catalog.SettleID(s.Chain, s.ID)); err != nil {
			return err
		}
	}
	row.AbsorbedEnd++
	if err := t.audit("void", s.Chain.String(), catalog.DescribeVoid(a)); err != nil {
		return err
	}
	return t.putChain(row)
}

func (t *tx) insertSlot(s *catalog.SlotRow, key string, owed bool) error {
	return t.exec("INSERT INTO slot VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		s.Epoch, s.Shard, int64(s.ID), int64(s.First), int64(s.Next), s.Bytes, s.UUID[:], s.Prev[:], int64(s.Digest), int64(s.Term),
		column.Nanos(s.Sealed), s.Closed, s.Void, key, owed)
}

// absorbSlotRow records the slot and, where its topology settles, arms its marker.
func (t *tx) absorbSlotRow(a *catalog.Absorb, row *catalog.ChainRow) error {
	s := &a.Slot
	settle, err := t.settles(s.Epoch)
	if err != nil {
		return err
	}
	if err := t.insertSlot(s, a.Key, settle); err != nil || !settle {
		return err
	}
	row.AddTransit(s)
	return t.arm(catalog.DutySettle, catalog.SettleID(s.Chain, s.ID), a.Class, 0)
}

func (t *tx) settles(e segment.Epoch) (settle bool, err error) {
	ok, err := t.one("SELECT settle FROM topology WHERE epoch = ?", []any{e}, &settle)
	if err == nil && !ok {
		err = catalog.NoTopology(e)
	}
	return settle, err
}

// advanceChain moves the chain's cursors, consumers and term over the slot.
func (t *tx) advanceChain(a *catalog.Absorb, row *catalog.ChainRow, term *catalog.TermRow) error {
	next, slowest := catalog.AdvanceChain(row, a, term)
	if slowest {
		if err := t.armTrim(row.Chain); err != nil {
			return err
		}
	}
	if err := t.exec(`INSERT INTO term VALUES (?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (epoch, shard, term) DO UPDATE SET first = excluded.first, last = excluded.last, last_seq = excluded.last_seq`,
		next.Epoch, next.Shard, next.Term, next.Owner[:], next.First, next.Last, next.LastSeq); err != nil {
		return err
	}
	return t.putChain(row)
}

// absorbRefs inserts one ref per chunk that is not wholly dead, and moves the
// streams' tips.
func (t *tx) absorbRefs(a *catalog.Absorb, row *catalog.ChainRow) (inserted, dead int, err error) {
	if len(a.Refs) == 0 {
		return 0, 0, nil
	}
	streams, err := t.upsertStreams(a)
	if err != nil {
		return 0, 0, err
	}
	live, dead, err := catalog.PlaceRefs(a, row, streams)
	if err != nil {
		return 0, 0, err
	}
	if err := t.moveTips(streams, a.Slot.Shard); err != nil || len(live) == 0 {
		return 0, dead, err
	}
	catalog.SortRefs(live) // the order of the table: fewer page visits
	obj, err := t.object(&live[0])
	if err != nil {
		return 0, dead, err
	}
	return len(live), dead, t.insertRefs(live, func(*catalog.Ref) int64 { return obj })
}

// upsertStreams returns the slot's streams by name; one name has one id for ever.
func (t *tx) upsertStreams(a *catalog.Absorb) (map[string]*catalog.Stream, error) {
	names := a.StreamNames()
	out := make(map[string]*catalog.Stream, len(names))
	if err := t.streamsNamed(names, out); err != nil {
		return nil, err
	}
	missing := names[:0]
	for _, n := range names {
		if out[n] == nil {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	if err := t.createStreams(missing); err != nil {
		return nil, err
	}
	return out, t.streamsNamed(missing, out)
}

func (t *tx) streamsNamed(names []string, out map[string]*catalog.Stream) error {
	set, err := column.JSON(names)
	if err != nil {
		return err
	}
	return t.query("SELECT "+column.Streams+" FROM json_each(?) j CROSS JOIN stream s ON s.name = j.value", func(scan column.Scan) error {
		s, err := scanStream(scan)
		out[s.Name] = &s
		return err
	}, set)
}

func (t *tx) createStreams(names []string) error {
	rows := make([][3]any, len(names))
	for i, n := range names {
		hash, err := catalog.StreamHash(n)
		if err != nil {
			return err
		}
		rows[i] = [3]any{n, hash, 0}
	}
	set, err := column.JSON(rows)
	if err != nil {
		return err
	}
	return t.exec(`INSERT OR FAIL INTO stream (name, live_epoch, live_seq, last_epoch, last_seq, last_shard, deleted, created, hash)
 SELECT j.value ->> 0, 0, 0, 0, 0, 0, 0, ?2, j.value ->> 1 FROM json_each(?1) j`, set, column.Nanos(t.now))
}

// moveTips writes the streams' last positions, in one statement.
func (t *tx) moveTips(streams map[string]*catalog.Stream, shard segment.Shard) error {
	rows := make([][4]int64, 0, len(streams))
	for _, s := range streams {
		deleted := int64(0)
		if s.Deleted {
			deleted = 1
		}
		rows = append(rows, [4]int64{s.ID, int64(s.Last.Epoch), int64(s.Last.Seq), deleted})
	}
	slices.SortFunc(rows, func(x, y [4]int64) int { return int(min(max(x[0]-y[0], -1), 1)) })
	set, err := column.JSON(rows)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE OR FAIL stream SET last_epoch = n.epoch, last_seq = n.seq, last_shard = ?2, deleted = n.deleted
 FROM (SELECT j.value ->> 0 AS id, j.value ->> 1 AS epoch, j.value ->> 2 AS seq, j.value ->> 3 AS deleted FROM json_each(?1) j) n
 WHERE stream.id = n.id`, set, shard)
}

package memory

import (
	"context"

	"github.com/strandline/strandline/catalog"
)

// AbsorbSlot takes a published slot into the history (03 §2 step 3).
func (c *Catalog) AbsorbSlot(ctx context.Context, a catalog.Absorb) (out catalog.Absorbed, err error) {
	if err := catalog.ValidateAbsorb(&a); err != nil {
		return out, err
	}
	a.Slot.Sealed = plain(a.Slot.Sealed)
	err = c.write(ctx, "AbsorbSlot", func(t *tx) (err error) {
		out, err = t.absorb(&a)
		return err
	})
	return out, err
}

func (t *tx) absorb(a *catalog.Absorb) (catalog.Absorbed, error) {
	s := &a.Slot
	row, err := t.row(s.Chain)
	if err != nil {
		return catalog.Absorbed{}, err
	}
	var stood *catalog.SlotRow
	if s.ID < row.AbsorbedEnd {
		if have, ok := t.slot.get(slotKey{s.Chain, s.ID}); ok {
			stood = &have.SlotRow
		}
	}
	term, _ := t.term.get(termKey{s.Chain, s.Term})
	already, err := t.checkAbsorb(&row, a, catalog.Absorbing{Stood: stood, Term: term})
	if already && err == nil && t.skip[DeadRefs] {
		t.insertDead(a)
	}
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

// checkAbsorb asks the guards, but for those that are skipped.
func (t *tx) checkAbsorb(row *catalog.ChainRow, a *catalog.Absorb, look catalog.Absorbing) (bool, error) {
	if len(t.skip) == 0 {
		return catalog.CheckAbsorb(row, a, look, t.now)
	}
	seen, ask := *row, *a
	if t.skip[Position] && ask.Slot.ID > seen.AbsorbedEnd {
		seen.AbsorbedEnd = ask.Slot.ID
	}
	if t.skip[Stood] && ask.Slot.ID < seen.AbsorbedEnd {
		return true, nil
	}
	if t.skip[Continues] {
		seen.LastTerm, seen.NextSeq, seen.LastUUID = min(seen.LastTerm, ask.Slot.Term), ask.Slot.First, ask.Slot.Prev
	}
	return catalog.CheckAbsorb(&seen, &ask, look, t.now)
}

// absorbVoid: only absorbed_end moves. A slot that may hold rows keeps a parked
// marker, which nothing passes, until a person accepts the loss.
func (t *tx) absorbVoid(a *catalog.Absorb, row *catalog.ChainRow) error {
	s := a.Slot
	s.Void = true
	t.putSlot(&slotRow{SlotRow: s, key: a.Key})
	if a.HoldsRows() {
		id := catalog.SettleID(s.Chain, s.ID)
		t.arm(catalog.DutySettle, id, a.Class, catalog.Parked.Sub(t.now))
		m, _ := t.marker.get(markerKey{catalog.DutySettle, id})
		said := *m
		said.LastError = "void: " + a.Reason
		t.putMarker(&said)
	}
	row.AbsorbedEnd++
	t.record("void", s.Chain.String(), catalog.DescribeVoid(a))
	return t.putChain(row)
}

// absorbSlotRow records the slot and, where its topology settles, arms its marker.
func (t *tx) absorbSlotRow(a *catalog.Absorb, row *catalog.ChainRow) error {
	s := &a.Slot
	settle, err := t.settles(s.Epoch)
	if err != nil {
		return err
	}
	t.putSlot(&slotRow{SlotRow: *s, key: a.Key, owed: settle})
	if !settle {
		return nil
	}
	row.AddTransit(s)
	t.arm(catalog.DutySettle, catalog.SettleID(s.Chain, s.ID), a.Class, 0)
	return nil
}

// advanceChain moves the chain's cursors, consumers and term over the slot.
func (t *tx) advanceChain(a *catalog.Absorb, row *catalog.ChainRow, term *catalog.TermRow) error {
	next, slowest := catalog.AdvanceChain(row, a, term)
	if slowest {
		t.armTrim(row.Chain)
	}
	t.term.set(termKey{next.Chain, next.Term}, &next)
	return t.putChain(row)
}

// absorbRefs inserts one ref per chunk that is not wholly dead, and moves the
// streams' tips.
func (t *tx) absorbRefs(a *catalog.Absorb, row *catalog.ChainRow) (inserted, dead int, err error) {
	var s *streamRow // of the chunk before: chunks of one stream lie side by side
	for i := range a.Refs {
		if s == nil || s.Name != a.Refs[i].Stream {
			if s != nil {
				t.putStream(s)
			}
			if s, err = t.streamFor(a.Refs[i].Stream); err != nil {
				return 0, 0, err
			}
		}
		r := a.Refs[i]
		s.lastShard = a.Slot.Shard
		gone, err := catalog.PlaceRef(a, row, &r, &s.Stream)
		if err != nil {
			return 0, 0, err
		}
		if gone {
			dead++
			continue
		}
		if err := t.checkObject(&r); err != nil {
			return 0, 0, err
		}
		t.putRef(&r)
		inserted++
	}
	if s != nil {
		t.putStream(s)
	}
	return inserted, dead, nil
}

// insertDead is the fault that DeadRefs plants: a slot that comes again brings back
// those of its refs that are dead by now.
func (t *tx) insertDead(a *catalog.Absorb) {
	for i := range a.Refs {
		r := a.Refs[i]
		s, ok := t.streamName.get(r.Stream)
		if !ok {
			continue
		}
		r.StreamID, r.Key, r.Class = s.ID, a.Key, a.Class
		if l, err := t.live(&r); err == nil && l.Dead(l.LiveFrom) {
			t.putRef(&r)
		}
	}
}

// streamFor is the caller's own copy of a stream's row; one name has one id for ever.
func (t *tx) streamFor(name string) (*streamRow, error) {
	if have, ok := t.streamName.get(name); ok {
		s := *have
		return &s, nil
	}
	hash, err := catalog.StreamHash(name)
	if err != nil {
		return nil, err
	}
	t.lastStream++
	s := &streamRow{Stream: catalog.Stream{ID: t.lastStream, Name: name, Created: t.now}}
	if hash != "" {
		t.streamHash.set(hashKey{hash, s.ID}, struct{}{})
	}
	return s, nil
}

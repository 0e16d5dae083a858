package catalog

import (
	"fmt"
	"time"

	"github.com/strandline/strandline/segment"
)

// Parked is the due time of a marker that waits for a person.
var Parked = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// StreamNames are the names of the streams that a slot has rows of, each once, in order.
func (a *Absorb) StreamNames() []string {
	names := make([]string, 0, len(a.Refs))
	for i := range a.Refs { // sorted: one look at the neighbour drops repeats
		if n := a.Refs[i].Stream; len(names) == 0 || names[len(names)-1] != n {
			names = append(names, n)
		}
	}
	return names
}

// PlaceRefs puts a slot's chunks behind the tips of their streams, and returns the refs to
// insert: those that are not wholly dead.
func PlaceRefs(a *Absorb, row *ChainRow, streams map[string]*Stream) (live []Ref, dead int, err error) {
	live = make([]Ref, 0, len(a.Refs))
	for i := range a.Refs {
		r := a.Refs[i]
		gone, err := PlaceRef(a, row, &r, streams[r.Stream])
		switch {
		case err != nil:
			return nil, 0, err
		case gone:
			dead++
		default:
			live = append(live, r)
		}
	}
	return live, dead, nil
}

// PlaceRef puts one chunk behind the tip of its stream, which moves with it. dead: it is
// given up already. A stream with a chunk that is not is listed again; what lay below its
// live_from stays dead.
func PlaceRef(a *Absorb, row *ChainRow, r *Ref, s *Stream) (dead bool, err error) {
	if !s.Last.Less(r.FirstPos()) {
		return false, Conflict("AbsorbSlot", "tip of stream "+r.Stream, "below "+r.FirstPos().String(), s.Last)
	}
	r.StreamID, r.PrevLast = s.ID, s.Last
	s.Last = r.LastPos()
	if r.Dead(EffectiveLiveFrom(s.LiveFrom, row.Chain, row.WatermarkSeq)) {
		return true, nil
	}
	s.Deleted = false
	r.Key, r.Class = a.Key, a.Class
	return false, nil
}

// AdvanceChain moves a chain's row over a slot that goes on where it stands, and returns
// what its term's row becomes; term is that row, nil if there is none. slowest: the
// slowest consumer moved.
func AdvanceChain(row *ChainRow, a *Absorb, term *TermRow) (next TermRow, slowest bool) {
	s := &a.Slot
	row.AbsorbedEnd, row.LastUUID, row.LastTerm, row.NextSeq = s.ID+1, s.UUID, s.Term, s.Next
	row.Closed = s.Closed
	before := SlowestCursor(row.Consumers)
	row.Consumers = MergeConsumers(row.Consumers, a.Consumers, row.WatermarkSeq)
	next = TermRow{Chain: s.Chain, Term: s.Term} // the catalog lost the acquire, not the slot
	if term != nil {
		next = *term
	}
	if next.First == 0 {
		next.First = s.ID
	}
	next.Last, next.LastSeq = s.ID, s.Next-1
	return next, before != SlowestCursor(row.Consumers)
}

// AddTransit counts a slot that owes a settle.
func (r *ChainRow) AddTransit(s *SlotRow) {
	r.TransitBytes += s.Bytes
	if r.TransitSince.IsZero() {
		r.TransitSince = s.Sealed
	}
}

// DescribeVoid says in the audit table which slot was absorbed as void.
func DescribeVoid(a *Absorb) string {
	return fmt.Sprintf("%s: segment %s term %d: %s", a.Key, a.Slot.UUID, a.Slot.Term, a.Reason)
}

// StreamHash is the hash that stands in the keys of a stream whose name is too long for
// them, "" of any other.
func StreamHash(name string) (string, error) {
	k, err := segment.ParseKey(segment.StreamKey(name, 1, 1, 0))
	if err != nil {
		return "", Invalid("AbsorbSlot", "stream %q: %v", name, err)
	}
	return k.StreamHash, nil
}

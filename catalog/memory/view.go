package memory

import (
	"iter"
	"math"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// View reads the rows of one state, in order and without a copy of any: what it
// yields must not be written to, and slices in it not kept past the View. One taken by
// Catalog.View is good until its function returns; a snapshot's, for ever.
//
// It is for checks that look at everything after every step. It knows no clock and asks
// no guard.
type View struct {
	t *tables
}

// Settings are the deployment's.
func (v View) Settings() catalog.Settings { return v.t.settings }

// Topologies lists epochs, oldest first.
func (v View) Topologies() iter.Seq[*catalog.Topology] { return values(v.t.topology.all()) }

// Chains lists chains by (epoch, shard).
func (v View) Chains() iter.Seq[*catalog.ChainRow] { return values(v.t.chain.all()) }

// Chain is one row, nil if there is none.
func (v View) Chain(c segment.Chain) *catalog.ChainRow {
	row, _ := v.t.chain.get(c)
	return row
}

// Terms lists a chain's terms.
func (v View) Terms(c segment.Chain) iter.Seq[*catalog.TermRow] {
	return func(yield func(*catalog.TermRow) bool) {
		for k, r := range v.t.term.from(termKey{c, 0}) {
			if k.Chain != c || !yield(r) {
				return
			}
		}
	}
}

// Slots lists a chain's slot rows from a position on.
func (v View) Slots(c segment.Chain, from segment.ID) iter.Seq[*catalog.SlotRow] {
	return func(yield func(*catalog.SlotRow) bool) {
		for k, r := range v.t.slot.from(slotKey{c, from}) {
			if k.Chain != c || !yield(&r.SlotRow) {
				return
			}
		}
	}
}

// Slot is the row at a position, nil if none stands. owed: its settle marker stands.
func (v View) Slot(c segment.Chain, id segment.ID) (row *catalog.SlotRow, owed bool) {
	r, ok := v.t.slot.get(slotKey{c, id})
	if !ok {
		return nil, false
	}
	return &r.SlotRow, r.owed
}

// Streams lists streams by id.
func (v View) Streams() iter.Seq[*catalog.Stream] {
	return func(yield func(*catalog.Stream) bool) {
		for _, r := range v.t.stream.all() {
			if !yield(&r.Stream) {
				return
			}
		}
	}
}

// Stream is one by name, nil if there is none.
func (v View) Stream(name string) *catalog.Stream {
	r, ok := v.t.streamName.get(name)
	if !ok {
		return nil
	}
	return &r.Stream
}

// Refs lists all refs by (stream, epoch, first).
func (v View) Refs() iter.Seq[*catalog.Ref] { return values(v.t.ref.all()) }

// StreamRefs lists a stream's refs by (epoch, first).
func (v View) StreamRefs(stream int64) iter.Seq[*catalog.Ref] {
	return func(yield func(*catalog.Ref) bool) {
		for k, r := range v.t.ref.from(refKey{stream: stream}) {
			if k.stream != stream || !yield(r) {
				return
			}
		}
	}
}

// RefsByKey lists all refs by (key, stream, epoch, first).
func (v View) RefsByKey() iter.Seq[*catalog.Ref] { return values(v.t.refName.all()) }

// RefsOf lists the refs that name a key.
func (v View) RefsOf(key string) iter.Seq[*catalog.Ref] {
	return func(yield func(*catalog.Ref) bool) {
		for k, r := range v.t.refName.from(objectKey{key: key, refKey: refKey{stream: math.MinInt64}}) {
			if k.key != key || !yield(r) {
				return
			}
		}
	}
}

// Named says whether any ref names the key.
func (v View) Named(key string) bool {
	for range v.RefsOf(key) {
		return true
	}
	return false
}

// LiveFrom is the effective one of a ref's stream in the ref's chain.
func (v View) LiveFrom(r *catalog.Ref) segment.Pos {
	s, ok := v.t.stream.get(r.StreamID)
	if !ok {
		return segment.Pos{}
	}
	row, ok := v.t.chain.get(r.Chain)
	if !ok {
		return s.LiveFrom
	}
	return catalog.EffectiveLiveFrom(s.LiveFrom, r.Chain, row.WatermarkSeq)
}

// Markers lists all markers by (duty, id).
func (v View) Markers() iter.Seq[*catalog.Marker] {
	return func(yield func(*catalog.Marker) bool) {
		for _, m := range v.t.marker.all() {
			if !yield(&m.Marker) {
				return
			}
		}
	}
}

// Marker is the standing one of a duty and id, nil if none stands.
func (v View) Marker(d catalog.Duty, id string) *catalog.Marker {
	m, ok := v.t.marker.get(markerKey{d, id})
	if !ok {
		return nil
	}
	return &m.Marker
}

// Intents lists all intents by key.
func (v View) Intents() iter.Seq[*catalog.Intent] { return values(v.t.intent.all()) }

// Intent is one by key, nil if none stands.
func (v View) Intent(key string) *catalog.Intent {
	in, _ := v.t.intent.get(key)
	return in
}

// AuditRows lists the audit table.
func (v View) AuditRows() iter.Seq[catalog.AuditRow] { return values(v.t.audit.all()) }

// Count is how many refs, slot rows, markers and intents stand.
func (v View) Count() (refs, slots, markers, intents int) {
	return v.t.ref.n, v.t.slot.n, v.t.marker.n, v.t.intent.n
}

func values[K, V any](s iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range s {
			if !yield(v) {
				return
			}
		}
	}
}

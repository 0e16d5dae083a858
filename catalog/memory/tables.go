package memory

import (
	"cmp"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// tables are all rows, and the orders in which verbs look for them.
type tables struct {
	scalars

	topology *index[segment.Epoch, *catalog.Topology]
	chain    *index[segment.Chain, *catalog.ChainRow]
	term     *index[termKey, *catalog.TermRow]

	slot *index[slotKey, *slotRow]
	owed *index[slotKey, *slotRow] // those that owe a settle

	stream     *index[int64, *streamRow]
	streamName *index[string, *streamRow]
	streamHash *index[hashKey, struct{}] // names too long to stand in a key

	ref     *index[refKey, *catalog.Ref]
	refName *index[objectKey, *catalog.Ref]
	refLast *index[lastKey, *catalog.Ref]
	refOdd  *index[objectKey, *catalog.Ref] // of a kind that this build does not know

	marker    *index[markerKey, *markerRow]
	markerDue *index[dueKey, *markerRow]
	lease     *index[markerKey, leaseRow]
	intent    *index[string, *catalog.Intent]

	auditor *index[string, int64] // lease end
	audit   *index[int64, catalog.AuditRow]

	all []undoable // every index above
}

// scalars are rows of which there is one.
type scalars struct {
	settings    catalog.Settings
	lastVersion int64 // of a marker
	lastStream  int64
	lastAudit   int64
}

type undoable interface {
	commit()
	rollback()
}

func newTables() *tables {
	return (&tables{
		topology: newIndex[segment.Epoch, *catalog.Topology](cmp.Compare[segment.Epoch]),
		chain:    newIndex[segment.Chain, *catalog.ChainRow](byChain),
		term:     newIndex[termKey, *catalog.TermRow](byTerm),
		slot:     newIndex[slotKey, *slotRow](bySlot), owed: newIndex[slotKey, *slotRow](bySlot),
		stream:     newIndex[int64, *streamRow](cmp.Compare[int64]),
		streamName: newIndex[string, *streamRow](strings.Compare),
		streamHash: newIndex[hashKey, struct{}](byHash),
		ref:        newIndex[refKey, *catalog.Ref](byRef),
		refName:    newIndex[objectKey, *catalog.Ref](byObject),
		refLast:    newIndex[lastKey, *catalog.Ref](byLast),
		refOdd:     newIndex[objectKey, *catalog.Ref](byObject),
		marker:     newIndex[markerKey, *markerRow](byMarker),
		markerDue:  newIndex[dueKey, *markerRow](byDue),
		lease:      newIndex[markerKey, leaseRow](byMarker),
		intent:     newIndex[string, *catalog.Intent](strings.Compare),
		auditor:    newIndex[string, int64](strings.Compare),
		audit:      newIndex[int64, catalog.AuditRow](cmp.Compare[int64]),
	}).listed()
}

func (t *tables) listed() *tables {
	t.all = []undoable{
		t.topology, t.chain, t.term, t.slot, t.owed, t.stream, t.streamName, t.streamHash, t.ref, t.refName, t.refLast, t.refOdd,
		t.marker, t.markerDue, t.lease, t.intent, t.auditor, t.audit,
	}
	return t
}

// clone shares all rows; see index.
func (t *tables) clone() *tables {
	return (&tables{
		scalars:  t.scalars,
		topology: t.topology.clone(), chain: t.chain.clone(), term: t.term.clone(),
		slot: t.slot.clone(), owed: t.owed.clone(),
		stream: t.stream.clone(), streamName: t.streamName.clone(), streamHash: t.streamHash.clone(),
		ref: t.ref.clone(), refName: t.refName.clone(), refLast: t.refLast.clone(), refOdd: t.refOdd.clone(),
		marker: t.marker.clone(), markerDue: t.markerDue.clone(), lease: t.lease.clone(), intent: t.intent.clone(),
		auditor: t.auditor.clone(), audit: t.audit.clone(),
	}).listed()
}

// putRef puts a ref in the place of the one that begins where it does.
func (t *tables) putRef(r *catalog.Ref) {
	if old, stood := t.ref.get(keyOf(r)); stood {
		t.dropRef(old)
	}
	t.ref.set(keyOf(r), r)
	t.refName.set(objectOf(r), r)
	t.refLast.set(lastOf(r), r)
	if !r.Kind.Known() {
		t.refOdd.set(objectOf(r), r)
	}
}

func (t *tables) dropRef(r *catalog.Ref) {
	t.ref.del(keyOf(r))
	t.refName.del(objectOf(r))
	t.refLast.del(lastOf(r))
	if !r.Kind.Known() {
		t.refOdd.del(objectOf(r))
	}
}

// putSlot puts a slot row in the place of the one at its position.
func (t *tables) putSlot(s *slotRow) {
	k := slotKey{s.Chain, s.ID}
	t.slot.set(k, s)
	if s.owed {
		t.owed.set(k, s)
	} else {
		t.owed.del(k)
	}
}

func (t *tables) dropSlot(s *slotRow) {
	k := slotKey{s.Chain, s.ID}
	t.slot.del(k)
	t.owed.del(k)
}

// putStream puts a stream in the place of the one of its id.
func (t *tables) putStream(s *streamRow) {
	t.stream.set(s.ID, s)
	t.streamName.set(s.Name, s)
}

// putMarker puts a marker in the place of the one of its id.
func (t *tables) putMarker(m *markerRow) {
	k := markerKey{m.Duty, m.ID}
	if old, stood := t.marker.get(k); stood {
		t.markerDue.del(dueOf(old))
	}
	t.marker.set(k, m)
	t.markerDue.set(dueOf(m), m)
}

func (t *tables) dropMarker(m *markerRow) {
	t.marker.del(markerKey{m.Duty, m.ID})
	t.markerDue.del(dueOf(m))
}

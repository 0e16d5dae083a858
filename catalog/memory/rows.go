package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// slotRow is a slot with its object's key. owed: its settle marker stands and it
// counts in the chain's transit bytes.
type slotRow struct {
	catalog.SlotRow
	key  string
	owed bool
}

// streamRow has the shard of the stream's last row: its newest chain.
type streamRow struct {
	catalog.Stream
	lastShard segment.Shard
}

// markerRow has when a reap-check was confirmed, and the version that the lease's
// holder took.
type markerRow struct {
	catalog.Marker
	confirmed    time.Time
	leaseVersion int64
}

// leaseRow is the lease of a duty.
type leaseRow struct {
	owner string
	end   time.Time
}

// The keys of the tables, and their orders.
type (
	termKey struct {
		segment.Chain
		term segment.Term
	}
	slotKey struct {
		segment.Chain
		id segment.ID
	}
	refKey struct {
		stream int64
		epoch  segment.Epoch
		first  segment.Seq
	}
	// objectKey orders refs by the object they name.
	objectKey struct {
		key string
		refKey
	}
	// lastKey orders a chain's refs by their last rows.
	lastKey struct {
		segment.Chain
		last   segment.Seq
		stream int64
	}
	markerKey struct {
		duty catalog.Duty
		id   string
	}
	dueKey struct {
		duty catalog.Duty
		due  int64
		id   string
	}
	hashKey struct {
		hash string
		id   int64
	}
)

func byChain(a, b segment.Chain) int {
	if c := cmp.Compare(a.Epoch, b.Epoch); c != 0 {
		return c
	}
	return cmp.Compare(a.Shard, b.Shard)
}

func byTerm(a, b termKey) int {
	if c := byChain(a.Chain, b.Chain); c != 0 {
		return c
	}
	return cmp.Compare(a.term, b.term)
}

func bySlot(a, b slotKey) int {
	if c := byChain(a.Chain, b.Chain); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

func byRef(a, b refKey) int {
	if c := cmp.Compare(a.stream, b.stream); c != 0 {
		return c
	}
	if c := cmp.Compare(a.epoch, b.epoch); c != 0 {
		return c
	}
	return cmp.Compare(a.first, b.first)
}

func byObject(a, b objectKey) int {
	if c := cmp.Compare(a.key, b.key); c != 0 {
		return c
	}
	return byRef(a.refKey, b.refKey)
}

func byLast(a, b lastKey) int {
	if c := byChain(a.Chain, b.Chain); c != 0 {
		return c
	}
	if c := cmp.Compare(a.last, b.last); c != 0 {
		return c
	}
	return cmp.Compare(a.stream, b.stream)
}

func byMarker(a, b markerKey) int {
	if c := cmp.Compare(a.duty, b.duty); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

func byDue(a, b dueKey) int {
	if c := cmp.Compare(a.duty, b.duty); c != 0 {
		return c
	}
	if c := cmp.Compare(a.due, b.due); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

func byHash(a, b hashKey) int {
	if c := cmp.Compare(a.hash, b.hash); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

func keyOf(r *catalog.Ref) refKey { return refKey{r.StreamID, r.Epoch, r.First} }

func objectOf(r *catalog.Ref) objectKey { return objectKey{r.Key, keyOf(r)} }

func lastOf(r *catalog.Ref) lastKey { return lastKey{r.Chain, r.Last, r.StreamID} }

func dueOf(m *markerRow) dueKey { return dueKey{m.Duty, nanos(m.Due), m.ID} }

// nanos orders times; 0 is no time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// plain is a time as a database gives it back: UTC, without the monotonic clock.
func plain(t time.Time) time.Time { return t.Round(0).UTC() }

// Copies of what has slices in it.

func copyChain(r *catalog.ChainRow) catalog.ChainRow {
	out := *r
	out.Consumers = slices.Clone(r.Consumers)
	return out
}

func copyTopology(r *catalog.Topology) catalog.Topology {
	out := *r
	out.Buckets = slices.Clone(r.Buckets)
	return out
}

func copyIntent(in *catalog.Intent) catalog.Intent {
	out := *in
	out.Uploads = slices.Clone(in.Uploads)
	return out
}

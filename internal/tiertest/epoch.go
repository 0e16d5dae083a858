package tiertest

import (
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// NextEpoch closes the chain with a fence and goes on in the next epoch's. Its record and
// its head in the bucket are the caller's.
func (x *Tier) NextEpoch() catalog.Topology {
	x.T.Helper()
	x.publish(nil, segment.BundleOptions{Fence: true, Closed: true})
	x.Chain.Epoch++
	top, err := x.Catalog.EnsureTopology(x.T.Context(), catalog.Topology{
		Epoch: x.Chain.Epoch, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	x.must(err)
	row, err := x.Catalog.AcquireChain(x.T.Context(), catalog.Acquire{Chain: x.Chain, Owner: x.Owner, Address: "test", Lease: 1000 * time.Hour})
	x.must(err)
	x.Term, x.next, x.id, x.prev = row.Term, 1, 1, segment.UUID{}
	return top
}

// GiveUp raises the chain's watermark to the end of a slot.
func (x *Tier) GiveUp(id segment.ID) segment.Seq {
	x.T.Helper()
	slots, err := x.Catalog.Slots(x.T.Context(), x.Chain, id, 1)
	x.must(err)
	w := catalog.Watermark{Chain: x.Chain, Seq: slots[0].Next - 1, Segment: id, Term: x.Term}
	_, err = x.Catalog.RaiseWatermark(x.T.Context(), w)
	x.must(err)
	return w.Seq
}

// Reclaim retires what the chain's watermark gave up.
func (x *Tier) Reclaim() {
	x.T.Helper()
	dead, _, err := x.Catalog.DeadRefs(x.T.Context(), x.Chain, 0)
	x.must(err)
	x.must(x.Catalog.ArmWatchers(x.T.Context(), dead))
	_, err = x.Catalog.RetireRefs(x.T.Context(), dead)
	x.must(err)
}

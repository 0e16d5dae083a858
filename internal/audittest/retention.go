package audittest

import (
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// NewPlain is a tier whose topology does not settle.
func NewPlain(t testing.TB, opt memstore.Options) *Tier {
	t.Helper()
	return open(t, opt, false, inMemory)
}

// Policy sets the chain's retention; a full-size segment is one byte unless it says more,
// so that the floor is one slot or two.
func (x *Tier) Policy(r catalog.Retention) {
	x.T.Helper()
	if r.SegmentBytes == 0 {
		r.SegmentBytes = 1
	}
	_, err := x.DB.SetRetention(x.Ctx(), x.Chain.Epoch, r)
	x.Must(err)
}

// Boundary is the end of a slot, as the chain's owner plans it.
func (x *Tier) Boundary(id segment.ID) catalog.Watermark {
	x.T.Helper()
	slots, err := x.DB.Slots(x.Ctx(), x.Chain, id, 1)
	x.Must(err)
	if len(slots) == 0 || slots[0].ID != id {
		x.T.Fatalf("no slot row %d stands", id)
	}
	return catalog.Watermark{Chain: x.Chain, Seq: slots[0].Next - 1, Segment: id, Term: x.term}
}

// Raise gives the chain up to the end of a slot, as its owner.
func (x *Tier) Raise(id segment.ID) {
	x.T.Helper()
	_, err := x.DB.RaiseWatermark(x.Ctx(), x.Boundary(id))
	x.Must(err)
}

// Release ends the owner's lease.
func (x *Tier) Release() {
	x.T.Helper()
	x.Must(x.DB.ReleaseChain(x.Ctx(), x.Chain, x.owner, x.term))
}

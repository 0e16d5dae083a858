package audittest

import (
	"context"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// NewPlain is a tier whose topology does not settle.
func NewPlain(t testing.TB, opt memstore.Options) *Tier {
	t.Helper()
	return open(t, opt, false)
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

// SetTopologyState goes through the faults.
func (f *Catalog) SetTopologyState(ctx context.Context, e segment.Epoch, from, to catalog.TopologyState) (catalog.Topology, error) {
	return verb(f.F, "SetTopologyState", func() (catalog.Topology, error) { return f.Catalog.SetTopologyState(ctx, e, from, to) })
}

// SetRetention goes through the faults.
func (f *Catalog) SetRetention(ctx context.Context, e segment.Epoch, r catalog.Retention) (catalog.Topology, error) {
	return verb(f.F, "SetRetention", func() (catalog.Topology, error) { return f.Catalog.SetRetention(ctx, e, r) })
}

// AckClosed goes through the faults.
func (f *Catalog) AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (catalog.ChainRow, error) {
	return verb(f.F, "AckClosed", func() (catalog.ChainRow, error) { return f.Catalog.AckClosed(ctx, c, consumer, seq) })
}

// RaiseWatermark goes through the faults.
func (f *Catalog) RaiseWatermark(ctx context.Context, w catalog.Watermark) (catalog.ChainRow, error) {
	return verb(f.F, "RaiseWatermark", func() (catalog.ChainRow, error) { return f.Catalog.RaiseWatermark(ctx, w) })
}

// Marker goes through the faults.
func (f *Catalog) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	return verb(f.F, "Marker", func() (catalog.Marker, error) { return f.Catalog.Marker(ctx, d, id) })
}

// refPage is a page of refs.
type refPage struct {
	refs []catalog.Ref
	more bool
}

// DeadRefs goes through the faults.
func (f *Catalog) DeadRefs(ctx context.Context, c segment.Chain, limit int) ([]catalog.Ref, bool, error) {
	p, err := verb(f.F, "DeadRefs", func() (p refPage, err error) {
		p.refs, p.more, err = f.Catalog.DeadRefs(ctx, c, limit)
		return p, err
	})
	return p.refs, p.more, err
}

// StraddlingRefs goes through the faults.
func (f *Catalog) StraddlingRefs(ctx context.Context, c segment.Chain, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	p, err := verb(f.F, "StraddlingRefs", func() (p refPage, err error) {
		p.refs, p.more, err = f.Catalog.StraddlingRefs(ctx, c, after, limit)
		return p, err
	})
	return p.refs, p.more, err
}

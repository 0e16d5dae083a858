package catalogtest

import (
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func testTopologyState(t *testing.T, open Open) {
	w := NewWorld(t, open)
	step := func(e segment.Epoch, from, to catalog.TopologyState) error {
		got, err := w.C.SetTopologyState(w.Ctx, e, from, to)
		if err == nil {
			Equal(t, "answer", got.State, to)
		}
		return err
	}
	next := topology(2, true)
	next.State = catalog.TopologyOpening
	got, err := w.C.EnsureTopology(w.Ctx, next)
	w.OK(err)
	Equal(t, "made opening", got.State, catalog.TopologyOpening)
	_, err = w.C.AcquireChain(w.Ctx, catalog.Acquire{Chain: segment.Chain{Epoch: 2}, Owner: UUID(3), Lease: leaseTime, Steal: true})
	w.Is(err, catalog.ErrConflict, "epoch opened")
	w.Is(step(9, catalog.TopologyOpen, catalog.TopologyClosing), catalog.ErrNotFound, "")
	w.Is(step(2, catalog.TopologyOpening, catalog.TopologyClosed), catalog.ErrInvalid, "")
	w.Is(step(2, catalog.TopologyOpen, catalog.TopologyClosing), catalog.ErrConflict, "state")
	w.Is(step(2, catalog.TopologyOpening, catalog.TopologyOpen), catalog.ErrConflict, "lower epochs closed")
	w.OK(step(1, catalog.TopologyOpen, catalog.TopologyClosing))
	w.Is(step(1, catalog.TopologyOpen, catalog.TopologyClosing), catalog.ErrConflict, "state")
	w.OK(step(1, catalog.TopologyClosing, catalog.TopologyOpen))
	w.OK(step(1, catalog.TopologyOpen, catalog.TopologyClosing))
	w.Is(step(1, catalog.TopologyClosing, catalog.TopologyClosed), catalog.ErrConflict, "chains closed")

	w.closeChain()
	w.Is(step(1, catalog.TopologyClosing, catalog.TopologyOpen), catalog.ErrConflict, "nothing closed")
	w.Is(step(1, catalog.TopologyClosing, catalog.TopologyClosed), catalog.ErrConflict, "chains closed")
	w.Is(step(2, catalog.TopologyOpening, catalog.TopologyOpen), catalog.ErrConflict, "lower epochs closed")
	w.onChain(segment.Chain{Epoch: 1, Shard: 1})
	w.closeChain()
	w.OK(step(2, catalog.TopologyOpening, catalog.TopologyOpen))
	w.onChain(segment.Chain{Epoch: 2})
	w.OK(step(1, catalog.TopologyClosing, catalog.TopologyClosed))
	all, err := w.C.Topologies(w.Ctx)
	w.OK(err)
	Equal(t, "first epoch", all[0].State, catalog.TopologyClosed)
	Equal(t, "second epoch", all[1].State, catalog.TopologyOpen)
	// What stands may be given to EnsureTopology as it is.
	_, err = w.C.EnsureTopology(w.Ctx, all[0])
	w.OK(err)
}

// testInheritedConsumers: the consumers of the epoch before stand in the chains that its
// streams go on in, from the beginning, so that retention stops at them there.
func testInheritedConsumers(t *testing.T, open Open) {
	w := NewWorld(t, open)
	next := topology(2, true)
	next.State = catalog.TopologyOpening
	_, err := w.C.EnsureTopology(w.Ctx, next)
	w.OK(err)
	_, err = w.C.SetTopologyState(w.Ctx, 1, catalog.TopologyOpen, catalog.TopologyClosing)
	w.OK(err)
	a := w.Build("a:5")
	a.Consumers = []segment.Consumer{{Name: "late", Cursor: 1}, {Name: "swift", Cursor: 5}}
	_, err = w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	w.Continue(a)
	w.closeChain()
	w.onChain(segment.Chain{Epoch: 1, Shard: 1})
	w.closeChain()
	_, err = w.C.SetTopologyState(w.Ctx, 2, catalog.TopologyOpening, catalog.TopologyOpen)
	w.OK(err)
	row, err := w.C.Chain(w.Ctx, segment.Chain{Epoch: 2})
	w.OK(err)
	Equal(t, "shard 0", slices.Equal(row.Consumers, []segment.Consumer{{Name: "late"}, {Name: "swift"}}), true)
	row, err = w.C.Chain(w.Ctx, segment.Chain{Epoch: 2, Shard: 1})
	w.OK(err)
	Equal(t, "shard 1, which shard 0 does not feed", len(row.Consumers), 0)
	row, err = w.C.Chain(w.Ctx, segment.Chain{Epoch: 1})
	w.OK(err)
	Equal(t, "the closed chain keeps its own", slices.Equal(row.Consumers, a.Consumers), true)
	w.onChain(segment.Chain{Epoch: 2})
	Equal(t, "acquired", len(w.Row().Consumers), 2)
}

// onChain turns the world to a chain that nobody has, and acquires it.
func (w *World) onChain(c segment.Chain) {
	w.T.Helper()
	w.Chain, w.Term, w.ID, w.Next, w.Prev = c, 0, 1, 1, segment.UUID{}
	w.reacquire(w.Owner)
}

// closeChain absorbs a fence that closes the chain.
func (w *World) closeChain() {
	w.T.Helper()
	a := w.Build("")
	a.Slot.Closed = true
	row := w.Row()
	a.Consumers = row.Consumers
	_, err := w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	w.Continue(a)
}

func testSetRetention(t *testing.T, open Open) {
	w := NewWorld(t, open)
	of := func() catalog.Retention {
		all, err := w.C.Topologies(w.Ctx)
		w.OK(err)
		return all[0].Retention
	}
	Equal(t, "none set keeps", of().Keeps(), true)
	want := catalog.Retention{Mode: catalog.RetentionInterest, Rows: 1, Bytes: 2, Age: time.Hour, Segments: 3, SegmentBytes: 4, MinSegments: 5}
	got, err := w.C.SetRetention(w.Ctx, 1, want)
	w.OK(err)
	Equal(t, "answer", got.Retention, want)
	Equal(t, "stands", of(), want)
	for _, bad := range []catalog.Retention{{Mode: "strict"}, {Bytes: -1}, {Age: -1}, {SegmentBytes: -1}} {
		_, err := w.C.SetRetention(w.Ctx, 1, bad)
		w.Is(err, catalog.ErrInvalid, "")
	}
	_, err = w.C.SetRetention(w.Ctx, 9, want)
	w.Is(err, catalog.ErrNotFound, "")
	// Not a constant: the epoch that stands is answered with what stands.
	got, err = w.C.EnsureTopology(w.Ctx, topology(1, true))
	w.OK(err)
	Equal(t, "kept", got.Retention, want)
	made := topology(2, true)
	made.Retention = interest
	_, err = w.C.EnsureTopology(w.Ctx, made)
	w.OK(err)
	all, err := w.C.Topologies(w.Ctx)
	w.OK(err)
	Equal(t, "made with one", all[1].Retention, interest)
	made.Epoch, made.Retention.Age = 3, -1
	_, err = w.C.EnsureTopology(w.Ctx, made)
	w.Is(err, catalog.ErrInvalid, "")
}

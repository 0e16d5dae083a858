package catalogtest

import (
	"fmt"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// nameOn is a stream of shard 0 in epochs of two shards.
func nameOn() string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("s%d", i); segment.ShardOf(name, 2) == 0 {
			return name
		}
	}
}

// retire takes all that the chain's watermark gave up away, as the reclaim does.
func (w *World) retire(c segment.Chain) {
	w.T.Helper()
	dead, _, err := w.C.DeadRefs(w.Ctx, c, 0)
	w.OK(err)
	w.OK(w.C.ArmWatchers(w.Ctx, dead))
	n, err := w.C.RetireRefs(w.Ctx, dead)
	w.OK(err)
	Equal(w.T, "retired", n, len(dead))
}

// testPlanEpochs (K29): what the watermark of any epoch gave up is below live_from, not
// a hole, before its refs are retired and after; what is missing above one is a hole.
func testPlanEpochs(t *testing.T, open Open) {
	w := NewWorld(t, open)
	s := nameOn()
	chains := make([]segment.Chain, 4) // by epoch
	for e := segment.Epoch(1); e <= 3; e++ {
		chains[e] = segment.Chain{Epoch: e}
		if e > 1 {
			_, err := w.C.EnsureTopology(w.Ctx, topology(e, true))
			w.OK(err)
			w.onChain(chains[e])
		}
		w.Absorb(s + ":2") // rows 1-2
		w.Absorb(s + ":2") // rows 3-4
		w.closeChain()
	}
	give := func(e segment.Epoch, seq segment.Seq, id segment.ID) {
		w.Chain = chains[e]
		_, err := w.raise(seq, id, 0)
		w.OK(err)
	}
	plan := func(from segment.Pos, live segment.Pos, refs int) {
		t.Helper()
		p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: s, From: from})
		w.OK(err)
		Equal(t, "live_from", p.LiveFrom, live)
		Equal(t, "refs", len(p.Refs), refs)
		last := from
		if last.Less(live) {
			last = live
		}
		for i := range p.Refs {
			if !p.Linked(&p.Refs[i], last, i == 0) {
				t.Fatalf("from %s: a hole before %s", from, p.Refs[i].FirstPos())
			}
			last = p.Refs[i].LastPos()
		}
	}
	pos := func(e segment.Epoch, q segment.Seq) segment.Pos { return segment.Pos{Epoch: e, Seq: q} }
	plan(segment.Pos{}, segment.Pos{}, 6)

	give(1, 2, 1)
	for range 2 {
		plan(segment.Pos{}, pos(1, 3), 5)
		plan(pos(1, 1), pos(1, 3), 5)
		plan(pos(1, 4), pos(1, 3), 5)
		plan(pos(2, 1), segment.Pos{}, 4)
		w.retire(chains[1])
	}
	give(1, 4, 2) // all of the first epoch
	for range 2 {
		plan(segment.Pos{}, pos(1, 5), 4)
		plan(pos(1, 2), pos(1, 5), 4)
		w.retire(chains[1])
	}
	give(3, 2, 1) // and the newest one's says nothing of the second
	for range 2 {
		plan(segment.Pos{}, pos(1, 5), 3)
		plan(pos(2, 3), segment.Pos{}, 2)
		plan(pos(3, 1), pos(3, 3), 1)
		w.retire(chains[3])
	}
	give(2, 4, 2)
	for range 2 {
		plan(segment.Pos{}, pos(3, 3), 1)
		plan(pos(2, 1), pos(2, 5), 1)
		plan(pos(3, 4), pos(3, 3), 1)
		w.retire(chains[2])
	}
	give(3, 4, 2) // nothing is left
	for range 2 {
		plan(segment.Pos{}, pos(3, 5), 0)
		plan(pos(2, 1), pos(2, 5), 0)
		w.retire(chains[3])
	}
}

// testPlanMiddle: an epoch gives up what the ones around it keep; reading passes over it.
func testPlanMiddle(t *testing.T, open Open) {
	w := NewWorld(t, open)
	s := nameOn()
	for e := segment.Epoch(1); e <= 3; e++ {
		if e > 1 {
			_, err := w.C.EnsureTopology(w.Ctx, topology(e, true))
			w.OK(err)
			w.onChain(segment.Chain{Epoch: e})
		}
		w.Absorb(s + ":2")
		w.closeChain()
	}
	w.Chain = segment.Chain{Epoch: 2}
	_, err := w.raise(2, 1, 0)
	w.OK(err)
	for range 2 {
		p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: s})
		w.OK(err)
		Equal(t, "live_from", p.LiveFrom, segment.Pos{})
		Equal(t, "refs", len(p.Refs), 2)
		Equal(t, "epoch", p.Refs[0].Epoch, 1)
		Equal(t, "epoch", p.Refs[1].Epoch, 3)
		Equal(t, "no hole", p.Linked(&p.Refs[1], p.Refs[0].LastPos(), false), true)
		// Who asks for a row of it is told.
		p, err = w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: s, From: segment.Pos{Epoch: 2, Seq: 2}})
		w.OK(err)
		Equal(t, "given up", p.LiveFrom, segment.Pos{Epoch: 2, Seq: 3})
		w.retire(w.Chain)
	}
}

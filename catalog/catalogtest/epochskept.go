package catalogtest

import (
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// testPlanOlderKeeps: what an older epoch's chain keeps stays in the plan when the newer
// one gives up rows: from the beginning, from its middle, from its end, page by page. The
// gap behind it is none to a reader, and where the rows around it live from is told.
func testPlanOlderKeeps(t *testing.T, open Open) {
	w := NewWorld(t, open)
	s := nameOn()
	older, newer := w.Chain, segment.Chain{Epoch: 2}
	w.Absorb(s + ":2")
	w.Absorb(s + ":2")
	w.closeChain()
	_, err := w.C.EnsureTopology(w.Ctx, topology(2, true))
	w.OK(err)
	w.onChain(newer)
	w.Absorb(s + ":2") // rows 1-2
	w.Absorb(s + ":4") // rows 3-6
	var refs []catalog.Ref
	for _, r := range w.Refs(s) {
		if r.Chain == newer {
			refs = append(refs, r)
		}
	}
	_, err = w.rewrite(segment.StreamKey(s, 2, 1, 0), Output(segment.StreamKey(s, 2, 1, 0), 0, catalog.RefStream, refs...))
	w.OK(err)
	w.Absorb(s + ":2") // rows 7-8
	pos := func(e segment.Epoch, q segment.Seq) segment.Pos { return segment.Pos{Epoch: e, Seq: q} }
	check := func(from, live segment.Pos, firsts ...segment.Pos) {
		t.Helper()
		w.readsOn(s, from, live, 0, firsts)
		w.readsOn(s, from, live, 1, firsts)
	}
	give := func(seq segment.Seq, id segment.ID) {
		t.Helper()
		w.Chain = newer
		_, err := w.raise(seq, id, w.Term)
		w.OK(err)
	}
	a, b, c, d := pos(1, 1), pos(1, 3), pos(2, 1), pos(2, 7)
	check(segment.Pos{}, segment.Pos{}, a, b, c, d)
	give(2, 1) // cuts the settled ref in two: reading it begins at row 3
	for range 2 {
		check(segment.Pos{}, segment.Pos{}, a, b, c, d)
		check(pos(1, 4), segment.Pos{}, b, c, d)
		check(pos(1, 5), segment.Pos{}, c, d)
		check(pos(2, 1), pos(2, 3), c, d)
		w.retire(newer)
	}
	give(6, 2)
	for range 2 {
		check(segment.Pos{}, segment.Pos{}, a, b, d)
		check(pos(1, 2), segment.Pos{}, a, b, d)
		check(pos(1, 5), segment.Pos{}, d)
		check(pos(2, 1), pos(2, 7), d)
		check(pos(2, 8), pos(2, 7), d)
		w.retire(newer)
	}
	give(8, 3) // all of the newer
	for range 2 {
		check(segment.Pos{}, segment.Pos{}, a, b)
		w.retire(newer)
	}
	// The older one gives up its head; in the end a reader that was through with it is told
	// nothing of that.
	w.Absorb(s + ":2") // rows 9-10
	w.Chain = older
	_, err = w.raise(2, 1, 0)
	w.OK(err)
	w.Chain = newer
	p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: s})
	w.OK(err)
	Equal(t, "live_from", p.LiveFrom, pos(1, 3))
	Equal(t, "refs", len(p.Refs), 2)
	// The stream's own live_from cuts all below it, whatever the chains keep.
	_, err = w.C.TrimStream(w.Ctx, s, pos(2, 10))
	w.OK(err)
	p, err = w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: s})
	w.OK(err)
	Equal(t, "trimmed", p.LiveFrom, pos(2, 10))
	Equal(t, "refs", len(p.Refs), 1)
}

// testPlanEpochOver: a reader that is through with an epoch goes on in the next one, also
// if the first has been given up meanwhile, and even beyond the reader's position.
func testPlanEpochOver(t *testing.T, open Open) {
	w := NewWorld(t, open)
	s := nameOn()
	first := w.Chain
	w.Absorb(s + ":2")
	w.Absorb("other:3")
	w.closeChain()
	_, err := w.C.EnsureTopology(w.Ctx, topology(2, true))
	w.OK(err)
	w.onChain(segment.Chain{Epoch: 2})
	w.Absorb(s + ":2")
	w.Chain = first
	_, err = w.raise(5, 2, 0)
	w.OK(err)
	for range 2 {
		p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: s, From: segment.Pos{Epoch: 1, Seq: 3}})
		w.OK(err)
		Equal(t, "nothing behind it was given up", p.LiveFrom, segment.Pos{})
		Equal(t, "refs", len(p.Refs), 1)
		p, err = w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: s, From: segment.Pos{Epoch: 1, Seq: 2}})
		w.OK(err)
		Equal(t, "a row was", p.LiveFrom, segment.Pos{Epoch: 1, Seq: 6})
		w.retire(first)
	}
}

// readsOn plans page by page, as a reader does, and holds the refs' firsts to what is
// wanted.
func (w *World) readsOn(stream string, from, live segment.Pos, limit int, firsts []segment.Pos) {
	w.T.Helper()
	at := from
	for n := 0; ; {
		p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: stream, From: at, Limit: limit})
		w.OK(err)
		if n == 0 {
			Equal(w.T, "live_from", p.LiveFrom, live)
		} else if at.Less(p.LiveFrom) {
			w.T.Fatalf("a page begins at %s, and lives from %s", at, p.LiveFrom)
		}
		if at.Less(p.LiveFrom) {
			at = p.LiveFrom
		}
		for i := range p.Refs {
			r := &p.Refs[i]
			Equal(w.T, "first", r.FirstPos(), firsts[n])
			if !p.Linked(r, at, i == 0) {
				w.T.Fatalf("from %s, page of %d: a hole before %s", from, limit, r.FirstPos())
			}
			Equal(w.T, "the older epoch lives from", p.LiveIn(1), segment.Pos{})
			at = r.LastPos()
			n++
		}
		given := segment.Pos{Epoch: w.Chain.Epoch, Seq: w.Row().WatermarkSeq}
		Equal(w.T, "dead", p.Dead(given), given.Seq > 0)
		Equal(w.T, "live", p.Dead(given.Next()), false)
		if !p.More {
			Equal(w.T, "refs", n, len(firsts))
			return
		}
		at = at.Next()
	}
}

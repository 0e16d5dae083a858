package catalogtest

import (
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// testLostRead: readers meet a lost span in its place, whichever way they come.
func testLostRead(t *testing.T, open Open) {
	w, key := lossWorld(t, open)
	w.lose(key, "a")
	w.lose(segment.SlotKey(w.Chain, 3), "b") // row 15
	pos := func(s segment.Seq) segment.Pos { return segment.Pos{Epoch: 1, Seq: s} }
	p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a", From: pos(7), To: pos(8)})
	w.OK(err)
	Equal(t, "planned", len(p.Refs), 1)
	Equal(t, "kind", p.Refs[0].Kind, catalog.RefLost)
	p, err = w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a", From: pos(10)})
	w.OK(err)
	Equal(t, "behind it", len(p.Refs), 1)
	Equal(t, "first behind it", p.Refs[0].First, 11)
	p, err = w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a", Limit: 2})
	w.OK(err)
	Equal(t, "a page with it", len(p.Refs), 2)
	Equal(t, "more", p.More, true)
	refs, err := w.C.ChainRefs(w.Ctx, w.Chain, 1, 0)
	w.OK(err)
	var kinds []catalog.RefKind
	for _, r := range refs { // last rows 4 5 9 10 14 15
		kinds = append(kinds, r.Kind)
	}
	Equal(t, "chain refs", len(refs), 6)
	Equal(t, "lost among them", kinds[2] == catalog.RefLost && kinds[5] == catalog.RefLost && kinds[3] == catalog.RefSlot, true)
	_, err = w.C.Liveness(w.Ctx, "")
	w.Is(err, catalog.ErrInvalid, "")

	// Pages by key begin with the empty one, and come through it.
	for _, limit := range []int{1, 2, 100} {
		var all []catalog.Ref
		var after *catalog.Ref
		for range 20 {
			page, err := w.C.RefsByKey(w.Ctx, after, limit)
			w.OK(err)
			if len(page) == 0 {
				break
			}
			for i := range page {
				all = append(all, page[i].Ref)
			}
			after = &page[len(page)-1].Ref
		}
		Equal(t, "refs by key", len(all), 6)
		for i := range all {
			Equal(t, "lost first", all[i].Key == "", i < 2)
		}
		Equal(t, "by stream", all[0].StreamID < all[1].StreamID, true)
	}
}

// testLostRewrite: no mover touches a lost ref.
func testLostRewrite(t *testing.T, open Open) {
	w, key := lossWorld(t, open)
	before := w.Refs("a")
	w.lose(key, "a")
	a := w.Refs("a")
	_, err := w.rewrite("obj/all", Output("obj/all", 1, catalog.RefStream, a...))
	w.Is(err, catalog.ErrInvalid, "")
	_, err = w.rewrite("obj/over", Output("obj/over", 1, catalog.RefStream, a[0], a[2]))
	w.Is(err, catalog.ErrInvalid, "") // a gap
	_, err = w.rewrite("obj/seen", Output("obj/seen", 1, catalog.RefStream, before...))
	w.Is(err, catalog.ErrConflict, "ref unchanged")
	// What lies on its two sides goes on as two runs, and links to it as before.
	pack := segment.PackKey(w.Chain, 1, 3, 0)
	_, err = w.rewrite(pack, Output(pack, 0, catalog.RefPack, a[0]), Output(pack, 0, catalog.RefPack, a[2]), Output(pack, 0, catalog.RefPack, w.Refs("b")...))
	w.OK(err)
	after := w.Refs("a")
	Equal(t, "refs", len(after), 3)
	Equal(t, "untouched", after[1], a[1])
	Equal(t, "linked", after[1].PrevLast == after[0].LastPos() && after[2].PrevLast == after[1].LastPos(), true)
	n, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 3)
	w.trimSettled()
	Equal(t, "trimmed", w.Row().Trimmed, 4)
}

// testLostTrim: trim and rm go through a lost span, and arm nothing for it.
func testLostTrim(t *testing.T, open Open) {
	w, key := lossWorld(t, open)
	w.lose(key, "a")
	lost := w.Refs("a")[1]
	n, err := w.C.RetireRefs(w.Ctx, []catalog.Ref{lost})
	w.OK(err)
	Equal(t, "alive: left", n, 0)
	_, err = w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 8})
	w.OK(err)
	p, err := w.C.WalkStream(w.Ctx, lost.StreamID, 10)
	w.OK(err)
	Equal(t, "dead", len(p.Dead), 1)
	if p.Straddle == nil || *p.Straddle != lost {
		t.Fatalf("straddle %+v", p.Straddle)
	}
	count, versions := w.markers()
	w.OK(w.C.ArmWatchers(w.Ctx, []catalog.Ref{*p.Straddle}))
	count2, versions2 := w.markers()
	Equal(t, "markers armed for nothing", count2, count)
	Equal(t, "their versions", versions2, versions)
	w.walk(lost.StreamID)
	Equal(t, "cut, it stands", w.lost(), 1)
	_, err = w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 10})
	w.OK(err)
	w.walk(lost.StreamID)
	Equal(t, "retired", w.lost(), 0)
	Equal(t, "behind it", w.Refs("a")[0].First, 11)
	s, err := w.C.Status(w.Ctx)
	w.OK(err)
	Equal(t, "status", s.Refs[catalog.RefLost], 0)
	// Another loss, and rm.
	w.lose(segment.SlotKey(w.Chain, 3), "a")
	Equal(t, "lost", w.lost(), 1)
	_, err = w.C.DeleteStream(w.Ctx, "a")
	w.OK(err)
	w.walk(lost.StreamID)
	Equal(t, "retired", w.lost(), 0)
	w.Absorb("a:3")
	Equal(t, "the stream goes on", len(w.Refs("a")), 1)
}

// testLostRetention: so does the watermark.
func testLostRetention(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 4 {
		w.Absorb("a:4 b:1") // a: 1-4, 6-9, 11-14, 16-19
	}
	refs, b := w.Refs("a"), w.Refs("b")
	first, second := streamRun("a", refs[0]), streamRun("a", refs[1:3]...) // 6-14
	bs := streamRun("b", b[1:3]...)                                        // 10-15
	for _, run := range []catalog.Run{first, second, bs} {
		w.commitNext(catalog.Next{}, run)
	}
	w.lose(first.New.Key, "a")
	w.lose(second.New.Key, "a")
	_, err := w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: w.Chain, Seq: 10, Segment: 2, Term: w.Term})
	w.OK(err)
	cut, more, err := w.C.StraddlingRefs(w.Ctx, w.Chain, nil, 10)
	w.OK(err)
	Equal(t, "more", more, false)
	Equal(t, "cut settled refs", len(cut), 1) // of a, lost, there is nothing to look at
	Equal(t, "of b", cut[0].Key, bs.New.Key)
	dead, _, err := w.C.DeadRefs(w.Ctx, w.Chain, 10)
	w.OK(err)
	Equal(t, "dead", len(dead), 2)
	Equal(t, "the lost one", dead[0].Kind, catalog.RefLost)
	w.OK(w.C.ArmWatchers(w.Ctx, dead))
	n, err := w.C.RetireRefs(w.Ctx, dead)
	w.OK(err)
	Equal(t, "retired", n, 2)
	Equal(t, "the one that is cut stands", w.lost(), 1)
	p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a"})
	w.OK(err)
	Equal(t, "live_from", p.LiveFrom, segment.Pos{Epoch: 1, Seq: 11})
	Equal(t, "kind", p.Refs[0].Kind, catalog.RefLost)
	_, err = w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: w.Chain, Seq: 15, Segment: 3, Term: w.Term})
	w.OK(err)
	dead, _, err = w.C.DeadRefs(w.Ctx, w.Chain, 10)
	w.OK(err)
	n, err = w.C.RetireRefs(w.Ctx, dead)
	w.OK(err)
	Equal(t, "retired", n, 2)
	Equal(t, "lost", w.lost(), 0)
}

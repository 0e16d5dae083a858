package catalogtest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func itoa(n int) string { return strconv.Itoa(n) }

// packFan is what the settle policy asks for.
const packFan = 8

// beside is the chain of another shard, owned and empty.
func (w *World) beside() *World {
	w.T.Helper()
	o := *w
	o.Chain, o.ID, o.Next, o.Prev = segment.Chain{Epoch: w.Chain.Epoch, Shard: w.Chain.Shard + 1}, 1, 1, segment.UUID{}
	row, err := o.C.AcquireChain(o.Ctx, catalog.Acquire{Chain: o.Chain, Owner: o.Owner, Address: "a:1", Lease: leaseTime})
	w.OK(err)
	o.Term = row.Term
	return &o
}

// packSlot moves all refs of a slot into a pack of that generation.
func (w *World) packSlot(id segment.ID, generation uint32, next catalog.Next) string {
	w.T.Helper()
	live, err := w.C.Liveness(w.Ctx, segment.SlotKey(w.Chain, id))
	w.OK(err)
	key := segment.PackKey(w.Chain, id, id, 0)
	var runs []catalog.Run
	for i := range live {
		run := Output(key, 0, catalog.RefPack, live[i].Ref)
		run.New.Generation = generation
		runs = append(runs, run)
	}
	w.commitNext(next, runs...)
	return key
}

// pack absorbs a slot and packs it.
func (w *World) pack(spans string, generation uint32, next catalog.Next) string {
	w.T.Helper()
	w.Absorb(spans)
	return w.packSlot(w.ID-1, generation, next)
}

// testPackMergeArmed: the commit that makes the eighth pack of a generation arms its
// merge.
func testPackMergeArmed(t *testing.T, open Open) {
	w := NewWorld(t, open)
	o := w.beside()
	merge := catalog.Next{PackFan: packFan}
	id := catalog.PackMergeID(w.Chain, 3)
	for i := range packFan - 1 {
		w.pack("a:1 b:1", 3, merge)
		o.pack("c:1", 3, merge)
		w.pack("a:1", 4, merge)
		if _, ok := w.Marker(catalog.DutyPackMerge, id); ok {
			t.Fatalf("armed by %d packs", i+1)
		}
	}
	w.pack("a:1 b:1", 3, catalog.Next{}) // the eighth, but nobody asked
	w.Absorb("a:1")
	w.commitNext(merge, streamRun("a", w.Refs("a")[len(w.Refs("a"))-1])) // no pack
	ms, err := w.C.MarkersOf(w.Ctx, catalog.DutyPackMerge, "", 0)
	w.OK(err)
	Equal(t, "markers", len(ms), 0)

	w.pack("a:1 b:1", 3, merge)
	m, ok := w.Marker(catalog.DutyPackMerge, id)
	if !ok || !m.Due.Equal(w.Clock.Now()) || m.Class != "" {
		t.Fatalf("pack-merge %+v %v", m, ok)
	}
	ms, err = w.C.MarkersOf(w.Ctx, catalog.DutyPackMerge, "", 0)
	w.OK(err)
	Equal(t, "of this generation and chain alone", len(ms), 1)
	// A lost answer arms nothing.
	live, err := w.C.Liveness(w.Ctx, segment.PackKey(w.Chain, w.ID-1, w.ID-1, 0))
	w.OK(err)
	again := Output(live[0].Key, 0, catalog.RefPack, live[0].Ref)
	again.Expect = []catalog.Ref{live[0].Ref}
	again.Expect[0].Key = "seg/before"
	got, err := w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: live[0].Key, Nonce: "nonce", Runs: []catalog.Run{again}, Next: merge})
	w.OK(err)
	Equal(t, "already", got.Already, true)
	same, _ := w.Marker(catalog.DutyPackMerge, id)
	Equal(t, "version", same.Version, m.Version)
	// An arm while the marker is held is not lost.
	m = w.takeOne(catalog.DutyPackMerge)
	w.pack("a:1", 3, merge)
	w.OK(w.C.Resolve(w.Ctx, m.MarkerRef))
	after, ok := w.Marker(catalog.DutyPackMerge, id)
	if !ok || after.Version == m.Version {
		t.Fatalf("armed meanwhile, and gone: %+v %v", after, ok)
	}
	_, err = w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: live[0].Key, Nonce: "nonce", Runs: []catalog.Run{again}, Next: catalog.Next{PackFan: -1}})
	w.Is(err, catalog.ErrInvalid, "")
}

// testPackMergeDead: packs that no live ref names are none.
func testPackMergeDead(t *testing.T, open Open) {
	w := NewWorld(t, open)
	merge := catalog.Next{PackFan: packFan}
	id := catalog.PackMergeID(w.Chain, 0)
	w.pack("old:1", 0, merge)
	w.pack("gone:1", 0, merge)
	w.pack("lost:1", 0, merge)
	for range packFan - 4 {
		w.pack("a:1", 0, merge)
	}
	_, err := w.C.DeleteStream(w.Ctx, "gone") // its ref is not retired yet
	w.OK(err)
	_, err = w.C.AcceptLoss(w.Ctx, segment.PackKey(w.Chain, 3, 3, 0), "lost")
	w.OK(err)
	_, err = w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: w.Chain, Seq: 1, Segment: 1, Term: w.Term})
	w.OK(err)
	for i := range packFan {
		_, ok := w.Marker(catalog.DutyPackMerge, id)
		if live := packFan - 4 + i; ok != (live >= packFan) {
			t.Fatalf("armed by %d live packs: %v", live, ok)
		}
		w.pack("a:1", 0, merge)
	}
	// Nor does a commit whose output is no pack count them.
	m, _ := w.Marker(catalog.DutyPackMerge, id)
	w.Absorb("b:1")
	w.commitNext(merge, streamRun("b", w.Refs("b")...))
	same, _ := w.Marker(catalog.DutyPackMerge, id)
	Equal(t, "version after a stream object", same.Version, m.Version)
	// A merge's own sources count no more, and its output is of the next generation.
	win, err := w.C.PackWindow(w.Ctx, w.Chain, 0, packFan)
	w.OK(err)
	Equal(t, "packs", len(win.Packs), packFan)
	key := segment.PackKey(w.Chain, 4, 11, 1)
	run := Output(key, 1, catalog.RefPack, win.Refs...)
	run.New.Generation = 1
	w.commitNext(merge, run)
	same, _ = w.Marker(catalog.DutyPackMerge, id)
	Equal(t, "version", same.Version, m.Version)
	if _, ok := w.Marker(catalog.DutyPackMerge, catalog.PackMergeID(w.Chain, 1)); ok {
		t.Fatal("one pack of the next generation")
	}
}

// testPackWindow: the earliest packs of a generation, and the live refs that name them.
func testPackWindow(t *testing.T, open Open) {
	w := NewWorld(t, open)
	o := w.beside()
	_, err := w.C.PackWindow(w.Ctx, segment.Chain{Epoch: 9}, 0, 8)
	w.Is(err, catalog.ErrNotFound, "")
	_, err = w.C.PackWindow(w.Ctx, w.Chain, 0, 0)
	w.Is(err, catalog.ErrInvalid, "")
	for range 5 {
		w.Absorb("a:2 b:1")
		o.Absorb("c:1")
	}
	window := func(generation uint32, packs int) catalog.PackWindow {
		t.Helper()
		win, err := w.C.PackWindow(w.Ctx, w.Chain, generation, packs)
		w.OK(err)
		Equal(t, "now", win.Now, w.Clock.Now())
		Equal(t, "chain", win.Chain.AbsorbedEnd, 6)
		return win
	}
	Equal(t, "no pack yet", len(window(0, 8).Packs), 0)
	var keys []string
	for _, id := range []segment.ID{4, 2, 1, 5} { // made out of order; slot 3 stands
		keys = append(keys, w.packSlot(id, 0, catalog.Next{}))
		o.packSlot(id, 0, catalog.Next{})
	}
	other := keys[3] // slot 5's, of another generation
	live, err := w.C.Liveness(w.Ctx, other)
	w.OK(err)
	next := segment.PackKey(w.Chain, 5, 5, 1)
	var runs []catalog.Run
	for i := range live {
		run := Output(next, 1, catalog.RefPack, live[i].Ref)
		run.New.Generation = 7
		runs = append(runs, run)
	}
	w.commitNext(catalog.Next{}, runs...)
	in := []string{segment.PackKey(w.Chain, 1, 1, 0), segment.PackKey(w.Chain, 2, 2, 0), segment.PackKey(w.Chain, 4, 4, 0)}
	check := func(win catalog.PackWindow, keys []string, refs int) {
		t.Helper()
		if !slices.Equal(win.Packs, keys) {
			t.Fatalf("packs %q, want %q", win.Packs, keys)
		}
		Equal(t, "refs", len(win.Refs), refs)
		for i, r := range win.Refs {
			if !slices.Contains(keys, r.Key) || r.Kind != catalog.RefPack {
				t.Fatalf("ref %+v is of none of the packs", r)
			}
			if i > 0 && (win.Refs[i-1].StreamID > r.StreamID || win.Refs[i-1].StreamID == r.StreamID && !win.Refs[i-1].FirstPos().Less(r.FirstPos())) {
				t.Fatalf("order: %+v then %+v", win.Refs[i-1], r)
			}
			if _, ok := win.LiveFrom[r.StreamID]; !ok {
				t.Fatalf("live_from of stream %d is not told", r.StreamID)
			}
		}
	}
	check(window(0, 8), in, 6)
	check(window(0, 2), in[:2], 4)
	check(window(7, 8), []string{next}, 2)
	check(window(1, 8), nil, 0)

	// a: 1-2, 4-5, 7-8, 10-11, 13-14. Its second ref is cut, its first dead.
	a := mustStream(w, "a")
	_, err = w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 5})
	w.OK(err)
	win := window(0, 8)
	check(win, in, 5)
	Equal(t, "live_from", win.LiveFrom[a.ID], segment.Pos{Epoch: 1, Seq: 5})
	_, err = w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: w.Chain, Seq: 3, Segment: 1, Term: w.Term})
	w.OK(err)
	win = window(0, 8)
	check(win, in[1:], 4) // the first pack is dead
	Equal(t, "effective live_from", win.LiveFrom[mustStream(w, "b").ID], segment.Pos{Epoch: 1, Seq: 4})
	_, err = w.C.AcceptLoss(w.Ctx, in[1], "a")
	w.OK(err)
	check(window(0, 8), in[1:], 3)
	_, err = w.C.AcceptLoss(w.Ctx, in[1], "b")
	w.OK(err)
	check(window(0, 8), in[2:], 2)
}

// testBurnMarkers: nothing is left to look at for whatever watched a burned key.
func testBurnMarkers(t *testing.T, open Open) {
	w := NewWorld(t, open)
	key := w.settledAndDead()
	duties := []catalog.Duty{catalog.DutyReapCheck, catalog.DutyGC, catalog.DutyTailFill}
	for i := range 2 {
		for _, d := range duties {
			w.OK(w.C.Arm(w.Ctx, d, fmt.Sprint("obj/", i), segment.ClassStandard, 0))
			w.OK(w.C.Arm(w.Ctx, d, key, segment.ClassStandard, 0))
		}
	}
	m, _ := w.Marker(catalog.DutyReapCheck, key)
	w.OK(w.C.Confirm(w.Ctx, m.MarkerRef))
	w.Clock.Advance(readGrace)
	m, _ = w.Marker(catalog.DutyReapCheck, key)
	w.OK(w.C.CondemnKey(w.Ctx, m.MarkerRef))
	for _, d := range duties {
		if _, ok := w.Marker(d, key); !ok {
			t.Fatalf("%s is gone before the object", d)
		}
	}
	w.OK(w.C.BurnKey(w.Ctx, []string{key}))
	for _, d := range duties {
		ms, err := w.C.MarkersOf(w.Ctx, d, "", 0)
		w.OK(err)
		Equal(t, string(d)+" of other keys", len(ms), 2)
		if _, ok := w.Marker(d, key); ok {
			t.Fatalf("%s outlives the object", d)
		}
	}
}

package catalogtest

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func testWindow(t *testing.T, open Open) {
	w := NewWorld(t, open)
	win, err := w.C.Window(w.Ctx, w.Chain, 1)
	w.OK(err)
	Equal(t, "empty", len(win.Slots), 0)
	for range 5 {
		w.Absorb("a:2 b:1")
	}
	win, err = w.C.Window(w.Ctx, w.Chain, 1) // at least one
	w.OK(err)
	Equal(t, "slots", len(win.Slots), 1)
	Equal(t, "refs", len(win.Refs), 2)
	win, err = w.C.Window(w.Ctx, w.Chain, 2500)
	w.OK(err)
	Equal(t, "slots in 2,500 bytes", len(win.Slots), 2)
	Equal(t, "refs", len(win.Refs), 4)
	Equal(t, "order", win.Refs[1].First > win.Refs[0].First && win.Refs[0].StreamID == win.Refs[1].StreamID, true)
	// One that failed is left out for its back-off: the run begins behind it.
	w.OK(w.C.Postpone(w.Ctx, win.Slots[0].Marker.MarkerRef, time.Hour, "failed"))
	w.OK(w.C.Postpone(w.Ctx, catalog.MarkerRef{Duty: catalog.DutySettle, ID: catalog.SettleID(w.Chain, 4), Version: w.SettleMarkers()[3].Version}, time.Hour, "failed"))
	win, err = w.C.Window(w.Ctx, w.Chain, 1<<30)
	w.OK(err)
	Equal(t, "run up to the next gap", len(win.Slots), 2)
	Equal(t, "first", win.Slots[0].ID, 2)
	// Nothing below live_from is in it.
	_, err = w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 6})
	w.OK(err)
	win, err = w.C.Window(w.Ctx, w.Chain, 1<<30)
	w.OK(err)
	Equal(t, "live refs", len(win.Refs), 3)
	Equal(t, "live_from", win.LiveFrom[w.Refs("a")[0].StreamID], segment.Pos{Epoch: 1, Seq: 6})
}

func testAnnounce(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:2")
	key := segment.StreamKey("a", 1, 1, 0)
	h := w.Holder()
	ask := catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: h, Nonce: "n1", Deadline: orphanGrace / 2}
	announce := func(change func(*catalog.Announce)) (catalog.Intent, error) {
		a := ask
		change(&a)
		return w.C.Announce(w.Ctx, a)
	}
	for _, bad := range []func(*catalog.Announce){
		func(a *catalog.Announce) { a.Key = "" }, func(a *catalog.Announce) { a.Nonce = "" },
		func(a *catalog.Announce) { a.Deadline = 0 }, func(a *catalog.Announce) { a.Class = "" },
	} {
		_, err := announce(bad)
		w.Is(err, catalog.ErrInvalid, "")
	}
	_, err := announce(func(a *catalog.Announce) { a.Holder.Owner = "someone" })
	w.Is(err, catalog.ErrConflict, "lease")
	in, err := announce(func(*catalog.Announce) {})
	w.OK(err)
	Equal(t, "state", in.State, catalog.IntentStanding)
	m, _ := w.Marker(catalog.DutyOrphan, key)
	Equal(t, "judge comes", m.Due, w.Clock.Now().Add(orphanGrace))

	// The holder of the same lease takes it over: new nonce, new age, uploads kept.
	w.OK(w.C.AddUpload(w.Ctx, key, "n1", "u1"))
	w.Clock.Advance(time.Second)
	in, err = announce(func(a *catalog.Announce) { a.Nonce, a.Deadline = "n2", 10*orphanGrace })
	w.OK(err)
	Equal(t, "nonce", in.Nonce, "n2")
	Equal(t, "age", in.Announced, w.Clock.Now())
	Equal(t, "uploads", len(in.Uploads), 1)
	m, _ = w.Marker(catalog.DutyOrphan, key)
	Equal(t, "judge comes past the deadline", m.Due, w.Clock.Now().Add(10*orphanGrace))
	_, err = announce(func(a *catalog.Announce) { a.Class = "other" })
	w.Is(err, catalog.ErrConflict, "class")
	// Another holder does not.
	gc := catalog.Holder{Duty: catalog.DutyGC, ID: "x", Owner: "auditor-2"}
	w.OK(w.C.LeaseDuty(w.Ctx, gc, time.Hour))
	_, err = announce(func(a *catalog.Announce) { a.Holder = gc })
	w.Is(err, catalog.ErrConflict, "holder")
	// A lease on the marker itself counts as well.
	w.OK(w.C.Arm(w.Ctx, catalog.DutyGC, "y", "", 0))
	w.takeOne(catalog.DutyGC)
	_, err = announce(func(a *catalog.Announce) {
		a.Key, a.Holder = "obj/other", catalog.Holder{Duty: catalog.DutyGC, ID: "y", Owner: "auditor-1"}
	})
	w.OK(err)
	// A key that a ref names.
	named := w.Settle("a")
	_, err = announce(func(a *catalog.Announce) { a.Key = named })
	w.Is(err, catalog.ErrConflict, "ref")
	// The lease ran out.
	w.Clock.Advance(2 * time.Hour)
	_, err = announce(func(a *catalog.Announce) { a.Nonce = "n3" })
	w.Is(err, catalog.ErrConflict, "lease")
}

func testUploads(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Is(w.C.AddUpload(w.Ctx, "k", "n", "u"), catalog.ErrConflict, "intent")
	w.Announce("k", "n1")
	w.OK(w.C.AddUpload(w.Ctx, "k", "n1", "u1"))
	w.OK(w.C.AddUpload(w.Ctx, "k", "n1", "u1")) // a lost answer
	w.OK(w.C.AddUpload(w.Ctx, "k", "n1", "u2"))
	w.Announce("k", "n2")
	w.Is(w.C.AddUpload(w.Ctx, "k", "n1", "u3"), catalog.ErrConflict, "intent")
	w.Is(w.C.DropUpload(w.Ctx, "k", "n1", "u1"), catalog.ErrConflict, "intent")
	w.OK(w.C.DropUpload(w.Ctx, "k", "n2", "u1"))
	w.OK(w.C.DropUpload(w.Ctx, "k", "n2", "u1"))
	in, err := w.C.Intent(w.Ctx, "k")
	w.OK(err)
	Equal(t, "uploads", len(in.Uploads), 1)
	_, err = w.C.Intent(w.Ctx, "none")
	w.Is(err, catalog.ErrNotFound, "")
}

// rewrite sends a commit of runs under key, announced before.
func (w *World) rewrite(key string, runs ...catalog.Run) (catalog.Rewritten, error) {
	w.T.Helper()
	if _, err := w.C.Intent(w.Ctx, key); err != nil {
		w.Announce(key, "nonce")
	}
	return w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: key, Nonce: "nonce", Runs: runs})
}

func testCommit(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 3 {
		w.Absorb("a:2 b:1 c:2")
	}
	a, b, c := w.Refs("a"), w.Refs("b"), w.Refs("c")
	pack := segment.PackKey(w.Chain, 1, 3, 0)
	// Two streams and, of b, two runs with a gap between them.
	got, err := w.rewrite(pack, Output(pack, 0, catalog.RefPack, a...), Output(pack, 0, catalog.RefPack, b[0]), Output(pack, 0, catalog.RefPack, b[2]))
	w.OK(err)
	Equal(t, "committed", len(got.Committed), 3)
	Equal(t, "retired", got.Retired, 2)
	after := w.Refs("a")
	Equal(t, "refs of a", len(after), 1)
	Equal(t, "first", after[0].First, a[0].First)
	Equal(t, "last", after[0].Last, a[2].Last)
	Equal(t, "rows", after[0].Rows, 6)
	Equal(t, "row sum", after[0].RowSum, a[0].RowSum+a[1].RowSum+a[2].RowSum)
	Equal(t, "prev_last", after[0].PrevLast, a[0].PrevLast)
	Equal(t, "kind", after[0].Kind, catalog.RefPack)
	bb := w.Refs("b")
	Equal(t, "refs of b", len(bb), 3)
	Equal(t, "a ref never spans a gap", bb[1], b[1])
	Equal(t, "linked", bb[2].PrevLast, bb[1].LastPos())
	Equal(t, "c untouched", len(w.Refs("c")), len(c))
	_, err = w.C.Intent(w.Ctx, pack)
	w.Is(err, catalog.ErrNotFound, "")
	if _, ok := w.Marker(catalog.DutyOrphan, pack); ok {
		t.Fatal("the judge's marker outlives the intent")
	}
	live, err := w.C.Liveness(w.Ctx, pack)
	w.OK(err)
	Equal(t, "refs that name the pack", len(live), 3)
	if ms, _ := w.C.MarkersOf(w.Ctx, catalog.DutyReapCheck, "", 0); len(ms) != 0 {
		t.Fatalf("slots are not watched by reap-checks: %+v", ms)
	}
	// A settled source gets its watcher, one grace out.
	out := segment.StreamKey("a", 1, a[0].First, 1)
	_, err = w.rewrite(out, Output(out, 1, catalog.RefStream, after...))
	w.OK(err)
	m, ok := w.Marker(catalog.DutyReapCheck, pack)
	if !ok || !m.Due.Equal(w.Clock.Now().Add(readGrace)) || m.Class != segment.ClassStandard {
		t.Fatalf("reap-check of the source: %+v %v", m, ok)
	}
}

func testCommitGuards(t *testing.T, open Open) {
	type request = catalog.Rewrite
	for _, c := range []struct {
		name, guard string
		kind        error
		change      func(*World, *request)
	}{
		{"no runs", "", catalog.ErrInvalid, func(_ *World, r *request) { r.Runs = nil }},
		{"empty run", "", catalog.ErrInvalid, func(_ *World, r *request) { r.Runs[0].Expect = nil }},
		{"another key", "", catalog.ErrInvalid, func(_ *World, r *request) { r.Runs[0].New.Key = "obj/other" }},
		{"gap in a run", "", catalog.ErrInvalid, func(_ *World, r *request) {
			e := r.Runs[0].Expect
			r.Runs[0].Expect = []catalog.Ref{e[0], e[2]}
		}},
		{"expected twice", "", catalog.ErrInvalid, func(_ *World, r *request) { r.Runs = append(r.Runs, r.Runs[0]) }},
		{"beyond the run", "", catalog.ErrInvalid, func(_ *World, r *request) { r.Runs[0].New.Last++ }},
		{"output of kind slot", "", catalog.ErrInvalid, func(_ *World, r *request) { r.Runs[0].New.Kind = catalog.RefSlot }},
		{"nonce of another job", "intent", catalog.ErrConflict, func(_ *World, r *request) { r.Nonce = "other" }},
		{"key moved", "ref unchanged", catalog.ErrConflict, func(_ *World, r *request) { r.Runs[0].Expect[1].Key = "obj/other" }},
		{"last moved", "ref unchanged", catalog.ErrConflict, func(_ *World, r *request) {
			r.Runs[0].Expect[2].Last++
		}},
		{"revision moved", "ref unchanged", catalog.ErrConflict, func(_ *World, r *request) { r.Runs[0].Expect[1].Revision = 3 }},
		{"row sum differs", "row sum", catalog.ErrConflict, func(_ *World, r *request) { r.Runs[0].New.RowSum++ }},
		{"row missing", "row sum", catalog.ErrConflict, func(_ *World, r *request) { r.Runs[0].New.Rows-- }},
		{"head left out", "head below live_from", catalog.ErrConflict, func(_ *World, r *request) { r.Runs[0].New.First++ }},
		{"swapped by another job", "ref unchanged", catalog.ErrConflict, func(w *World, r *request) {
			other := segment.PackKey(w.Chain, 1, 3, 0)
			_, err := w.rewrite(other, Output(other, 0, catalog.RefPack, r.Runs[0].Expect...))
			w.OK(err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWorld(t, open)
			for range 3 {
				w.Absorb("a:2 b:1")
			}
			key := segment.StreamKey("a", 1, 1, 0)
			w.Announce(key, "nonce")
			b := w.Refs("b")
			r := catalog.Rewrite{Key: key, Nonce: "nonce", Runs: []catalog.Run{
				Output(key, 0, catalog.RefStream, w.Refs("a")...), Output(key, 0, catalog.RefStream, b...),
			}}
			c.change(w, &r)
			_, err := w.C.CommitRewrite(w.Ctx, r)
			w.Is(err, c.kind, c.guard)
			// All runs, or none.
			after := w.Refs("b")
			Equal(t, "refs of the other run", len(after), len(b))
			live, err := w.C.Liveness(w.Ctx, key)
			w.OK(err)
			Equal(t, "refs that name the output", len(live), 0)
		})
	}
	t.Run("no intent", func(t *testing.T) {
		w := NewWorld(t, open)
		w.Absorb("a:2")
		_, err := w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: "obj/k", Nonce: "n", Runs: []catalog.Run{Output("obj/k", 0, catalog.RefStream, w.Refs("a")...)}})
		w.Is(err, catalog.ErrConflict, "intent")
	})
}

// testCommitTruncated: a winner that covers less leaves a remainder.
func testCommitTruncated(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 3 {
		w.Absorb("a:4 b:1")
	} // a: 1-4, 6-9, 11-14
	a := w.Refs("a")
	key := segment.StreamKey("a", 1, 1, 0)
	run := Output(key, 0, catalog.RefStream, a...)
	run.New.Last = 7
	describe(&run.New, func(s segment.Seq) bool { return s != 5 })
	got, err := w.rewrite(key, run)
	w.OK(err)
	Equal(t, "committed", len(got.Committed), 1)
	after := w.Refs("a")
	Equal(t, "refs", len(after), 3)
	rem := after[1]
	Equal(t, "remainder's first", rem.First, 8)
	Equal(t, "remainder's prev_last", rem.PrevLast, segment.Pos{Epoch: 1, Seq: 7})
	Equal(t, "remainder's rows", rem.Rows, 2)
	Equal(t, "remainder's row sum", rem.RowSum, rowHash(8)+rowHash(9))
	Equal(t, "remainder's bytes", rem.Bytes, 2*rowBytes)
	Equal(t, "remainder's object", rem.Key, a[1].Key)
	Equal(t, "remainder's chunk", rem.Offset, a[1].Offset)
	Equal(t, "behind it untouched", after[2], a[2])
	// The slot that keeps a remainder is not settled; the first one is.
	n, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 0) // b names all three
	w.Settle("b")
	n, err = w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 1)
	// The rest goes on as a run of its own.
	w.Settle("a")
	Equal(t, "all rows", w.Refs("a")[0].Rows, 12)
	// Ending between two refs is ending with the first.
	w.Absorb("a:2 b:1")
	w.Absorb("a:2 b:1") // 16-17, 19-20
	tail := w.Refs("a")[1:]
	key = segment.StreamKey("a", 1, tail[0].First, 0)
	run = Output(key, 0, catalog.RefStream, tail...)
	run.New.Last = 18
	describe(&run.New, func(s segment.Seq) bool { return s != 18 })
	_, err = w.rewrite(key, run)
	w.OK(err)
	after = w.Refs("a")
	Equal(t, "refs", len(after), 3)
	Equal(t, "last", after[1].Last, 17)
	Equal(t, "linked", after[2].PrevLast, after[1].LastPos())
	// More rows than there are.
	run = Output("obj/x", 0, catalog.RefStream, after[2])
	run.New.Last--
	_, err = w.rewrite("obj/x", run)
	w.Is(err, catalog.ErrConflict, "rows")
}

// testCommitTrimmed: what a trim retired, or is about to, is left out.
func testCommitTrimmed(t *testing.T, open Open) {
	for _, walked := range []bool{true, false} {
		w := NewWorld(t, open)
		for range 3 {
			w.Absorb("a:4 b:1")
		}
		a := w.Refs("a")
		key := segment.StreamKey("a", 1, 1, 0)
		w.Announce(key, "nonce")
		_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 8}) // the first is dead, the second straddles
		w.OK(err)
		if walked {
			w.walk(a[0].StreamID)
		}
		got, err := w.rewrite(key, Output(key, 0, catalog.RefStream, a...))
		w.OK(err)
		Equal(t, "nothing", got.Nothing, false)
		after := w.Refs("a")
		Equal(t, "refs", len(after), 1)
		Equal(t, "begins at the first that stands", after[0].First, 6)
		Equal(t, "prev_last", after[0].PrevLast, a[1].PrevLast)
		Equal(t, "rows", after[0].Rows, 8)
		Equal(t, "row sum", after[0].RowSum, a[1].RowSum+a[2].RowSum)
		page, err := w.C.WalkStream(w.Ctx, a[0].StreamID, 10)
		w.OK(err)
		Equal(t, "dead refs left", len(page.Dead), 0)
		if page.Straddle == nil || page.Straddle.Key != key {
			t.Fatalf("straddle %+v", page.Straddle)
		}
	}
	// All of it went: nothing is named, the intent stays for the judge.
	w := NewWorld(t, open)
	w.Absorb("a:4")
	a := w.Refs("a")
	w.Announce("obj/k", "nonce")
	_, err := w.C.DeleteStream(w.Ctx, "a")
	w.OK(err)
	w.walk(a[0].StreamID)
	got, err := w.rewrite("obj/k", Output("obj/k", 0, catalog.RefStream, a...))
	w.OK(err)
	Equal(t, "nothing", got.Nothing, true)
	in, err := w.C.Intent(w.Ctx, "obj/k")
	w.OK(err)
	Equal(t, "intent", in.State, catalog.IntentStanding)
	// Gone, but not below live_from: another job's doing.
	w.Absorb("a:4")
	a = w.Refs("a")
	a[0].First--
	a[0].Rows++
	_, err = w.rewrite("obj/k", Output("obj/k", 0, catalog.RefStream, a...))
	w.Is(err, catalog.ErrConflict, "ref unchanged")
}

// testCommitCut: nothing below live_from is copied, so an output may begin inside its
// first ref.
func testCommitCut(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4 b:1")
	w.Absorb("a:4 b:1") // 1-4, 6-9
	_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 3})
	w.OK(err)
	a := w.Refs("a")
	key := segment.StreamKey("a", 1, 3, 0)
	run := Output(key, 0, catalog.RefStream, a...)
	run.New.First = 3
	describe(&run.New, func(s segment.Seq) bool { return s != 5 })
	short := run
	short.New.Last = 7
	_, err = w.rewrite(key, short)
	w.Is(err, catalog.ErrInvalid, "")
	_, err = w.rewrite(key, run)
	w.OK(err)
	after := w.Refs("a")
	Equal(t, "refs", len(after), 1)
	Equal(t, "first", after[0].First, 3)
	Equal(t, "rows", after[0].Rows, 6)
	Equal(t, "prev_last below live_from", after[0].PrevLast.Less(segment.Pos{Epoch: 1, Seq: 3}), true)

	// The ref that it begins inside died meanwhile.
	w.Absorb("a:4") // 11-14
	w.Absorb("a:4") // 15-18
	_, err = w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 12})
	w.OK(err)
	a = w.Refs("a")
	key = segment.StreamKey("a", 1, 12, 0)
	run = Output(key, 0, catalog.RefStream, a...)
	run.New.First = 12
	describe(&run.New, func(segment.Seq) bool { return true })
	w.Announce(key, "nonce")
	_, err = w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 15})
	w.OK(err)
	_, err = w.rewrite(key, run)
	w.OK(err)
	after = w.Refs("a")
	Equal(t, "first that stands", after[0].First, 15)
	Equal(t, "rows", after[0].Rows, 4)
	Equal(t, "row sum", after[0].RowSum, a[1].RowSum)
}

func testCommitAgain(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4 b:2")
	w.Absorb("a:4 b:2")
	key := segment.PackKey(w.Chain, 1, 2, 0)
	runs := []catalog.Run{Output(key, 0, catalog.RefPack, w.Refs("a")...), Output(key, 0, catalog.RefPack, w.Refs("b")...)}
	first, err := w.rewrite(key, runs...)
	w.OK(err)
	ask := catalog.Rewrite{Key: key, Nonce: "nonce", Runs: runs}
	got, err := w.C.CommitRewrite(w.Ctx, ask)
	w.OK(err)
	Equal(t, "already", got.Already, true)
	Equal(t, "committed", len(got.Committed), len(first.Committed))
	Equal(t, "as they stand", got.Committed[0], first.Committed[0])
	// Also when a trim took one of the streams since.
	s, err := w.C.DeleteStream(w.Ctx, "a")
	w.OK(err)
	w.walk(s.ID)
	got, err = w.C.CommitRewrite(w.Ctx, ask)
	w.OK(err)
	Equal(t, "already", got.Already, true)
	Equal(t, "committed", len(got.Committed), 1)
}

// testCommitUploads: an intent with an upload left stays for the judge.
func testCommitUploads(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4")
	key := segment.StreamKey("a", 1, 1, 0)
	w.Announce(key, "nonce")
	w.OK(w.C.AddUpload(w.Ctx, key, "nonce", "u1"))
	w.OK(w.C.AddUpload(w.Ctx, key, "nonce", "u2"))
	ask := catalog.Rewrite{Key: key, Nonce: "nonce", UploadsGone: []string{"u1"}, Runs: []catalog.Run{Output(key, 0, catalog.RefStream, w.Refs("a")...)}}
	_, err := w.C.CommitRewrite(w.Ctx, ask)
	w.OK(err)
	in, err := w.C.Intent(w.Ctx, key)
	w.OK(err)
	Equal(t, "uploads left", len(in.Uploads), 1)
	ask.UploadsGone = []string{"u2"}
	got, err := w.C.CommitRewrite(w.Ctx, ask)
	w.OK(err)
	Equal(t, "already", got.Already, true)
	_, err = w.C.Intent(w.Ctx, key)
	w.Is(err, catalog.ErrNotFound, "")
}

func testResolveSettled(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:2")
	w.Clock.Advance(time.Second)
	w.Absorb("b:2")
	since := w.Clock.Now()
	w.Absorb("c:2")
	w.Settle("a")
	ms := w.SettleMarkers()
	_, err := w.C.ResolveSettled(w.Ctx, w.Chain, []catalog.MarkerRef{{Duty: catalog.DutySettle, ID: "nonsense", Version: 1}})
	w.Is(err, catalog.ErrCorrupt, "")
	_, err = w.C.ResolveSettled(w.Ctx, segment.Chain{Epoch: 1, Shard: 1}, ms)
	w.Is(err, catalog.ErrInvalid, "")
	// An arm meanwhile: the old version resolves nothing.
	w.OK(w.C.Arm(w.Ctx, catalog.DutySettle, ms[0].ID, "", 0))
	n, err := w.C.ResolveSettled(w.Ctx, w.Chain, ms)
	w.OK(err)
	Equal(t, "resolved at an old version", n, 0)
	if _, ok := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain)); ok {
		t.Fatal("nothing resolved, nothing armed")
	}
	n, err = w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 1) // b's and c's slots are named
	row := w.Row()
	Equal(t, "transit bytes", row.TransitBytes, 2000)
	Equal(t, "transit since", row.TransitSince, since)
	m, ok := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	if !ok || !m.Due.Equal(w.Clock.Now().Add(readGrace)) {
		t.Fatalf("trim-check %+v %v", m, ok)
	}
	n, err = w.C.ResolveSettled(w.Ctx, w.Chain, ms) // again: a lost answer
	w.OK(err)
	Equal(t, "resolved again", n, 0)
	w.Settle("b")
	w.Settle("c")
	n, err = w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 2)
	row = w.Row()
	Equal(t, "transit bytes", row.TransitBytes, 0)
	Equal(t, "transit since", row.TransitSince.IsZero(), true)
}

// walk tears a stream down as far as it is dead.
func (w *World) walk(stream int64) {
	w.T.Helper()
	for {
		p, err := w.C.WalkStream(w.Ctx, stream, 2)
		w.OK(err)
		watch := p.Dead
		if p.Straddle != nil {
			watch = append(watch, *p.Straddle)
		}
		w.OK(w.C.ArmWatchers(w.Ctx, watch))
		n, err := w.C.RetireRefs(w.Ctx, p.Dead)
		w.OK(err)
		Equal(w.T, "retired", n, len(p.Dead))
		if !p.More {
			return
		}
	}
}

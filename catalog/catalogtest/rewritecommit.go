package catalogtest

import (
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

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
		{"head left out", "head below live_from", catalog.ErrConflict, func(_ *World, r *request) {
			r.Runs[0].New.First++
			r.Runs[0].New.Rows--
		}},
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

package catalogtest

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// lossWorld has a: 1-4 in a slot, 6-9 in a stream object, 11-14 in a slot; b one row of
// each slot.
func lossWorld(t *testing.T, open Open) (w *World, key string) {
	t.Helper()
	w = NewWorld(t, open)
	for range 3 {
		w.Absorb("a:4 b:1")
	}
	run := streamRun("a", w.Refs("a")[1])
	w.commitNext(catalog.Next{}, run)
	return w, run.New.Key
}

// lose gives a span up, which must stand.
func (w *World) lose(key, stream string) []catalog.Ref {
	w.T.Helper()
	lost, err := w.C.AcceptLoss(w.Ctx, key, stream)
	w.OK(err)
	return lost
}

// losses are the audit rows of what was given up.
func (w *World) losses() (n int) {
	w.T.Helper()
	rows, err := w.C.AuditRows(w.Ctx, 0, 0)
	w.OK(err)
	for _, r := range rows {
		if r.Kind == catalog.AuditLoss {
			n++
		}
	}
	return n
}

// markers counts all that stand, and sums their versions: what it gives changes with
// every arm and every end.
func (w *World) markers() (n int, versions int64) {
	w.T.Helper()
	s, err := w.C.Status(w.Ctx)
	w.OK(err)
	for d := range s.Markers {
		ms, err := w.C.MarkersOf(w.Ctx, d, "", 0)
		w.OK(err)
		n += len(ms)
		for _, m := range ms {
			versions += m.Version
		}
	}
	return n, versions
}

// testAcceptLossSettled: the span stays in its place, and its object is watched.
func testAcceptLossSettled(t *testing.T, open Open) {
	w, key := lossWorld(t, open)
	before := w.Refs("a")
	lost := w.lose(key, "a")
	Equal(t, "lost", len(lost), 1)
	want := before[1]
	want.Key, want.Kind, want.Class, want.Revision, want.Generation = "", catalog.RefLost, "", 0, 0
	want.Chunks, want.Offset, want.Stored, want.Raw, want.Codec, want.CRC, want.Sum = 0, 0, 0, 0, 0, 0, 0
	Equal(t, "the lost ref", lost[0], want)
	after := w.Refs("a")
	Equal(t, "refs", len(after), 3)
	Equal(t, "before it", after[0], before[0])
	Equal(t, "in its place", after[1], want)
	Equal(t, "behind it, linked", after[2], before[2])
	m, ok := w.Marker(catalog.DutyReapCheck, key)
	if !ok || !m.Due.Equal(w.Clock.Now().Add(readGrace)) || m.Class != segment.ClassStandard {
		t.Fatalf("reap-check of the object: %+v %v", m, ok)
	}
	live, err := w.C.Liveness(w.Ctx, key)
	w.OK(err)
	Equal(t, "refs that name the object", len(live), 0)
	rows, err := w.C.AuditRows(w.Ctx, 0, 0)
	w.OK(err)
	last := rows[len(rows)-1]
	Equal(t, "audit kind", last.Kind, catalog.AuditLoss)
	Equal(t, "audit subject", last.Subject, key)
	Equal(t, "audit detail", last.Detail, catalog.DescribeLoss(lost))
	// A lost answer: the second call finds nothing, and does nothing.
	n, versions := w.markers()
	_, err = w.C.AcceptLoss(w.Ctx, key, "a")
	w.Is(err, catalog.ErrNotFound, "")
	n2, versions2 := w.markers()
	Equal(t, "markers", n2, n)
	Equal(t, "their versions", versions2, versions)
	Equal(t, "audit rows", w.losses(), 1)
	// The object goes as any dead one does.
	w.OK(w.C.Confirm(w.Ctx, m.MarkerRef))
	w.Clock.Advance(readGrace)
	m, _ = w.Marker(catalog.DutyReapCheck, key)
	w.OK(w.C.CondemnKey(w.Ctx, m.MarkerRef))
	w.OK(w.C.BurnKey(w.Ctx, []string{key}))
	// No mover comes to its key again, for none touches the lost ref.
	w.Clock.Advance(catalog.BurnDelay)
	w.remove(key, true)
}

// testAcceptLossPack: of an object that many streams share only this stream's refs go.
func testAcceptLossPack(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 3 {
		w.Absorb("a:2 b:2 c:1")
	}
	a, b, c := w.Refs("a"), w.Refs("b"), w.Refs("c")
	key := segment.PackKey(w.Chain, 1, 3, 0)
	// Two runs of a, with a gap between them.
	w.commitNext(catalog.Next{}, Output(key, 0, catalog.RefPack, a[0]), Output(key, 0, catalog.RefPack, a[2]), Output(key, 0, catalog.RefPack, b...), Output(key, 0, catalog.RefPack, c...))
	lost := w.lose(key, "a")
	Equal(t, "lost", len(lost), 2)
	Equal(t, "in order", lost[0].First < lost[1].First, true)
	Equal(t, "the one between stands", w.Refs("a")[1], a[1])
	live, err := w.C.Liveness(w.Ctx, key)
	w.OK(err)
	Equal(t, "refs of the others", len(live), 2)
	if _, ok := w.Marker(catalog.DutyReapCheck, key); !ok {
		t.Fatal("the pack lost a span, and nobody looks at it")
	}
	w.lose(key, "b")
	Equal(t, "lost of a and b, under one empty key", w.lost(), 3)
	s, err := w.C.Status(w.Ctx)
	w.OK(err)
	Equal(t, "status", s.Refs[catalog.RefLost], 3)
	// A run that was read before is not committed over it.
	live, err = w.C.Liveness(w.Ctx, key)
	w.OK(err)
	w.lose(key, "c")
	_, err = w.rewrite("obj/late", Output("obj/late", 1, catalog.RefStream, live[0].Ref))
	w.Is(err, catalog.ErrConflict, "ref unchanged")
}

// lost counts the lost refs that stand.
func (w *World) lost() (n int) {
	w.T.Helper()
	all, err := w.C.RefsByKey(w.Ctx, nil, 0)
	w.OK(err)
	for _, l := range all {
		if l.Kind == catalog.RefLost {
			Equal(w.T, "key of a lost ref", l.Key, "")
			n++
		}
	}
	return n
}

// testAcceptLossSlot: its slot's settle marker becomes due, so that the debt can end.
func testAcceptLossSlot(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4 b:1")
	key := segment.SlotKey(w.Chain, 1)
	w.OK(w.C.Postpone(w.Ctx, w.SettleMarkers()[0], time.Hour, "span does not verify"))
	before := w.SettleMarkers()[0]
	w.lose(key, "a")
	m, _ := w.Marker(catalog.DutySettle, before.ID)
	Equal(t, "due", m.Due, w.Clock.Now())
	Equal(t, "version raised", m.Version != before.Version, true)
	if ms, _ := w.C.MarkersOf(w.Ctx, catalog.DutyReapCheck, "", 0); len(ms) != 0 {
		t.Fatalf("slots are not watched by reap-checks: %+v", ms)
	}
	win, err := w.C.Window(w.Ctx, w.Chain, 1<<30)
	w.OK(err)
	Equal(t, "slots to settle", len(win.Slots), 1)
	Equal(t, "refs to move", len(win.Refs), 1)
	Equal(t, "of", win.Refs[0].Stream, "b")
	n, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "b is owed still", n, 0)
	w.lose(key, "b")
	win, err = w.C.Window(w.Ctx, w.Chain, 1<<30)
	w.OK(err)
	Equal(t, "an empty slot to settle", len(win.Slots), 1)
	Equal(t, "refs to move", len(win.Refs), 0)
	n, err = w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 1)
	w.trimSettled()
	Equal(t, "trimmed", w.Row().Trimmed, 2)
}

// testAcceptLossVoid: a void slot that holds rows holds up its chain's trim until then.
func testAcceptLossVoid(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("")
	for _, rows := range []string{"a:2", ""} { // slots 2, and 3 without rows
		a := w.Build(rows)
		a.Void, a.Reason = true, "seqs do not continue"
		_, err := w.C.AbsorbSlot(w.Ctx, a)
		w.OK(err)
		w.ID++
	}
	w.Absorb("")
	n, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 2)
	key := segment.SlotKey(w.Chain, 2)
	w.trimSettled()
	Equal(t, "trimmed up to the void slot", w.Row().Trimmed, 2)
	m, ok := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	Equal(t, "trim-check stands", ok, true)
	w.OK(w.C.Resolve(w.Ctx, m.MarkerRef))
	for _, wrong := range [][2]string{
		{key, "a"}, {segment.SlotKey(w.Chain, 1), ""}, {segment.SlotKey(w.Chain, 3), ""}, {segment.SlotKey(w.Chain, 4), ""}, {segment.SlotKey(w.Chain, 9), ""},
	} {
		_, err := w.C.AcceptLoss(w.Ctx, wrong[0], wrong[1])
		w.Is(err, catalog.ErrNotFound, "")
	}
	w.Absorb("a:1") // a living slot's marker is not taken for a void one's
	_, err = w.C.AcceptLoss(w.Ctx, segment.SlotKey(w.Chain, 5), "")
	w.Is(err, catalog.ErrNotFound, "")
	Equal(t, "settle markers", len(w.SettleMarkers()), 2)
	Equal(t, "audit rows", w.losses(), 0)

	lost, err := w.C.AcceptLoss(w.Ctx, key, "")
	w.OK(err)
	Equal(t, "refs", len(lost), 0)
	if _, ok := w.Marker(catalog.DutySettle, catalog.SettleID(w.Chain, 2)); ok {
		t.Fatal("the parked marker stands")
	}
	m, ok = w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	if !ok || !m.Due.Equal(w.Clock.Now().Add(readGrace)) {
		t.Fatalf("trim-check %+v %v", m, ok)
	}
	Equal(t, "audit rows", w.losses(), 1)
	_, err = w.C.AcceptLoss(w.Ctx, key, "") // a lost answer
	w.Is(err, catalog.ErrNotFound, "")
	Equal(t, "audit rows", w.losses(), 1)
	Equal(t, "transit bytes", w.Row().TransitBytes, 1000)
	w.trimSettled()
	Equal(t, "trimmed past it", w.Row().Trimmed, 5)
}

// testAcceptLossNothing: what does not stand is not given up.
func testAcceptLossNothing(t *testing.T, open Open) {
	w, key := lossWorld(t, open)
	w.lose(key, "a")
	n, versions := w.markers()
	_, err := w.C.AcceptLoss(w.Ctx, "", "a") // what is lost already has no key
	w.Is(err, catalog.ErrInvalid, "")
	_, err = w.C.AcceptLoss(w.Ctx, "", "")
	w.Is(err, catalog.ErrInvalid, "")
	for _, wrong := range [][2]string{
		{segment.SlotKey(w.Chain, 1), "none"}, {segment.SlotKey(w.Chain, 2), "a"}, {"obj/none", "a"}, {"obj/none", ""}, {key, ""},
	} {
		_, err := w.C.AcceptLoss(w.Ctx, wrong[0], wrong[1])
		w.Is(err, catalog.ErrNotFound, "")
	}
	n2, versions2 := w.markers()
	Equal(t, "markers", n2, n)
	Equal(t, "their versions", versions2, versions)
	Equal(t, "lost refs", w.lost(), 1)
	Equal(t, "audit rows", w.losses(), 1)
}

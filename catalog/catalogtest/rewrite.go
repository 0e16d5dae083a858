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

package catalogtest

import (
	"sync"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// testK13: an ambiguous commit is found out by calling the verb again. Every writing
// verb of a job can be sent twice, and the second answer says what stands.
func testK13(t *testing.T, open Open) {
	w := NewWorld(t, open)
	a := w.Build("a:4")
	for i := range 2 {
		got, err := w.C.AbsorbSlot(w.Ctx, a)
		w.OK(err)
		Equal(t, "already", got.Already, i == 1)
	}
	w.Continue(a)
	key := segment.StreamKey("a", 1, 1, 0)
	w.Announce(key, "n")
	w.Announce(key, "n")
	ask := catalog.Rewrite{Key: key, Nonce: "n", Runs: []catalog.Run{Output(key, 0, catalog.RefStream, w.Refs("a")...)}}
	for i := range 2 {
		got, err := w.C.CommitRewrite(w.Ctx, ask)
		w.OK(err)
		Equal(t, "already", got.Already, i == 1)
		Equal(t, "committed", got.Committed[0].Key, key)
	}
	// A job that took the unknown commit for a failed one cannot have its output
	// condemned: a ref names it.
	w.OK(w.C.Arm(w.Ctx, catalog.DutyOrphan, key, "", 0))
	v, _ := w.condemnIntent(key)
	Equal(t, "no intent to judge", v, catalog.Gone)
	_, err := w.C.Announce(w.Ctx, catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: w.Holder(), Nonce: "n2", Deadline: 1})
	w.Is(err, catalog.ErrConflict, "ref")
}

// testK18: markers live in the catalog. Whoever held one and died, another takes it.
func testK18(t *testing.T, open Open) {
	w := NewWorld(t, open)
	key := w.settledAndDead()
	w.Clock.Advance(readGrace)
	m := w.takeOne(catalog.DutyReapCheck) // its host burns down
	w.Clock.Advance(leaseTime)
	k := take(catalog.DutyReapCheck)
	k.Owner = "auditor-2"
	ms, err := w.C.TakeDue(w.Ctx, k)
	w.OK(err)
	Equal(t, "taken again", len(ms), 1)
	Equal(t, "the same", ms[0].MarkerRef, m.MarkerRef)
	w.OK(w.C.Confirm(w.Ctx, ms[0].MarkerRef))
	w.Is(w.C.Confirm(w.Ctx, m.MarkerRef), catalog.ErrConflict, "marker reap-check "+key)
}

// testK19: two auditors do all of it at once; each act happens once, and what was
// trimmed never comes back.
func testK19(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 4 {
		w.Absorb("a:4")
	}
	refs := w.Refs("a")
	_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 9})
	w.OK(err)
	both := func(act func() bool) (done int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 2 {
			wg.Go(func() {
				if act() {
					mu.Lock()
					done++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return done
	}
	retired := 0
	var mu sync.Mutex
	both(func() bool {
		n, err := w.C.RetireRefs(w.Ctx, refs)
		mu.Lock()
		retired += n
		mu.Unlock()
		return err == nil
	})
	Equal(t, "retired once", retired, 2)
	key := segment.StreamKey("a", 1, 1, 0)
	w.Announce(key, "n")
	ask := catalog.Rewrite{Key: key, Nonce: "n", Runs: []catalog.Run{Output(key, 0, catalog.RefStream, refs...)}}
	Equal(t, "first commits", both(func() bool {
		got, err := w.C.CommitRewrite(w.Ctx, ask)
		return err == nil && !got.Already
	}), 1)
	Equal(t, "trimmed rows stay away", w.Refs("a")[0].First, 9)
	ms := w.SettleMarkers()
	resolved := 0
	both(func() bool {
		n, err := w.C.ResolveSettled(w.Ctx, w.Chain, ms)
		mu.Lock()
		resolved += n
		mu.Unlock()
		return err == nil
	})
	Equal(t, "resolved once", resolved, 4)
	Equal(t, "transit", w.Row().TransitBytes, 0)
	row, err := w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	m, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	Equal(t, "condemned once", both(func() bool {
		_, err := w.C.CondemnSlots(w.Ctx, m.MarkerRef, w.Chain, 1, row.Rewritten)
		return err == nil
	}), 1)
	w.Clock.Advance(readGrace)
	Equal(t, "trimmed once", both(func() bool {
		_, err := w.C.AdvanceTrim(w.Ctx, w.Chain, 1, row.Rewritten)
		return err == nil
	}), 1)
}

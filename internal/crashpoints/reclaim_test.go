package crashpoints_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// The rows of seed 002's table that concern what goes.

// Arming, before the marker resolves: a duplicate arm. Ids are deterministic, so the
// second arm collapses onto the first; the second resolve finds nothing and is no error.
func TestAfterArmingBeforeTheMarkerResolves(t *testing.T) {
	for _, cut := range []string{"Arm", "Resolve"} {
		t.Run(cut, func(t *testing.T) {
			w := newWorld(t)
			w.GCLeast = 1
			w.slot(small, bulky)
			w.RunDry()
			w.drop("bulky") // its pack is worth a gc
			w.cutAfterArm(cut)

			if want := map[string]int{"Arm": 1, "Resolve": 0}[cut]; w.marked(catalog.DutyGC) != 1 || w.marked(catalog.DutyReapCheck) != want {
				t.Fatalf("gc %v, reap-checks %v", w.Markers(catalog.DutyGC), w.Markers(catalog.DutyReapCheck))
			}
			first := w.Markers(catalog.DutyGC)[0]
			w.reapOnce()
			if ms := w.Markers(catalog.DutyGC); len(ms) != 1 || ms[0].ID != first.ID || w.marked(catalog.DutyReapCheck) != 0 {
				t.Fatalf("gc %v, reap-checks %v: want one arm", ms, w.Markers(catalog.DutyReapCheck))
			}
			w.converges()
			if got := w.Settled(); len(got) != 1 || got[0] == first.ID {
				t.Errorf("%v stand: want the object rewritten once", got)
			}
		})
	}
}

// cutAfterArm lets the teardown walk go, and cuts the reap-check that follows a grace
// later.
func (w *world) cutAfterArm(call string) {
	w.T.Helper()
	_, err := w.Auditor("walk", auditor.Config{}).Once(w.Ctx(), auditor.OnceOptions{})
	w.Must(err)
	w.Clock.Advance(audittest.ReadGrace)
	w.cutAfter(call, 1)
	w.Clock.Advance(2 * auditor.DefaultLease)
}

// reapOnce runs the reap-checks that are due, and nothing else.
func (w *world) reapOnce() []reap.Result {
	w.T.Helper()
	return w.reaper(&audittest.Faults{}).RunOnce(w.Ctx(), w.Take(catalog.DutyReapCheck))
}

// A killer's arm-before-kill, before the kill: a premature reap-check. The probe finds a
// live span and stands down, for one GET.
func TestAfterAKillersArmBeforeTheKill(t *testing.T) {
	w := newWorld(t)
	w.slot(small, bulky)
	w.RunDry()
	w.drop("bulky")
	w.cutAfter("ArmWatchers", 1)

	if _, settled := w.refsIn(); settled != 2 || w.marked(catalog.DutyReapCheck) != 1 || w.marked(catalog.DutyTeardown) != 1 {
		t.Fatalf("%d refs, reap-checks %v, teardowns %v: want a watcher without a death", settled, w.Markers(catalog.DutyReapCheck), w.Markers(catalog.DutyTeardown))
	}
	w.Clock.Advance(audittest.ReadGrace)
	f := &audittest.Faults{}
	f.Start()
	res := w.reaper(f).RunOnce(t.Context(), w.Take(catalog.DutyReapCheck))
	f.Heal()
	asked := slices.DeleteFunc(f.Calls(), func(c string) bool { return !ofStore(c) })
	if len(res) != 1 || res[0].Outcome != reap.Stands || !slices.Equal(asked, []string{"store get " + packKey}) {
		t.Fatalf("%+v for %v: want it to stand, for one GET", res, asked)
	}
	if w.marked(catalog.DutyReapCheck) != 0 {
		t.Errorf("reap-checks %v", w.Markers(catalog.DutyReapCheck))
	}
	w.reruns() // the kill, which arms again
	if _, settled := w.refsIn(); settled != 1 || w.marked(catalog.DutyReapCheck) != 1 {
		t.Errorf("%d refs, reap-checks %v", settled, w.Markers(catalog.DutyReapCheck))
	}
	w.converges()
	if got := w.Settled(); !slices.Equal(got, []string{packKey}) {
		t.Errorf("%v stand, want the pack", got)
	}
}

// The same killer, and no live span in its object: dead by live_from, and yet a ref names
// it until the walk comes by. It is confirmed, and never condemned before the ref went.
func TestAfterAKillersArmBeforeTheKillAllDead(t *testing.T) {
	w := newWorld(t)
	w.slot(large)
	w.RunDry()
	w.drop("large")
	w.cutAfter("ArmWatchers", 1)
	for range 3 {
		w.Clock.Advance(audittest.ReadGrace)
		w.reapOnce()
	}
	if got := w.Settled(); !slices.Equal(got, []string{largeKey}) || w.marked(catalog.DutyReapCheck) != 1 {
		t.Fatalf("objects %v, reap-checks %v: a ref names it", got, w.Markers(catalog.DutyReapCheck))
	}
	if in, told := w.Intents(), w.Audited("damage"); len(in)+len(told) != 0 {
		t.Errorf("it was condemned, and only the last look kept it: %+v, %+v", in, told)
	}
	w.converges()
	if got := w.Settled(); len(got) != 0 {
		t.Errorf("%v stand", got)
	}
}

// The unconfirmed all-dead probe: a confirmed marker one grace out. The confirmed probe
// verifies again before it deletes, and no sooner.
func TestAfterTheUnconfirmedAllDeadProbe(t *testing.T) {
	w := newWorld(t)
	w.slot(large, small)
	w.RunDry()
	w.drop("large")
	w.cutAfter("Confirm", 1)

	ms := w.Markers(catalog.DutyReapCheck)
	if len(ms) != 1 || !ms[0].Confirmed || !ms[0].Due.Equal(w.Clock.Now().Add(audittest.ReadGrace)) {
		t.Fatalf("reap-checks %+v: want one, confirmed, one grace out", ms)
	}
	if calls := w.reruns(); count(calls, "store delete settled") != 0 {
		t.Fatalf("deleted before the second look's grace: %v", calls)
	}
	w.Clock.Advance(audittest.ReadGrace)
	calls := w.reruns()
	look, del := slices.IndexFunc(calls, isCall("store get settled")), slices.IndexFunc(calls, isCall("store delete settled"))
	if look < 0 || del < look || slices.Index(calls, "Liveness") > del {
		t.Errorf("calls %v: want a second look, then the delete", calls)
	}
	w.converges()
	if got := w.Settled(); !slices.Equal(got, []string{packKey}) {
		t.Errorf("%v stand, want the pack", got)
	}
}

// The batch delete, before its markers resolve: markers over gone objects. The probe
// judges them gone, by our own hand, and resolves.
func TestAfterTheBatchDeleteBeforeItsMarkersResolve(t *testing.T) {
	w := newWorld(t)
	w.slot(large, audittest.Write{Stream: "large2", Rows: 40, Size: 400}, small)
	w.RunDry()
	w.drop("large", "large2")
	w.cutAfter("store delete settled", 1)

	if got := w.Settled(); !slices.Equal(got, []string{packKey}) || w.marked(catalog.DutyReapCheck) != 2 {
		t.Fatalf("%v stand, reap-checks %v: want two over gone objects", got, w.Markers(catalog.DutyReapCheck))
	}
	if calls := w.reruns(); count(calls, "store delete settled") != 0 || w.marked(catalog.DutyReapCheck) != 0 {
		t.Errorf("reap-checks %v, calls %v", w.Markers(catalog.DutyReapCheck), calls)
	}
	if rows := w.Audited("gone"); len(rows) != 0 {
		t.Errorf("our own delete was recorded as unexplained: %+v", rows)
	}
	w.converges()
}

// The rewritten-cursor CAS: the same standing markers. The cursor is derived again; a
// racing advance makes ours lose its compare-and-set and read again.
func TestAfterTheRewrittenCursorCAS(t *testing.T) {
	t.Run("cut", func(t *testing.T) {
		w := newWorld(t)
		w.slot(small)
		w.slot(small)
		w.cutAfter("AdvanceRewritten", 1)

		row, err := w.DB.Chain(t.Context(), w.Chain)
		w.Must(err)
		if row.Rewritten != 3 || row.Condemned != 1 || w.marked(catalog.DutyTrimCheck) != 1 {
			t.Fatalf("%+v, trim-checks %v", row, w.Markers(catalog.DutyTrimCheck))
		}
		w.converges()
		if row, err = w.DB.Chain(t.Context(), w.Chain); err != nil || row.Trimmed != 3 {
			t.Errorf("%+v (%v)", row, err)
		}
	})
	t.Run("raced", func(t *testing.T) {
		w := newWorld(t)
		w.slot(small)
		w.SettleAll()
		w.Clock.Advance(audittest.ReadGrace)
		ms := w.Take(catalog.DutyTrimCheck)
		f := &audittest.Faults{}
		raced, at := false, time.Time{}
		f.Hook = func(call string, after bool) {
			if call == "CondemnSlots" && !after && !raced {
				raced = true
				_, err := w.trimmer(&audittest.Faults{}).RunOnce(w.Ctx(), ms[0])
				w.Must(err)
				at = w.Clock.Now()
				w.Clock.Advance(time.Minute)
			}
		}
		f.Start()
		_, err := w.trimmer(f).RunOnce(t.Context(), ms[0])
		f.Heal()
		w.Must(err) // it reads again, and has nothing to do
		row, err := w.DB.Chain(t.Context(), w.Chain)
		w.Must(err)
		if !raced || row.Condemned != 2 || !row.CondemnedAt.Equal(at) || len(w.Slots()) != 1 {
			t.Fatalf("raced %t, %+v, slots %v: want them condemned once, by the other one", raced, row, w.Slots())
		}
		if ms := w.Markers(catalog.DutyTrimCheck); len(ms) != 1 || ms[0].Due.After(at.Add(audittest.ReadGrace)) {
			t.Errorf("trim-checks %v, want one due a grace after %v", ms, at)
		}
		w.converges()
	})
}

// An arm during a run is never lost: the marker that was taken stays due, whatever the
// run's end makes of it.
func TestArmDuringARun(t *testing.T) {
	w := newWorld(t)
	w.slot(large)
	w.RunDry()
	w.drop("large")
	w.walkOnce()
	w.Clock.Advance(audittest.ReadGrace)
	for _, phase := range []string{"Confirm", "CondemnKey"} {
		f, armed := &audittest.Faults{}, false
		f.Hook = func(call string, after bool) {
			if call == phase && !after && !armed {
				armed = true
				w.Must(w.DB.Arm(w.Ctx(), catalog.DutyReapCheck, largeKey, segment.ClassStandard, 0))
			}
		}
		f.Start()
		res := w.reaper(f).RunOnce(w.Ctx(), w.Take(catalog.DutyReapCheck))
		f.Heal()
		if ms := w.Markers(catalog.DutyReapCheck); !armed || len(ms) != 1 || ms[0].Confirmed || ms[0].Due.After(w.Clock.Now()) {
			t.Fatalf("%s: armed %t, %+v, markers %+v: want it due, and unconfirmed", phase, armed, res, ms)
		}
		if !slices.Equal(w.Settled(), []string{largeKey}) {
			t.Fatalf("%s: deleted", phase)
		}
		w.Clock.Advance(time.Second)
		w.reapOnce() // confirms
		w.Clock.Advance(audittest.ReadGrace)
	}
	w.converges()
	if got := w.Settled(); len(got) != 0 {
		t.Errorf("%v stand", got)
	}
}

// oneAPage makes a walk's pages one ref long.
type oneAPage struct{ catalog.Catalog }

func (c oneAPage) WalkStream(ctx context.Context, id int64, _ int) (catalog.WalkPage, error) {
	return c.Catalog.WalkStream(ctx, id, 1)
}

// A teardown walk mid-kill: some refs are gone, their reap-checks armed. The walk derives
// the rest from what stands; the watchers of a page came before any of its refs went.
func TestATeardownWalkMidKill(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.slot(large)
		w.RunDry()
	}
	w.slot(small)
	w.RunDry()
	w.drop("large")
	f := &audittest.Faults{Pick: audittest.Cut(2, isCall("RetireRefs"))}
	f.Start()
	classes := w.classesOn(f)
	walked := reap.NewWalker(oneAPage{f.Catalog(w.Tier)}, classes, orphan.NewDeleter(classes)).RunOnce(t.Context(), w.Take(catalog.DutyTeardown))
	f.Heal()

	_, left := w.refsIn()
	if f.Hit() == "" || len(walked) != 1 || walked[0].Err == nil || left != 2 {
		t.Fatalf("%+v, %d refs left: want one of three and the pack's", walked, left)
	}
	if w.marked(catalog.DutyReapCheck) != 2 || w.marked(catalog.DutyTeardown) != 1 || len(w.Settled()) != 4 {
		t.Fatalf("reap-checks %v, teardowns %v, objects %v", w.Markers(catalog.DutyReapCheck), w.Markers(catalog.DutyTeardown), w.Settled())
	}
	w.Must(w.Fsck(false)) // none is without a watcher
	w.Clock.Advance(2 * auditor.DefaultLease)
	w.converges()
	if got := w.Settled(); len(got) != 1 {
		t.Errorf("%v stand, want the pack", got)
	}
}

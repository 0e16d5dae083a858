package catalogtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
)

func take(duties ...catalog.Duty) catalog.Take {
	return catalog.Take{Duties: duties, Owner: "auditor-1", Lease: time.Minute, Limit: 10}
}

func (w *World) takeOne(d catalog.Duty) catalog.Marker {
	w.T.Helper()
	ms, err := w.C.TakeDue(w.Ctx, take(d))
	w.OK(err)
	Equal(w.T, "taken", len(ms), 1)
	return ms[0]
}

func testMarkers(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Is(w.C.Arm(w.Ctx, "", "k", "", 0), catalog.ErrInvalid, "")
	_, err := w.C.TakeDue(w.Ctx, catalog.Take{})
	w.Is(err, catalog.ErrInvalid, "")
	w.OK(w.C.Arm(w.Ctx, catalog.DutyGC, "k", "standard", time.Second))
	none, err := w.C.TakeDue(w.Ctx, take(catalog.DutyGC))
	w.OK(err)
	Equal(t, "nothing is due yet", len(none), 0)
	ahead := take(catalog.DutyGC)
	ahead.Ahead, ahead.Lease = time.Second, time.Millisecond
	some, err := w.C.TakeDue(w.Ctx, ahead)
	w.OK(err)
	Equal(t, "due within", len(some), 1)

	w.Clock.Advance(time.Second)
	m := w.takeOne(catalog.DutyGC)
	Equal(t, "class", m.Class, "standard")
	Equal(t, "lease owner", m.LeaseOwner, "auditor-1")
	again, err := w.C.TakeDue(w.Ctx, take(catalog.DutyGC))
	w.OK(err)
	Equal(t, "leased", len(again), 0)
	w.Clock.Advance(time.Minute) // the lease ran out
	m = w.takeOne(catalog.DutyGC)

	w.OK(w.C.Postpone(w.Ctx, m.MarkerRef, time.Hour, "bucket away"))
	w.OK(w.C.Postpone(w.Ctx, m.MarkerRef, time.Hour, "bucket away"))
	got, _ := w.Marker(catalog.DutyGC, "k")
	Equal(t, "attempts", got.Attempts, 2)
	Equal(t, "last error", got.LastError, "bucket away")
	Equal(t, "due", got.Due, w.Clock.Now().Add(time.Hour))
	Equal(t, "lease over", got.LeaseOwner, "")
	w.OK(w.C.Postpone(w.Ctx, m.MarkerRef, 0, ""))
	got, _ = w.Marker(catalog.DutyGC, "k")
	Equal(t, "attempts after a healthy one", got.Attempts, 0)

	w.OK(w.C.Resolve(w.Ctx, catalog.MarkerRef{Duty: catalog.DutyGC, ID: "k", Version: m.Version + 100}))
	if _, ok := w.Marker(catalog.DutyGC, "k"); !ok {
		t.Fatal("resolved at a version that never stood")
	}
	w.OK(w.C.Resolve(w.Ctx, m.MarkerRef))
	w.OK(w.C.Resolve(w.Ctx, m.MarkerRef)) // a lost answer
	if _, ok := w.Marker(catalog.DutyGC, "k"); ok {
		t.Fatal("not resolved")
	}
	// A version is never used again: who held the old marker does not resolve the new.
	w.OK(w.C.Arm(w.Ctx, catalog.DutyGC, "k", "", 0))
	w.OK(w.C.Resolve(w.Ctx, m.MarkerRef))
	if _, ok := w.Marker(catalog.DutyGC, "k"); !ok {
		t.Fatal("a marker was resolved by who held an earlier one of its id")
	}
	// A settle marker whose slot stands goes with its account only.
	w.Absorb("a:1")
	w.Is(w.C.Resolve(w.Ctx, w.SettleMarkers()[0]), catalog.ErrInvalid, "")
}

// testArmDuringRun: what was armed while a holder worked is never lost.
func testArmDuringRun(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for _, d := range []catalog.Duty{catalog.DutyGC, catalog.DutyReapCheck, catalog.DutyTrimCheck, catalog.DutyTeardown} {
		w.OK(w.C.Arm(w.Ctx, d, "k", "", 0))
		m := w.takeOne(d)
		w.OK(w.C.Arm(w.Ctx, d, "k", "", time.Second))
		w.OK(w.C.Resolve(w.Ctx, m.MarkerRef))
		got, ok := w.Marker(d, "k")
		if !ok || got.Version == m.Version {
			t.Fatalf("%s: arm lost: %+v", d, got)
		}
		Equal(t, "lease of the old version is over", got.LeaseOwner, "")
		w.OK(w.C.Postpone(w.Ctx, m.MarkerRef, time.Hour, "late"))
		after, _ := w.Marker(d, "k")
		Equal(t, "postpone at an old version moves nothing", after.Due, got.Due)
		want := w.Clock.Now().Add(time.Second)
		if d == catalog.DutyTrimCheck {
			want = w.Clock.Now() // keeps its own clock
		}
		Equal(t, string(d)+" due", got.Due, want)
	}
	// And who holds the new version keeps its lease when the old holder comes late.
	w.OK(w.C.Arm(w.Ctx, catalog.DutyGC, "x", "", 0))
	old := w.takeOne(catalog.DutyGC)
	w.OK(w.C.Arm(w.Ctx, catalog.DutyGC, "x", "", 0))
	w.Clock.Advance(time.Minute)
	ms, err := w.C.TakeDue(w.Ctx, take(catalog.DutyGC))
	w.OK(err)
	Equal(t, "taken at the new version", len(ms), 2)
	w.OK(w.C.Resolve(w.Ctx, old.MarkerRef))
	got, ok := w.Marker(catalog.DutyGC, "x")
	if !ok || got.LeaseOwner == "" {
		t.Fatalf("lease of the new holder lost: %+v", got)
	}
}

// testTakeRace: no marker is leased twice at once.
func testTakeRace(t *testing.T, open Open) {
	w := NewWorld(t, open)
	const n, clients = 200, 8
	for i := range n {
		w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, fmt.Sprint(i), "", 0))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			k := take(catalog.DutyReapCheck)
			k.Owner, k.Limit = fmt.Sprint(i), 7
			for {
				ms, err := w.C.TakeDue(w.Ctx, k)
				if err != nil {
					t.Errorf("take: %v", err)
				}
				if len(ms) == 0 {
					return
				}
				mu.Lock()
				for _, m := range ms {
					seen[m.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	Equal(t, "distinct", len(seen), n)
	for id, times := range seen {
		Equal(t, "leases of "+id, times, 1)
	}
}

func testTakeOrder(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for i, d := range []catalog.Duty{catalog.DutyGC, catalog.DutyReapCheck, catalog.DutyGC, catalog.DutyOrphan} {
		w.OK(w.C.Arm(w.Ctx, d, fmt.Sprint(i), "", time.Duration(4-i)*time.Second))
	}
	w.Clock.Advance(time.Minute)
	k := take(catalog.DutyGC, catalog.DutyReapCheck, catalog.DutyGC)
	k.Limit = 2
	ms, err := w.C.TakeDue(w.Ctx, k)
	w.OK(err)
	Equal(t, "taken", len(ms), 2)
	Equal(t, "earliest", ms[0].ID, "2")
	Equal(t, "second", ms[1].ID, "1")
	ms, err = w.C.TakeDue(w.Ctx, k)
	w.OK(err)
	Equal(t, "what the limit left", len(ms), 1)
	Equal(t, "its id", ms[0].ID, "0")
}

func testNextDue(t *testing.T, open Open) {
	w := NewWorld(t, open)
	duties := []catalog.Duty{catalog.DutyGC, catalog.DutyOrphan}
	_, ok, err := w.C.NextDue(w.Ctx, duties)
	w.OK(err)
	Equal(t, "none stands", ok, false)
	start := w.Clock.Now()
	w.OK(w.C.Arm(w.Ctx, catalog.DutyGC, "a", "", time.Second))
	w.OK(w.C.Arm(w.Ctx, catalog.DutyOrphan, "b", "", time.Hour))
	w.OK(w.C.Arm(w.Ctx, catalog.DutySweep, "c", "", 0))
	next := func(want time.Time) {
		t.Helper()
		due, ok, err := w.C.NextDue(w.Ctx, duties)
		w.OK(err)
		Equal(t, "stands", ok, true)
		Equal(t, "due", due, want)
	}
	next(start.Add(time.Second))
	w.Clock.Advance(2 * time.Second)
	w.takeOne(catalog.DutyGC)
	next(start.Add(2*time.Second + time.Minute)) // its lease's end, before the other's due
	w.OK(w.C.Arm(w.Ctx, catalog.DutyGC, "d", "", 3*time.Second))
	next(start.Add(5 * time.Second))
}

func testLeaseDuty(t *testing.T, open Open) {
	w := NewWorld(t, open)
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(w.Chain), Owner: "a"}
	other := h
	other.Owner = "b"
	w.Is(w.C.LeaseDuty(w.Ctx, catalog.Holder{}, time.Minute), catalog.ErrInvalid, "")
	w.OK(w.C.LeaseDuty(w.Ctx, h, time.Minute))
	w.OK(w.C.LeaseDuty(w.Ctx, h, time.Minute)) // renewed
	w.Is(w.C.LeaseDuty(w.Ctx, other, time.Minute), catalog.ErrConflict, "lease of "+catalog.Serves(h))
	w.OK(w.C.ReleaseDuty(w.Ctx, other)) // not its lease
	w.Is(w.C.LeaseDuty(w.Ctx, other, time.Minute), catalog.ErrConflict, "")
	w.Clock.Advance(time.Minute)
	w.OK(w.C.LeaseDuty(w.Ctx, other, time.Minute))
	w.Is(w.C.LeaseDuty(w.Ctx, h, time.Minute), catalog.ErrConflict, "")
	w.OK(w.C.ReleaseDuty(w.Ctx, other))
	w.OK(w.C.LeaseDuty(w.Ctx, h, time.Minute))
}

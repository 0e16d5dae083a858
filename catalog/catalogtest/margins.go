package catalogtest

import (
	"context"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
)

// testMargins: a margin that an operator changes is in force after one old grace, and
// until then each side goes by the careful one of the two.
func testMargins(t *testing.T, open Open) {
	clock := NewClock()
	w := &World{T: t, Ctx: context.Background(), C: open(t, Options{Clock: clock.Now}), Clock: clock}
	_, err := w.C.Init(w.Ctx, UUID(1))
	w.OK(err)
	for _, x := range []struct {
		name string
		set  func(context.Context, time.Duration) (catalog.Margin, error)
		seed func(context.Context, time.Duration) (catalog.Margin, error)
		get  func(catalog.Settings) catalog.Margin
		min  time.Duration
	}{
		{"read", w.C.SetReadGrace, w.C.SeedReadGrace, func(s catalog.Settings) catalog.Margin { return s.ReadGrace }, catalog.LeastReadGrace},
		{"orphan", w.C.SetOrphanGrace, w.C.SeedOrphanGrace, func(s catalog.Settings) catalog.Margin { return s.OrphanGrace }, catalog.LeastOrphanGrace},
	} {
		stands := func(deleting, reading time.Duration) {
			t.Helper()
			s, err := w.C.Settings(w.Ctx)
			w.OK(err)
			m := x.get(s)
			Equal(t, x.name+": deleters wait", m.Deleting(clock.Now(), 0), deleting)
			Equal(t, x.name+": readers rely on", m.Reading(clock.Now(), 0), reading)
		}
		_, err := x.set(w.Ctx, x.min-1)
		w.Is(err, catalog.ErrInvalid, "")
		_, err = x.set(w.Ctx, time.Minute) // nobody had set it
		w.OK(err)
		stands(time.Minute, time.Minute)
		m, err := x.seed(w.Ctx, time.Hour) // a flag only seeds
		w.OK(err)
		Equal(t, x.name+": seeded over a set one", m.Value, time.Minute)

		m, err = x.set(w.Ctx, time.Hour)
		w.OK(err)
		Equal(t, x.name+": effective", m.Effective, clock.Now().Add(time.Minute))
		Equal(t, x.name+": old", m.Old, time.Minute)
		stands(time.Hour, time.Minute)
		again, err := x.set(w.Ctx, time.Hour)
		w.OK(err)
		Equal(t, x.name+": the value that stands", again, m)
		_, err = x.set(w.Ctx, time.Minute) // nor back, before it is in force
		w.Is(err, catalog.ErrConflict, "change under way")
		clock.Advance(time.Minute)
		stands(time.Hour, time.Hour)
		_, err = x.set(w.Ctx, time.Minute)
		w.OK(err)
		stands(time.Hour, time.Minute)
		clock.Advance(time.Hour - 1)
		stands(time.Hour, time.Minute)
		clock.Advance(1)
		stands(time.Minute, time.Minute)
	}
}

// testMarginVerbs: the verbs that delete go by the margin of their own moment.
func testMarginVerbs(t *testing.T, open Open) {
	for name, x := range map[string]struct{ grace, wait time.Duration }{
		"raised: at once":                {3 * readGrace, 3 * readGrace},
		"lowered: after one old grace":   {readGrace / 5, readGrace},
		"lowered by little: likewise so": {readGrace - 1, readGrace},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(t, open)
			key := w.settledAndDead()
			_, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
			w.OK(err)
			_, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
			w.OK(err)
			trim, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
			_, err = w.C.CondemnSlots(w.Ctx, trim.MarkerRef, w.Chain, 1, 2)
			w.OK(err)
			reap, _ := w.Marker(catalog.DutyReapCheck, key)
			w.OK(w.C.Confirm(w.Ctx, reap.MarkerRef))
			reap, _ = w.Marker(catalog.DutyReapCheck, key)

			_, err = w.C.SetReadGrace(w.Ctx, x.grace)
			w.OK(err)
			p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a"})
			w.OK(err)
			Equal(t, "ttl of a plan", p.TTL, min(x.grace, readGrace)/2)
			w.Clock.Advance(x.wait - 1)
			w.Is(w.C.CondemnKey(w.Ctx, reap.MarkerRef), catalog.ErrConflict, "grace")
			_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 1, 2)
			w.Is(err, catalog.ErrConflict, "grace")
			w.Clock.Advance(1)
			w.OK(w.C.CondemnKey(w.Ctx, reap.MarkerRef))
			_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 1, 2)
			w.OK(err)
			p, err = w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a"})
			w.OK(err)
			Equal(t, "ttl of a plan then", p.TTL, x.grace/2)
		})
	}
}

package check_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// meanwhile runs act once, just before or just after the n-th call of the verbs of a
// walk that it counts: everything that others may do, between any two looks.
type meanwhile struct {
	check.Catalog
	at, n int
	after bool
	act   func()
	done  bool
}

// around surrounds one call.
func (m *meanwhile) around() func() {
	m.n++
	run := func(now bool) {
		if now && m.n == m.at && !m.done {
			m.done = true
			m.act()
		}
	}
	run(!m.after)
	return func() { run(m.after) }
}

func (m *meanwhile) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	defer m.around()()
	return m.Catalog.RefsByKey(ctx, after, limit)
}

func (m *meanwhile) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	defer m.around()()
	return m.Catalog.Liveness(ctx, key)
}

func (m *meanwhile) Intent(ctx context.Context, key string) (catalog.Intent, error) {
	defer m.around()()
	return m.Catalog.Intent(ctx, key)
}

func (m *meanwhile) MarkersOf(ctx context.Context, d catalog.Duty, after string, limit int) ([]catalog.Marker, error) {
	defer m.around()()
	return m.Catalog.MarkersOf(ctx, d, after, limit)
}

func (m *meanwhile) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	defer m.around()()
	return m.Catalog.Marker(ctx, d, id)
}

func (m *meanwhile) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	defer m.around()()
	return m.Catalog.Slots(ctx, c, from, limit)
}

func (m *meanwhile) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	defer m.around()()
	return m.Catalog.Plan(ctx, r)
}

func (m *meanwhile) Chains(ctx context.Context) ([]catalog.ChainRow, error) {
	defer m.around()()
	return m.Catalog.Chains(ctx)
}

// TestRaces: what settles, trims, reaps and absorbs do while a walk goes on, at any
// of its looks, is never a finding.
func TestRaces(t *testing.T) {
	for name, c := range map[string]struct {
		before, act func(x *tiertest.Tier)
		pending     bool // dead objects wait for the reap afterwards
	}{
		"absorb": {act: func(x *tiertest.Tier) { x.Slot(tiertest.Write{Stream: "new", Rows: 3, Size: 20}) }},
		"settle": {act: func(x *tiertest.Tier) { x.Settle(1) }},
		"settle and trim": {act: func(x *tiertest.Tier) {
			x.Settle(1 << 20)
			x.TrimSlots()
		}},
		"slots trimmed": {
			before: func(x *tiertest.Tier) { x.Settle(1); x.CondemnSlots() },
			act:    func(x *tiertest.Tier) { x.DeleteSlots() },
		},
		"stream deleted and reaped": {
			before: func(x *tiertest.Tier) { x.Settle(1); x.TrimSlots() },
			act:    func(x *tiertest.Tier) { deleteStream(x, "a"); reap(x) },
		},
		"stream deleted": {
			before:  func(x *tiertest.Tier) { x.Settle(1); x.TrimSlots() },
			act:     func(x *tiertest.Tier) { deleteStream(x, "a") },
			pending: true,
		},
		"reap": {
			before:  func(x *tiertest.Tier) { x.Settle(1); x.TrimSlots(); deleteStream(x, "a") },
			act:     reap,
			pending: true,
		},
		"gc": {
			before:  func(x *tiertest.Tier) { x.Settle(1 << 20); x.TrimSlots(); halfDead(x) },
			act:     func(x *tiertest.Tier) { serve(x, catalog.DutyGC) },
			pending: true,
		},
		"gc and reap": {
			before:  func(x *tiertest.Tier) { x.Settle(1 << 20); x.TrimSlots(); halfDead(x) },
			act:     func(x *tiertest.Tier) { serve(x, catalog.DutyGC); reap(x) },
			pending: true,
		},
		"gc of what died": {
			before: func(x *tiertest.Tier) {
				x.Settle(1)
				x.TrimSlots()
				unwatchedButByGC(x)
			},
			act:     func(x *tiertest.Tier) { serve(x, catalog.DutyGC) },
			pending: true,
		},
		"tail-fill": {
			before:  tails,
			act:     func(x *tiertest.Tier) { serve(x, catalog.DutyTailFill) },
			pending: true,
		},
		"tail-fill and reap": {
			before:  tails,
			act:     func(x *tiertest.Tier) { serve(x, catalog.DutyTailFill); reap(x) },
			pending: true,
		},
		"pack-merge": {
			before:  packs,
			act:     func(x *tiertest.Tier) { serve(x, catalog.DutyPackMerge) },
			pending: true,
		},
		"pack-merge and reap": {
			before:  packs,
			act:     func(x *tiertest.Tier) { serve(x, catalog.DutyPackMerge); reap(x) },
			pending: true,
		},
		"a new epoch": {act: func(x *tiertest.Tier) {
			_, err := x.Catalog.EnsureTopology(x.T.Context(), catalog.Topology{
				Epoch: 2, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
			})
			if err != nil {
				x.T.Fatal(err)
			}
			x.Put(segment.TopologyKey(2), nil)
			x.Put(segment.HeadKey(segment.Chain{Epoch: 2}), headOf(t, segment.Chain{Epoch: 2}))
			x.Put(segment.SlotKey(segment.Chain{Epoch: 2}, 1), nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				hit := false
				for _, after := range []bool{false, true} {
					x := tier(t)
					if c.before != nil {
						c.before(x)
					}
					m := &meanwhile{Catalog: x.Catalog, at: at, after: after, act: func() { c.act(x) }}
					r, err := check.Fsck(t.Context(), m, x.Classes, check.Config{Page: 2, Deep: at%2 == 0})
					if err != nil {
						t.Fatalf("at look %d: %v", at, err)
					}
					for _, g := range r.Garbage {
						if g.State != check.Pending || !c.pending && g.Key[:4] == "seg/" {
							t.Fatalf("at look %d: %+v", at, g)
						}
					}
					if r.DamageTotal > 0 || r.RottenTotal > 0 {
						t.Fatalf("at look %d: %+v %+v", at, r.Damage, r.Rotten)
					}
					hit = hit || m.done
				}
				if !hit {
					if at < 5 {
						t.Fatal("the walk was never raced")
					}
					return
				}
			}
		})
	}
}

// mover settles into objects and packs as x.Settle does, and merges two packs.
func mover(x *tiertest.Tier) *settle.Settler {
	x.T.Helper()
	s, err := settle.New(settle.Deps{
		Catalog: x.Catalog, Classes: x.Classes, Clock: x.Clock.Now, Logger: slog.New(slog.DiscardHandler),
		NewNonce: uuid.NewString, NewUUID: uuid.New,
	}, settle.Config{SettleAge: -1, SettleBytes: -1, StreamObjectMin: 1 << 20, PackFan: 2, SpoolDir: x.T.TempDir()})
	if err != nil {
		x.T.Fatal(err)
	}
	return s
}

// serve runs every marker of a duty of the mover.
func serve(x *tiertest.Tier, d catalog.Duty) {
	x.T.Helper()
	ms, err := x.Catalog.MarkersOf(x.T.Context(), d, "", 100)
	if err != nil || len(ms) == 0 {
		x.T.Fatalf("%d markers of %s, %v", len(ms), d, err)
	}
	for _, m := range ms {
		r, err := mover(x).RunMarker(x.T.Context(), m, "test")
		if err != nil || len(r.Failures) > 0 || r.Outputs == 0 && r.Idle != settle.IdleDead {
			x.T.Fatalf("%s: %+v, %v", d, r, err)
		}
	}
}

// halfDead has half of the pack's streams deleted, and a gc that is owed.
func halfDead(x *tiertest.Tier) {
	x.T.Helper()
	for _, name := range names[:3] {
		deleteStream(x, name)
	}
	arm(x, x.Keys(segment.KeyPack)[0])
}

func arm(x *tiertest.Tier, key string) {
	x.T.Helper()
	if err := x.Catalog.Arm(x.T.Context(), catalog.DutyGC, key, segment.ClassStandard, 0); err != nil {
		x.T.Fatal(err)
	}
}

// unwatchedButByGC has an object that only a gc watches.
func unwatchedButByGC(x *tiertest.Tier) {
	x.T.Helper()
	key := segment.StreamKey("a", 1, 1, 0)
	deleteStream(x, "a")
	arm(x, key)
	m, err := x.Catalog.Marker(x.T.Context(), catalog.DutyReapCheck, key)
	if err == nil {
		err = x.Catalog.Resolve(x.T.Context(), m.MarkerRef)
	}
	if err != nil {
		x.T.Fatal(err)
	}
}

// tails has a second object behind each stream's first.
func tails(x *tiertest.Tier) {
	x.T.Helper()
	x.Settle(1)
	x.Slot(tiertest.Write{Stream: "a", Rows: 6, Size: 50}, tiertest.Write{Stream: "z z", Rows: 6, Size: 50})
	x.Settle(1)
	x.TrimSlots()
}

// packs has two packs of one generation.
func packs(x *tiertest.Tier) {
	x.T.Helper()
	for range 2 {
		x.Slot(tiertest.Write{Stream: "a", Rows: 6, Size: 50}, tiertest.Write{Stream: "z z", Rows: 6, Size: 50})
		if r, err := mover(x).RunOnce(x.T.Context(), x.Chain, "test"); err != nil || len(r.Failures) > 0 {
			x.T.Fatalf("%+v %v", r, err)
		}
	}
	x.TrimSlots()
}

func deleteStream(x *tiertest.Tier, name string) {
	x.T.Helper()
	if _, err := x.Catalog.DeleteStream(x.T.Context(), name); err != nil {
		x.T.Fatal(err)
	}
	x.Walk(name)
}

// reap is the two phases for every reap-check that stands.
func reap(x *tiertest.Tier) {
	x.T.Helper()
	ctx := x.T.Context()
	must := func(err error) {
		x.T.Helper()
		if err != nil {
			x.T.Fatal(err)
		}
	}
	ms, err := x.Catalog.MarkersOf(ctx, catalog.DutyReapCheck, "", 100)
	must(err)
	for _, m := range ms {
		must(x.Catalog.Confirm(ctx, m.MarkerRef))
	}
	x.Clock.Advance(2 * tiertest.ReadGrace)
	ms, err = x.Catalog.MarkersOf(ctx, catalog.DutyReapCheck, "", 100)
	must(err)
	for _, m := range ms {
		must(x.Catalog.CondemnKey(ctx, m.MarkerRef))
		x.Delete(m.ID)
		must(x.Catalog.BurnKey(ctx, []string{m.ID}))
	}
}

// TestWalkAmongWriters: objects and refs that come after the walk passed their
// place in the order, real writers at once with the walk.
func TestWalkAmongWriters(t *testing.T) {
	x := tier(t)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			x.Slot(tiertest.Write{Stream: "a", Rows: 2, Size: 20}, tiertest.Write{Stream: "zz", Rows: 2, Size: 20})
			x.Settle(1)
			x.TrimSlots()
			x.Clock.Advance(time.Second)
		}
	})
	for range 20 {
		r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{Page: 2})
		if err != nil || r.Verdict != check.Clean {
			t.Errorf("%+v, %v", r, err)
			break
		}
	}
	close(stop)
	wg.Wait()
}

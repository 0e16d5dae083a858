package check_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
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
					r, err := check.Fsck(t.Context(), m, x.Classes, check.Config{Page: 2})
					if err != nil {
						t.Fatalf("at look %d: %v", at, err)
					}
					for _, g := range r.Garbage {
						if g.State != check.Pending || !c.pending && g.Key[:4] == "seg/" {
							t.Fatalf("at look %d: %+v", at, g)
						}
					}
					if r.DamageTotal > 0 {
						t.Fatalf("at look %d: %+v", at, r.Damage)
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

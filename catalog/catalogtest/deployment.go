package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func testSettings(t *testing.T, open Open) {
	clock := NewClock()
	w := &World{T: t, Ctx: context.Background(), C: open(t, Options{Clock: clock.Now}), Clock: clock}
	_, err := w.C.Settings(w.Ctx)
	w.Is(err, catalog.ErrNotFound, "")
	_, err = w.C.Init(w.Ctx, segment.UUID{})
	w.Is(err, catalog.ErrInvalid, "")
	s, err := w.C.Init(w.Ctx, UUID(1))
	w.OK(err)
	Equal(t, "deployment", s.Deployment, UUID(1))
	Equal(t, "seeded", s.ReadGrace.Seeded, false)
	s, err = w.C.Init(w.Ctx, UUID(2))
	w.OK(err)
	Equal(t, "a standing deployment", s.Deployment, UUID(1))

	_, err = w.C.SeedReadGrace(w.Ctx, catalog.LeastReadGrace-1)
	w.Is(err, catalog.ErrInvalid, "")
	_, err = w.C.SeedOrphanGrace(w.Ctx, catalog.LeastOrphanGrace-1)
	w.Is(err, catalog.ErrInvalid, "")
	for i, want := range []time.Duration{time.Minute, time.Hour} {
		m, err := w.C.SeedReadGrace(w.Ctx, want)
		w.OK(err)
		Equal(t, fmt.Sprintf("margin %d", i), m.Value, time.Minute)
		o, err := w.C.SeedOrphanGrace(w.Ctx, 2*want)
		w.OK(err)
		Equal(t, fmt.Sprintf("orphan margin %d", i), o.Value, 2*time.Minute)
	}
	s, err = w.C.Settings(w.Ctx)
	w.OK(err)
	Equal(t, "deleters wait", s.ReadGrace.Deleting(clock.Now(), catalog.DefaultReadGrace), time.Minute)
	now, err := w.C.Now(w.Ctx)
	w.OK(err)
	Equal(t, "clock", now, clock.Now())
}

func testTopology(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for _, bad := range []func(*catalog.Topology){
		func(r *catalog.Topology) { r.Epoch = 0 }, func(r *catalog.Topology) { r.Shards = 0 }, func(r *catalog.Topology) { r.Shards = catalog.MaxShards + 1 },
		func(r *catalog.Topology) { r.Class = "" }, func(r *catalog.Topology) { r.Buckets = nil }, func(r *catalog.Topology) { r.State = "ajar" },
	} {
		r := topology(7, true)
		bad(&r)
		_, err := w.C.EnsureTopology(w.Ctx, r)
		w.Is(err, catalog.ErrInvalid, "")
	}
	for _, differs := range []func(*catalog.Topology){
		func(r *catalog.Topology) { r.Shards = 3 }, func(r *catalog.Topology) { r.Class = "other" },
		func(r *catalog.Topology) { r.Buckets = []string{"b2", "b1"} }, func(r *catalog.Topology) { r.Settle = false },
	} {
		r := topology(1, true)
		differs(&r)
		_, err := w.C.EnsureTopology(w.Ctx, r)
		w.Is(err, catalog.ErrConflict, "constants of epoch 1")
	}
	same := topology(1, true)
	same.State = catalog.TopologyClosed
	got, err := w.C.EnsureTopology(w.Ctx, same)
	w.OK(err)
	Equal(t, "state that stands", got.State, catalog.TopologyOpen)
	_, err = w.C.EnsureTopology(w.Ctx, topology(2, false))
	w.OK(err)
	all, err := w.C.Topologies(w.Ctx)
	w.OK(err)
	Equal(t, "topologies", len(all), 2)
	Equal(t, "settle of the second", all[1].Settle, false)
	if !slices.Equal(all[0].Buckets, []string{"b1", "b2"}) {
		t.Fatalf("buckets %q", all[0].Buckets)
	}
	chains, err := w.C.Chains(w.Ctx)
	w.OK(err)
	Equal(t, "chains", len(chains), 4)
	r := chains[3]
	Equal(t, "fourth chain", r.Chain, segment.Chain{Epoch: 2, Shard: 1})
	if r.AbsorbedEnd != 1 || r.Rewritten != 1 || r.Condemned != 1 || r.Trimmed != 1 || r.NextSeq != 1 || r.TrimJournal != 1 || r.Term != 0 {
		t.Fatalf("fresh chain %+v", r)
	}
	_, err = w.C.Chain(w.Ctx, segment.Chain{Epoch: 9})
	w.Is(err, catalog.ErrNotFound, "")
}

func testAuditors(t *testing.T, open Open) {
	w := NewWorld(t, open)
	_, err := w.C.RegisterAuditor(w.Ctx, "", time.Minute)
	w.Is(err, catalog.ErrInvalid, "")
	for i, id := range []string{"a", "b", "a"} {
		live, err := w.C.RegisterAuditor(w.Ctx, id, time.Minute)
		w.OK(err)
		Equal(t, "live auditors", live, min(i+1, 2))
	}
	w.Clock.Advance(time.Minute)
	live, err := w.C.RegisterAuditor(w.Ctx, "b", time.Minute)
	w.OK(err)
	Equal(t, "live auditors after a lease ran out", live, 1)
}

func testAudit(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for i := range 5 {
		w.OK(w.C.Audit(w.Ctx, "damage", fmt.Sprint(i), "d"))
	}
	rows, err := w.C.AuditRows(w.Ctx, 0, 3)
	w.OK(err)
	Equal(t, "page", len(rows), 3)
	rest, err := w.C.AuditRows(w.Ctx, rows[2].Seq, 10)
	w.OK(err)
	Equal(t, "rest", len(rest), 2)
	Equal(t, "subject", rest[1].Subject, "4")
	Equal(t, "time", rest[1].Time, w.Clock.Now())
}

func testAcquire(t *testing.T, open Open) {
	w := NewWorld(t, open) // owner 1 has term 1
	acquire := func(change func(*catalog.Acquire)) (catalog.ChainRow, error) {
		a := catalog.Acquire{Chain: w.Chain, Owner: UUID(2), Address: "b:1", Lease: leaseTime, Expect: 1}
		change(&a)
		return w.C.AcquireChain(w.Ctx, a)
	}
	for _, c := range []struct {
		name, guard string
		kind        error
		change      func(*catalog.Acquire)
	}{
		{"no owner", "", catalog.ErrInvalid, func(a *catalog.Acquire) { a.Owner = segment.UUID{} }},
		{"no lease", "", catalog.ErrInvalid, func(a *catalog.Acquire) { a.Lease = 0 }},
		{"no chain", "", catalog.ErrNotFound, func(a *catalog.Acquire) { a.Epoch = 5 }},
		{"old term", "term", catalog.ErrConflict, func(a *catalog.Acquire) { a.Expect = 0; a.Steal = true }},
		{"term ahead", "term", catalog.ErrConflict, func(a *catalog.Acquire) { a.Expect = 2; a.Steal = true }},
		{"lease lives", "lease", catalog.ErrConflict, func(*catalog.Acquire) {}},
		{"resume of another's", "owner", catalog.ErrConflict, func(a *catalog.Acquire) { a.Resume = true; a.Steal = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := acquire(c.change)
			(&World{T: t}).Is(err, c.kind, c.guard)
			Equal(t, "term unchanged", w.Row().Term, 1)
		})
	}
	row, err := acquire(func(a *catalog.Acquire) { a.Owner, a.Resume = w.Owner, true })
	w.OK(err)
	Equal(t, "term after resume", row.Term, 2)
	row, err = acquire(func(a *catalog.Acquire) { a.Expect, a.Steal = 2, true })
	w.OK(err)
	Equal(t, "term after steal", row.Term, 3)
	Equal(t, "owner after steal", row.Owner, UUID(2))
	w.Clock.Advance(leaseTime)
	row, err = acquire(func(a *catalog.Acquire) { a.Owner, a.Expect = UUID(3), 3 })
	w.OK(err)
	Equal(t, "term after the lease's end", row.Term, 4)
	terms, err := w.C.Terms(w.Ctx, w.Chain)
	w.OK(err)
	Equal(t, "terms", len(terms), 4)
	for i, o := range []segment.UUID{UUID(1), UUID(1), UUID(2), UUID(3)} {
		Equal(t, "owner of term", terms[i].Owner, o)
		Equal(t, "term not begun", terms[i].First, 0)
	}
}

func testLease(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Clock.Advance(time.Minute)
	row, err := w.C.RenewChain(w.Ctx, w.Chain, w.Owner, w.Term, leaseTime)
	w.OK(err)
	Equal(t, "lease end", row.LeaseEnd, w.Clock.Now().Add(leaseTime))
	_, err = w.C.RenewChain(w.Ctx, w.Chain, UUID(2), w.Term, leaseTime)
	w.Is(err, catalog.ErrFenced, "owner and term")
	_, err = w.C.RenewChain(w.Ctx, w.Chain, w.Owner, w.Term+1, leaseTime)
	w.Is(err, catalog.ErrFenced, "owner and term")
	w.Is(w.C.ReleaseChain(w.Ctx, w.Chain, UUID(2), w.Term), catalog.ErrFenced, "owner and term")
	w.OK(w.C.ReleaseChain(w.Ctx, w.Chain, w.Owner, w.Term))
	row = w.Row()
	Equal(t, "owner stays", row.Owner, w.Owner)
	_, err = w.C.AcquireChain(w.Ctx, catalog.Acquire{Chain: w.Chain, Owner: UUID(2), Lease: leaseTime, Expect: w.Term})
	w.OK(err)
	_, err = w.C.RenewChain(w.Ctx, w.Chain, w.Owner, w.Term, leaseTime)
	w.Is(err, catalog.ErrFenced, "owner and term")
}

// testAcquireRace: of sixteen that saw the same term, one wins each round.
func testAcquireRace(t *testing.T, open Open) {
	w := NewWorld(t, open)
	const clients, rounds = 16, 20
	for round := range rounds {
		wins := make([]bool, clients)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				_, err := w.C.AcquireChain(w.Ctx, catalog.Acquire{Chain: w.Chain, Owner: UUID(uint64(i) + 10), Lease: leaseTime, Expect: segment.Term(round + 1), Steal: true})
				wins[i] = err == nil
				if err != nil && !errors.Is(err, catalog.ErrConflict) {
					t.Errorf("loser got %v", err)
				}
			})
		}
		wg.Wait()
		won := 0
		for i, ok := range wins {
			if ok {
				won++
				Equal(t, "owner", w.Row().Owner, UUID(uint64(i)+10))
			}
		}
		Equal(t, "winners", won, 1)
	}
	Equal(t, "term", w.Row().Term, rounds+1)
}

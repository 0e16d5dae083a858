package auditor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/internal/verbs"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// gateWorld is a gate before a catalog with two chains and the least read grace.
type gateWorld struct {
	t     *testing.T
	db    *memory.Catalog
	store *objstore.Store
	now   time.Time
	calls map[string]int
	after func(verb string) // a verb was made; nil: nothing happens
	gate  *gate
}

func newGateWorld(t *testing.T) *gateWorld {
	w := &gateWorld{t: t, now: time.Unix(1_700_000_000, 0), calls: map[string]int{}}
	clock := func() time.Time { return w.now }
	w.db = memory.New(memory.Options{Clock: clock})
	_, err := w.db.Init(t.Context(), segment.UUID{1})
	w.must(err)
	_, err = w.db.SeedReadGrace(t.Context(), catalog.LeastReadGrace)
	w.must(err)
	_, err = w.db.EnsureTopology(t.Context(), catalog.Topology{
		Epoch: 1, Shards: 2, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	w.must(err)
	w.acquire(0, 0)
	w.acquire(1, 0)
	w.store, err = objstore.New(memstore.New(memstore.Options{}), objstore.Config{})
	w.must(err)
	cat := verbs.Around(w.db, func(ctx context.Context, v verbs.Verb, do func(context.Context) error) error {
		w.calls[v.Name]++
		err := do(ctx)
		if w.after != nil {
			w.after(v.Name)
		}
		return err
	})
	w.gate = newGate(cat, objstore.Classes{string(segment.ClassStandard): {w.store}}, clock)
	return w
}

func (w *gateWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *gateWorld) acquire(shard segment.Shard, term segment.Term) {
	w.t.Helper()
	_, err := w.db.AcquireChain(w.t.Context(), catalog.Acquire{
		Chain: segment.Chain{Epoch: 1, Shard: shard}, Owner: segment.UUID{7}, Address: "a", Lease: time.Minute, Expect: term, Resume: term > 0,
	})
	w.must(err)
}

// TestLookOfOneSession: a fail-over between two heads of a look. Those that were held against rows
// of before say nothing of the rows behind it, so it is begun again, and meets the first head.
func TestLookOfOneSession(t *testing.T) {
	w := newGateWorld(t)
	old := w.db.Snapshot()
	w.acquire(0, 1)
	_, err := reap.WriteHead(t.Context(), w.store, w.db, segment.Chain{Epoch: 1})
	w.must(err)
	w.after = func(verb string) {
		if verb == "Chain" && w.calls[verb] == 1 {
			w.db.Restore(old)
		}
	}
	if err := w.gate.open(t.Context()); !errors.Is(err, catalog.ErrRolledBack) || w.calls["Session"] != 2 {
		t.Errorf("a look with a fail-over in it: %v, %d looks", err, w.calls["Session"])
	}
}

// TestLookIsBelievedForAShareOfTheGrace, and for no longer: a catalog that goes back without a
// sign may lose less than one grace.
func TestLookIsBelievedForAShareOfTheGrace(t *testing.T) {
	w := newGateWorld(t)
	share := catalog.LeastReadGrace / headsFreshShare
	if share >= headsFresh {
		t.Fatalf("%v is no bound beside %v", share, headsFresh)
	}
	for _, c := range []struct {
		pass  time.Duration
		looks int
	}{{0, 1}, {share - 1, 1}, {1, 2}, {-share, 3}} { // at last the clock is set back
		w.now = w.now.Add(c.pass)
		w.must(w.gate.open(t.Context()))
		if w.calls["Session"] != c.looks {
			t.Errorf("%v later: %d looks, want %d", c.pass, w.calls["Session"], c.looks)
		}
	}
}

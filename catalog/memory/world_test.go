package memory

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/segment"
)

// world is the suite's world on this catalog.
type world struct {
	*catalogtest.World
	mem *Catalog
}

func newWorld(t *testing.T, skip ...Guard) *world {
	t.Helper()
	w := &world{}
	w.World = catalogtest.NewWorld(t, func(t *testing.T, o catalogtest.Options) catalog.Catalog {
		w.mem = New(Options{Clock: o.Clock, Skip: skipping(skip...)})
		t.Cleanup(func() { checkIndexes(t, w.mem) })
		return w.mem
	})
	return w
}

func skipping(guards ...Guard) map[Guard]bool {
	out := map[Guard]bool{}
	for _, g := range guards {
		out[g] = true
	}
	return out
}

var testChain = segment.Chain{Epoch: 1}

func uuidOf(n uint64) (u segment.UUID) {
	binary.BigEndian.PutUint64(u[8:], n)
	return u
}

// prepareChain makes an epoch of one shard, and an owner of its chain.
func prepareChain(tb testing.TB, c catalog.Catalog) {
	tb.Helper()
	ctx := context.Background()
	if _, err := c.EnsureTopology(ctx, catalog.Topology{
		Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"b"}, Settle: true, State: catalog.TopologyOpen,
	}); err != nil {
		tb.Fatal(err)
	}
	if _, err := c.AcquireChain(ctx, catalog.Acquire{Chain: testChain, Owner: uuidOf(8), Lease: time.Hour}); err != nil {
		tb.Fatal(err)
	}
}

package catalogbench

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

const (
	streams     = 10_000 // that rows scatter over
	largeSlot   = 10_000 // refs; one row each into every stream
	smallSlot   = 1_000  // refs; one row each into every tenth stream
	deepRefs    = 1_000  // of the one stream that is planned
	shards      = 16     // as many as clients that renew
	refsAMarker = 50
	leastMarker = 5_000 // so that no round runs out of due ones
	armBatch    = 1_000
	class       = segment.ClassStandard
	deepStream  = "deep"
)

// owner holds every chain.
var owner = uuidOf(1)

// uuidOf is the n-th UUID.
func uuidOf(n uint64) (u segment.UUID) {
	binary.BigEndian.PutUint64(u[8:], n)
	u[6], u[8] = 0x70, 0x80 // version 7
	return u
}

// chain writes slots onto shard 0.
type chain struct {
	segment.Chain
	cat  catalog.Catalog
	next uint64
	seq  segment.Seq
	last segment.UUID
	log  logger // nil: the database's log is not one of pages
}

// logger tells how many pages SQLite's log holds.
type logger interface {
	LogPages(ctx context.Context) (int, error)
}

// logged is the log's length in pages, 0 where there is none.
func (c *chain) logged(ctx context.Context) (int, error) {
	if c.log == nil {
		return 0, nil
	}
	return c.log.LogPages(ctx)
}

// found makes the deployment, and acquires every chain.
func found(ctx context.Context, cat catalog.Catalog) (*chain, error) {
	if _, err := cat.Init(ctx, uuidOf(2)); err != nil {
		return nil, err
	}
	_, err := cat.EnsureTopology(ctx, catalog.Topology{Epoch: 1, Shards: shards, Class: class, Buckets: []string{"bench"}, Settle: true, State: catalog.TopologyOpen})
	if err != nil {
		return nil, err
	}
	for shard := range segment.Shard(shards) {
		_, err := cat.AcquireChain(ctx, catalog.Acquire{Chain: segment.Chain{Epoch: 1, Shard: shard}, Owner: owner, Address: "bench", Lease: 24 * time.Hour})
		if err != nil {
			return nil, err
		}
	}
	return &chain{Chain: segment.Chain{Epoch: 1}, cat: cat, next: 1, seq: 1}, nil
}

// scattered is a slot of refs, each of another stream: evenly over all of them, in their
// order, and from one slot to the next over others.
func (c *chain) scattered(refs, turn int) catalog.Absorb {
	step := streams / refs
	return c.slot(refs, func(i int) string { return fmt.Sprintf("stream-%07d", i*step+turn%step) })
}

// slot is the chain's next one: refs of a row each.
func (c *chain) slot(refs int, stream func(i int) string) catalog.Absorb {
	id := segment.ID(c.next)
	a := catalog.Absorb{
		Slot: catalog.SlotRow{
			Chain: c.Chain, ID: id, First: c.seq, Next: c.seq + segment.Seq(refs), Bytes: int64(refs) * 900,
			UUID: uuidOf(1000 + c.next), Prev: c.last, Digest: c.next, Term: 1, Sealed: time.Unix(1_790_000_000, 0),
		},
		Key: segment.SlotKey(c.Chain, id), Class: class, CallerOwner: owner, CallerTerm: 1, Refs: make([]catalog.Ref, refs),
	}
	for i := range a.Refs {
		seq := c.seq + segment.Seq(i)
		at := 1_790_000_000_000_000_000 + int64(seq)
		a.Refs[i] = catalog.Ref{
			Stream: stream(i), Chain: c.Chain, First: seq, Last: seq, Kind: catalog.RefSlot, Revision: -1,
			Chunks: 1, Offset: int64(i) * 900, Stored: 700, Raw: 900, Codec: 1, CRC: 0xdeadbeef, Sum: 0x123456789abcdef0 + uint64(i),
			Rows: 1, RowSum: uint64(seq) * 0x9e3779b97f4a7c15, Bytes: 900, MinTime: at, MaxTime: at,
		}
	}
	return a
}

// absorb has the catalog take a slot, and says how long that took.
func (c *chain) absorb(ctx context.Context, a catalog.Absorb) (time.Duration, error) {
	began := time.Now()
	got, err := c.cat.AbsorbSlot(ctx, a)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	if got.Inserted != len(a.Refs) {
		return 0, fmt.Errorf("AbsorbSlot inserted %d of %d refs", got.Inserted, len(a.Refs))
	}
	c.next, c.seq, c.last = c.next+1, a.Slot.Next, a.Slot.UUID
	return took, nil
}

// fill brings the chain to so many refs, and 1,000 of one stream.
func (c *chain) fill(ctx context.Context, refs int) (time.Duration, error) {
	var all time.Duration
	for left := refs; left > 0; left -= largeSlot {
		took, err := c.absorb(ctx, c.scattered(min(left, largeSlot), 0))
		if err != nil {
			return 0, fmt.Errorf("filling: %w", err)
		}
		all += took
	}
	if _, err := c.absorb(ctx, c.slot(deepRefs, func(int) string { return deepStream })); err != nil {
		return 0, err
	}
	return all, arm(ctx, c.cat, max(refs/refsAMarker, leastMarker))
}

// arm makes reap-checks, due one grace out: what a teardown of as many objects leaves.
func arm(ctx context.Context, cat catalog.Catalog, markers int) error {
	for at := 0; at < markers; at += armBatch {
		refs := make([]catalog.Ref, min(armBatch, markers-at))
		for i := range refs {
			id := segment.ID(1_000_000_000 + at + i)
			refs[i] = catalog.Ref{Kind: catalog.RefPack, Class: class, Key: segment.PackKey(segment.Chain{Epoch: 1}, id, id, 0)}
		}
		if err := cat.ArmWatchers(ctx, refs); err != nil {
			return fmt.Errorf("arming markers: %w", err)
		}
	}
	return nil
}

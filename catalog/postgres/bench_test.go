package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/pgserver"
	"github.com/strandline/strandline/segment"
)

var testChain = segment.Chain{Epoch: 1}

func uuidOf(n uint64) (u segment.UUID) {
	binary.BigEndian.PutUint64(u[8:], n)
	return u
}

// prepareChain makes an epoch of a few shards, and an owner of each chain.
func prepareChain(tb testing.TB, c catalog.Catalog) {
	tb.Helper()
	ctx := context.Background()
	if _, err := c.EnsureTopology(ctx, catalog.Topology{
		Epoch: 1, Shards: 4, Class: segment.ClassStandard, Buckets: []string{"b"}, Settle: true, State: catalog.TopologyOpen,
	}); err != nil {
		tb.Fatal(err)
	}
	for s := range segment.Shard(4) {
		if _, err := c.AcquireChain(ctx, catalog.Acquire{Chain: segment.Chain{Epoch: 1, Shard: s}, Owner: uuidOf(8), Lease: time.Hour}); err != nil {
			tb.Fatal(err)
		}
	}
}

// slotOf is the i-th slot of a chain, with a row of each of n streams.
func slotOf(c segment.Chain, i uint64, n int) catalog.Absorb {
	base := segment.Seq((i-1)*uint64(n) + 1)
	a := catalog.Absorb{
		Slot: catalog.SlotRow{
			Chain: c, ID: segment.ID(i), First: base, Next: base + segment.Seq(n), Bytes: 1000,
			UUID: uuidOf(100 + i), Term: 1, Sealed: time.Unix(1, 0),
		},
		Key: segment.SlotKey(c, segment.ID(i)), Class: segment.ClassStandard,
	}
	if i > 1 {
		a.Slot.Prev = uuidOf(99 + i)
	}
	for s := range n {
		at := base + segment.Seq(s)
		a.Refs = append(a.Refs, catalog.Ref{
			Stream: fmt.Sprintf("stream-%d-%06d", c.Shard, s), Chain: c, First: at, Last: at, Kind: catalog.RefSlot, Revision: -1,
			Chunks: 1, Rows: 1, Bytes: 100, Offset: 1 << 20, Stored: 70, Raw: 100, CRC: 0xdeadbeef, Sum: 1 << 60, RowSum: 1 << 61, MinTime: 1, MaxTime: 2,
		})
	}
	return a
}

// filled is a catalog with slots of one row for each of n streams.
func filled(tb testing.TB, slots uint64, n int) *DB {
	tb.Helper()
	d := openWith(tb, Options{DSN: pgserver.Start(tb, pgserver.Options{}).NewDatabase(tb)})
	prepareChain(tb, d)
	for i := uint64(1); i <= slots; i++ {
		if _, err := d.AbsorbSlot(context.Background(), slotOf(testChain, i, n)); err != nil {
			tb.Fatal(err)
		}
	}
	return d
}

// BenchmarkAbsorbSlot: one ref into each of as many streams, in one durable transaction,
// against a bare COPY of the same rows into a table of the same shape.
func BenchmarkAbsorbSlot(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("refs=%d", n), func(b *testing.B) {
			d := filled(b, uint64(20_000/n), n)
			slot := uint64(20_000 / n)
			b.Run("absorb", func(b *testing.B) {
				for b.Loop() {
					slot++
					if _, err := d.AbsorbSlot(context.Background(), slotOf(testChain, slot, n)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "rows/s")
			})
			b.Run("copy", func(b *testing.B) { copyBare(b, d, n) })
		})
	}
}

func copyBare(b *testing.B, d *DB, n int) {
	ctx := context.Background()
	if _, err := d.pool.Exec(ctx, "CREATE TABLE bare (LIKE ref INCLUDING ALL)"); err != nil {
		b.Fatal(err)
	}
	slot := uint64(0)
	for b.Loop() {
		slot++
		a := slotOf(testChain, slot, n)
		rows := make([][]any, n)
		for i := range a.Refs {
			r := &a.Refs[i]
			rows[i] = []any{
				int64(i), int64(r.First), int64(r.Last), int64(slot), int64(0), r.Offset, r.Stored, r.Raw, int64(r.Sum),
				int64(1), int64(r.RowSum), r.Bytes, r.MinTime, r.MaxTime, int64(1), int32(1), int32(0), int32(1), int32(r.CRC), int16(0),
			}
		}
		if _, err := d.pool.CopyFrom(ctx, pgx.Identifier{"bare"}, refColumns, pgx.CopyFromRows(rows)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "rows/s")
}

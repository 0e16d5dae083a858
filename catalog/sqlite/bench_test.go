package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// filled is a catalog with n refs: slots of one row for each of 1,000 streams.
func filled(b *testing.B, n int) (*DB, uint64) {
	b.Helper()
	d := openAt(b, filepath.Join(b.TempDir(), "catalog.db"), nil)
	prepareChain(b, d)
	const streams = 1000
	absorbN(b, d, n/streams, streams)
	return d, uint64(n / streams)
}

func sizes(b *testing.B, run func(b *testing.B, n int)) {
	b.Helper()
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("refs=%d", n), func(b *testing.B) {
			if n > 100_000 && os.Getenv("CATALOG_BENCH_LARGE") == "" {
				b.Skip("set CATALOG_BENCH_LARGE for a million refs")
			}
			run(b, n)
		})
	}
}

func perSecond(b *testing.B, what string, n int) {
	b.Helper()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), what+"/s")
}

// BenchmarkAbsorbSlot: 1,000 refs into 1,000 different streams, in one durable
// transaction.
func BenchmarkAbsorbSlot(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		d, slots := filled(b, n)
		ctx := context.Background()
		b.ReportAllocs()
		rows := 0
		for b.Loop() {
			slots++
			if _, err := d.AbsorbSlot(ctx, slotOf(slots, 1000, 1)); err != nil {
				b.Fatal(err)
			}
			rows += 1000
		}
		perSecond(b, "rows", rows)
		st, err := os.Stat(d.opt.Path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(st.Size())/float64(slots*1000), "B/ref")
	})
}

// BenchmarkCommitRewrite: a window of ten slots becomes one pack of 1,000 members.
func BenchmarkCommitRewrite(b *testing.B) {
	d := openAt(b, filepath.Join(b.TempDir(), "catalog.db"), nil)
	prepareChain(b, d)
	ctx := context.Background()
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(testChain), Owner: "a"}
	if err := d.LeaseDuty(ctx, h, 24*time.Hour); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	refs := 0
	for slot := uint64(0); b.Loop(); {
		b.StopTimer()
		for range 10 {
			slot++
			if _, err := d.AbsorbSlot(ctx, slotOf(slot, 1000, 1)); err != nil {
				b.Fatal(err)
			}
		}
		w, err := d.Window(ctx, testChain, 1<<40)
		if err != nil {
			b.Fatal(err)
		}
		r := packOf(b, d, h, &w)
		b.StartTimer()
		if _, err := d.CommitRewrite(ctx, r); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		refs += len(w.Refs)
		var ms []catalog.MarkerRef
		for _, s := range w.Slots {
			ms = append(ms, s.Marker.MarkerRef)
		}
		if n, err := d.ResolveSettled(ctx, testChain, ms); err != nil || n != len(ms) {
			b.Fatal(n, err)
		}
		b.StartTimer()
	}
	perSecond(b, "refs", refs)
}

// packOf announces a pack of the whole window, and describes its commit.
func packOf(b *testing.B, d *DB, h catalog.Holder, w *catalog.Window) catalog.Rewrite {
	b.Helper()
	key := segment.PackKey(testChain, w.Slots[0].ID, w.Slots[len(w.Slots)-1].ID, 0)
	if _, err := d.Announce(context.Background(), catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: h, Nonce: "n", Deadline: time.Minute}); err != nil {
		b.Fatal(err)
	}
	r := catalog.Rewrite{Key: key, Nonce: "n"}
	for i := 0; i < len(w.Refs); {
		j := i
		n := w.Refs[i]
		for j++; j < len(w.Refs) && w.Refs[j].StreamID == n.StreamID; j++ {
			n.Last, n.Rows, n.RowSum, n.Bytes = w.Refs[j].Last, n.Rows+w.Refs[j].Rows, n.RowSum+w.Refs[j].RowSum, n.Bytes+w.Refs[j].Bytes
		}
		n.Key, n.Kind, n.Class, n.Revision = key, catalog.RefPack, segment.ClassStandard, 0
		r.Runs = append(r.Runs, catalog.Run{Expect: w.Refs[i:j], New: n})
		i = j
	}
	return r
}

// BenchmarkPlan: 1,000 refs of one stream.
func BenchmarkPlan(b *testing.B) {
	d := openAt(b, filepath.Join(b.TempDir(), "catalog.db"), nil)
	prepareChain(b, d)
	absorbN(b, d, 2000, 10)
	ctx := context.Background()
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		p, err := d.Plan(ctx, catalog.PlanRequest{Stream: "stream-0000003", From: segment.Pos{Epoch: 1, Seq: 5000}, Limit: 1000})
		if err != nil || len(p.Refs) != 1000 {
			b.Fatal(len(p.Refs), err)
		}
		rows += 1000
	}
	perSecond(b, "refs", rows)
}

// BenchmarkLiveness: an object that 1,000 refs name.
func BenchmarkLiveness(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		d, _ := filled(b, n)
		ctx := context.Background()
		b.ReportAllocs()
		rows := 0
		for b.Loop() {
			l, err := d.Liveness(ctx, segment.SlotKey(testChain, 3))
			if err != nil || len(l) != 1000 {
				b.Fatal(len(l), err)
			}
			rows += 1000
		}
		perSecond(b, "refs", rows)
	})
}

// BenchmarkTakeDue: 1,000 of 100,000 due markers.
func BenchmarkTakeDue(b *testing.B) {
	d := openAt(b, filepath.Join(b.TempDir(), "catalog.db"), nil)
	ctx := context.Background()
	if err := d.write(ctx, "fill", func(t *tx) error {
		ms := make([]catalog.Armed, 100_000)
		for i := range ms {
			ms[i] = catalog.Armed{ID: fmt.Sprintf("obj/%07d", i), Class: "standard"}
		}
		return t.armAll(catalog.DutyReapCheck, ms, 0)
	}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		ms, err := d.TakeDue(ctx, catalog.Take{Duties: []catalog.Duty{catalog.DutyReapCheck, catalog.DutyOrphan}, Owner: "a", Lease: time.Nanosecond, Limit: 1000})
		if err != nil || len(ms) != 1000 {
			b.Fatal(len(ms), err)
		}
		rows += 1000
	}
	perSecond(b, "markers", rows)
}

// BenchmarkCompareAndSet: 16 clients renew leases of their own chains.
func BenchmarkCompareAndSet(b *testing.B) {
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			d := openAt(b, filepath.Join(b.TempDir(), "catalog.db"), nil)
			prepareChain(b, d)
			var ops atomic.Int64
			b.SetParallelism(max(1, clients/2)) // two processors
			b.ReportAllocs()
			if clients == 1 {
				for b.Loop() {
					if _, err := d.RenewChain(context.Background(), testChain, uuidOf(8), 1, time.Hour); err != nil {
						b.Fatal(err)
					}
					ops.Add(1)
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := d.RenewChain(context.Background(), testChain, uuidOf(8), 1, time.Hour); err != nil {
							b.Error(err)
						}
						ops.Add(1)
					}
				})
			}
			perSecond(b, "ops", int(ops.Load()))
		})
	}
}

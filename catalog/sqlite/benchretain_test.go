package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
)

// BenchmarkReclaim: a page of 1,000 dead refs, one of each stream: found, their
// watchers armed, retired.
func BenchmarkReclaim(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		d, slots := filled(b, n)
		ctx := context.Background()
		refs := 0
		for i := uint64(1); b.Loop(); i++ {
			if i >= slots {
				b.Fatal("no slot left: give a smaller -benchtime")
			}
			giveUp(b, d, i)
			dead, _, err := d.DeadRefs(ctx, testChain, 1000)
			if err != nil || len(dead) != 1000 {
				b.Fatal(len(dead), err)
			}
			if err := d.ArmWatchers(ctx, dead); err != nil {
				b.Fatal(err)
			}
			got, err := d.RetireRefs(ctx, dead)
			if err != nil {
				b.Fatal(err)
			}
			refs += got
		}
		perSecond(b, "refs", refs)
	})
}

func giveUp(b *testing.B, d *DB, slot uint64) {
	b.Helper()
	breakAt := slotOf(slot, 1000, 1).Slot
	if _, err := d.RaiseWatermark(context.Background(), catalog.Watermark{Chain: testChain, Seq: breakAt.Next - 1, Segment: breakAt.ID, Term: 1}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStraddling: no ref straddles, all lie above the watermark.
func BenchmarkStraddling(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		d, _ := filled(b, n)
		giveUp(b, d, 1)
		least := time.Duration(1 << 62)
		for b.Loop() {
			begun := time.Now()
			if refs, _, err := d.StraddlingRefs(context.Background(), testChain, nil, 1000); err != nil || len(refs) != 0 {
				b.Fatal(len(refs), err)
			}
			least = min(least, time.Since(begun))
		}
		b.ReportMetric(float64(least.Nanoseconds()), "least-ns/op") // what a loaded machine tells best
	})
}

// BenchmarkAcross: a page of the refs over a cut near the chain's beginning. Of 1,000
// streams one in ten has a long ref there; all else lies behind.
func BenchmarkAcross(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		d, _ := filled(b, n)
		ctx := context.Background()
		long := `UPDATE ref SET last = last + 5000 WHERE epoch = 1 AND first <= 100`
		if err := d.write(ctx, "long", func(t *tx) error { return t.exec(long) }); err != nil {
			b.Fatal(err)
		}
		least := time.Duration(1 << 62)
		for b.Loop() {
			begun := time.Now()
			if refs, more, err := d.RefsAcross(ctx, testChain, 2000, nil, 1000); err != nil || len(refs) != 100 || more {
				b.Fatal(len(refs), more, err)
			}
			least = min(least, time.Since(begun))
		}
		b.ReportMetric(float64(least.Nanoseconds()), "least-ns/op")
	})
}

package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// owing is a catalog with n standing refs of packs, settled and trimmed, and on top of
// them always the same debts: ten slots of 1,000 streams that owe a settle, five condemned
// ones, a hundred due reap-checks, eight packs of generation 0.
func owing(b *testing.B, n int) *DB {
	b.Helper()
	ctx := context.Background()
	d := openAt(b, filepath.Join(b.TempDir(), "catalog.db"), nil)
	prepareChain(b, d)
	const streams = 1000
	if _, err := d.SeedReadGrace(ctx, catalog.LeastReadGrace); err != nil {
		b.Fatal(err)
	}
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(testChain), Owner: "a"}
	if err := d.LeaseDuty(ctx, h, 24*time.Hour); err != nil {
		b.Fatal(err)
	}
	var id uint64
	// packed settles the slots up to id, each into a pack of its own, so that a ref stays one.
	packed := func(generation uint32) {
		b.Helper()
		w, err := d.Window(ctx, testChain, 1)
		if err != nil || len(w.Slots) != 1 {
			b.Fatal(len(w.Slots), err)
		}
		r := packOf(b, d, h, &w)
		for i := range r.Runs {
			r.Runs[i].New.Generation = generation
		}
		if _, err := d.CommitRewrite(ctx, r); err != nil {
			b.Fatal(err)
		}
		if got, err := d.ResolveSettled(ctx, testChain, []catalog.MarkerRef{w.Slots[0].Marker.MarkerRef}); err != nil || got != 1 {
			b.Fatal(got, err)
		}
	}
	absorb := func(streams int) {
		b.Helper()
		id++
		if _, err := d.AbsorbSlot(ctx, slotOf(id, streams, 1)); err != nil {
			b.Fatal(err)
		}
	}
	for range n / streams {
		absorb(streams)
		packed(5)
	}
	giveUp(b, d, 1) // before its slot row is merged with others
	dead, _, err := d.DeadRefs(ctx, testChain, 0)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := d.RetireRefs(ctx, dead); err != nil {
		b.Fatal(err)
	}
	trimTo(b, d)
	for range 5 { // condemned
		absorb(streams)
		packed(0)
	}
	condemn(b, d)
	for range 3 {
		absorb(streams)
		packed(0)
	}
	for range 10 {
		absorb(streams)
	}
	if err := d.write(ctx, "reap-checks", func(t *tx) error {
		ms := make([]catalog.Armed, 100)
		for i := range ms {
			ms[i] = catalog.Armed{ID: fmt.Sprintf("obj/%07d", i), Class: "standard"}
		}
		return t.armAll(catalog.DutyReapCheck, ms, 0)
	}); err != nil {
		b.Fatal(err)
	}
	return d
}

func condemn(b *testing.B, d *DB) catalog.ChainRow {
	b.Helper()
	ctx := context.Background()
	row, err := d.AdvanceRewritten(ctx, testChain, 0)
	if err != nil {
		b.Fatal(err)
	}
	m, err := d.Marker(ctx, catalog.DutyTrimCheck, catalog.ChainID(testChain))
	if err != nil {
		b.Fatal(err)
	}
	if row, err = d.CondemnSlots(ctx, m.MarkerRef, testChain, row.Condemned, row.Rewritten); err != nil {
		b.Fatal(err)
	}
	return row
}

func trimTo(b *testing.B, d *DB) {
	b.Helper()
	row := condemn(b, d)
	breakClock(b, d, 2*catalog.LeastReadGrace)
	if _, err := d.AdvanceTrim(context.Background(), testChain, row.Trimmed, row.Condemned); err != nil {
		b.Fatal(err)
	}
}

// breakClock lets the catalog's time pass, for a grace that a benchmark need not wait.
func breakClock(b *testing.B, d *DB, by time.Duration) {
	b.Helper()
	if err := d.write(context.Background(), "clock", func(t *tx) error {
		return t.exec("UPDATE chain SET condemned_at = condemned_at - ?", int64(by))
	}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDebts: what a duty asks often costs what is owed, not what stands.
func BenchmarkDebts(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		d := owing(b, n)
		ctx := context.Background()
		all := []catalog.Duty{catalog.DutySettle, catalog.DutyPackMerge, catalog.DutyGC, catalog.DutyTailFill, catalog.DutyReapCheck, catalog.DutyTrimCheck, catalog.DutyOrphan, catalog.DutyReclaim, catalog.DutyTeardown}
		var settle []catalog.MarkerRef
		w, err := d.Window(ctx, testChain, 1<<40)
		if err != nil || len(w.Slots) != 10 || len(w.Refs) != 10_000 {
			b.Fatal(len(w.Slots), len(w.Refs), err)
		}
		for i := range w.Slots {
			settle = append(settle, w.Slots[i].Marker.MarkerRef)
		}
		tip := w.Chain.NextSeq
		for _, v := range []struct {
			name string
			ask  func() error
		}{
			{"TakeDue", func() error {
				_, err := d.TakeDue(ctx, catalog.Take{Duties: all, Owner: "a", Lease: time.Nanosecond, Limit: 100})
				return err
			}},
			{"NextDue", func() error { _, _, err := d.NextDue(ctx, all); return err }},
			{"Window", func() error { _, err := d.Window(ctx, testChain, 1<<40); return err }},
			{"DueSlots", func() error { _, err := d.DueSlots(ctx, testChain, 1000); return err }},
			{"AdvanceRewritten", func() error { _, err := d.AdvanceRewritten(ctx, testChain, 0); return err }},
			{"ResolveSettled", func() error { _, err := d.ResolveSettled(ctx, testChain, settle); return err }},
			{"PackWindow", func() error {
				p, err := d.PackWindow(ctx, testChain, 0, 8)
				if err == nil && (len(p.Packs) != 8 || len(p.Refs) != 8000) {
					err = fmt.Errorf("%d packs, %d refs", len(p.Packs), len(p.Refs))
				}
				return err
			}},
			{"DeadRefs", func() error { _, _, err := d.DeadRefs(ctx, testChain, 1000); return err }},
			{"StraddlingRefs", func() error { _, _, err := d.StraddlingRefs(ctx, testChain, nil, 1000); return err }},
			{"Liveness", func() error { _, err := d.Liveness(ctx, segment.SlotKey(testChain, w.Slots[0].ID)); return err }},
			{"WalkStream", func() error { _, err := d.WalkStream(ctx, 1, 100); return err }},
			{"ChainRefsTip", func() error { _, err := d.ChainRefs(ctx, testChain, tip-500, 512); return err }},
			{"Debts", func() error { _, err := d.Debts(ctx); return err }},
			{"Status", func() error { _, err := d.Status(ctx); return err }},
		} {
			b.Run(v.name, func(b *testing.B) {
				least := time.Duration(1 << 62)
				for b.Loop() {
					begun := time.Now()
					if err := v.ask(); err != nil {
						b.Fatal(err)
					}
					least = min(least, time.Since(begun))
				}
				b.ReportMetric(float64(least.Nanoseconds()), "least-ns/op") // what a loaded machine tells best
			})
		}
	})
}

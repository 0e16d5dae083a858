package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// slotOf is the i-th slot of the test chain, with a row of each of a few streams.
func slotOf(i uint64, streams int) catalog.Absorb {
	base := segment.Seq((i-1)*uint64(streams) + 1)
	a := catalog.Absorb{
		Slot: catalog.SlotRow{
			Chain: testChain, ID: segment.ID(i), First: base, Next: base + segment.Seq(streams), Bytes: 1000,
			UUID: uuidOf(100 + i), Term: 1, Sealed: time.Unix(1, 0),
		},
		Key: segment.SlotKey(testChain, segment.ID(i)), Class: segment.ClassStandard,
	}
	if i > 1 {
		a.Slot.Prev = uuidOf(99 + i)
	}
	for s := range streams {
		at := base + segment.Seq(s)
		a.Refs = append(a.Refs, catalog.Ref{
			Stream: fmt.Sprintf("stream-%04d", s), Chain: testChain, First: at, Last: at, Kind: catalog.RefSlot, Revision: -1, Chunks: 1, Rows: 1, Bytes: 100,
		})
	}
	return a
}

const benchStreams = 8

// filled has a few thousand refs and as many markers: what a simulated tier comes to.
func filled(b *testing.B) (*Catalog, uint64) {
	b.Helper()
	c := New(Options{})
	prepareChain(b, c)
	const slots = 500
	for i := uint64(1); i <= slots; i++ {
		if _, err := c.AbsorbSlot(context.Background(), slotOf(i, benchStreams)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 4000 {
		if err := c.Arm(context.Background(), catalog.DutyReapCheck, fmt.Sprintf("obj/%05d", i), segment.ClassStandard, time.Hour); err != nil {
			b.Fatal(err)
		}
	}
	return c, slots
}

func BenchmarkAbsorbSlot(b *testing.B) {
	c, n := filled(b)
	b.ReportAllocs()
	for b.Loop() {
		n++
		if _, err := c.AbsorbSlot(context.Background(), slotOf(n, benchStreams)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshotAbsorb has a snapshot taken before each absorb, so that every block
// touched is copied first.
func BenchmarkSnapshotAbsorb(b *testing.B) {
	c, n := filled(b)
	b.ReportAllocs()
	for b.Loop() {
		n++
		c.Snapshot()
		if _, err := c.AbsorbSlot(context.Background(), slotOf(n, benchStreams)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerbs are the usual ones, one by one.
func BenchmarkVerbs(b *testing.B) {
	ctx := context.Background()
	due := []catalog.Duty{catalog.DutyReapCheck, catalog.DutyOrphan, catalog.DutyTrimCheck, catalog.DutyTeardown}
	ref := catalog.MarkerRef{Duty: catalog.DutyReapCheck, ID: "obj/02000", Version: 1}
	for _, v := range []struct {
		name string
		run  func(*Catalog) error
	}{
		{"Chain", func(c *Catalog) error { _, err := c.Chain(ctx, testChain); return err }},
		{"RenewChain", func(c *Catalog) error {
			_, err := c.RenewChain(ctx, testChain, uuidOf(8), 1, time.Hour)
			return err
		}},
		{"Arm", func(c *Catalog) error { return c.Arm(ctx, ref.Duty, ref.ID, segment.ClassStandard, time.Hour) }},
		{"Postpone", func(c *Catalog) error { return c.Postpone(ctx, ref, time.Hour, "") }},
		{"TakeDue", func(c *Catalog) error {
			_, err := c.TakeDue(ctx, catalog.Take{Duties: due, Owner: "a", Lease: time.Minute, Limit: 100})
			return err
		}},
		{"NextDue", func(c *Catalog) error { _, _, err := c.NextDue(ctx, due); return err }},
		{"Window", func(c *Catalog) error { _, err := c.Window(ctx, testChain, 4000); return err }},
		{"DueSlots", func(c *Catalog) error { _, err := c.DueSlots(ctx, testChain, 100); return err }},
		{"Liveness", func(c *Catalog) error { _, err := c.Liveness(ctx, segment.SlotKey(testChain, 9)); return err }},
		{"Plan", func(c *Catalog) error {
			_, err := c.Plan(ctx, catalog.PlanRequest{Stream: "stream-0003", From: segment.Pos{Epoch: 1, Seq: 2000}, Limit: 8})
			return err
		}},
		{"Refused", func(c *Catalog) error {
			if c.ReleaseChain(ctx, testChain, uuidOf(1), 1) == nil {
				return catalog.ErrCorrupt
			}
			return nil
		}},
	} {
		b.Run(v.name, func(b *testing.B) {
			c, _ := filled(b)
			b.ReportAllocs()
			for b.Loop() {
				if err := v.run(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

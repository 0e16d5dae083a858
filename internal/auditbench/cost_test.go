//go:build unix

package auditbench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/settle"
)

// benchOn is a run whose parts a test calls by itself.
func benchOn(t *testing.T, o Options) *bench {
	t.Helper()
	o.fill()
	return &bench{
		store: storeOn(t, s3like()), o: o, dir: Prefix + "test/", tmp: t.TempDir(),
		catalog: func(_ context.Context, _ string, now func() time.Time) (catalog.Catalog, error) {
			return memory.New(memory.Options{Clock: now}), nil // counts do not depend on the disk
		},
	}
}

// tierOn is a tier of it.
func tierOn(t *testing.T, b *bench, a *author) *tier {
	t.Helper()
	x, err := b.newTier(t.Context(), "tier", a)
	if err != nil {
		t.Fatal(err)
	}
	x.countOnly = true
	t.Cleanup(func() {
		if err := x.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// counts holds the requests of one measurement: exactly these, and no others.
func counts(t *testing.T, x *tier, what string, want map[objstore.Op]int64, do func() error) spent {
	t.Helper()
	s, err := x.measure(do)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for op, n := range s.requests.Requests {
		if n != want[op] {
			t.Errorf("I9: %s: %d %s requests, want %d", what, n, op, want[op])
		}
	}
	return s
}

// TestI9OfALife counts every request of slots and objects, from the settle of their rows to
// their end, by the store's own counters.
func TestI9OfALife(t *testing.T) {
	const batches, slotsOfBatch, small = 8, 3, 20
	ctx := t.Context()
	a := newAuthor(time.Now)
	x := tierOn(t, benchOn(t, Options{}), a)
	settler, err := x.settler(settle.Config{StreamObjectMin: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	run := func(what string, want map[objstore.Op]int64, do func() error) spent {
		t.Helper()
		return counts(t, x, what, want, do)
	}
	for batch := range batches {
		run("publish", map[objstore.Op]int64{objstore.OpPut: slotsOfBatch}, func() error {
			for range slotsOfBatch {
				// One stream passes stream-object-min in the batch, the others share the pack.
				s, err := a.seal(append(a.even(0, small, 8<<10), call{stream: fmt.Sprintf("large/%d", batch), rows: 4, size: 8 << 10}))
				if err == nil {
					err = x.publish(ctx, s)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		// Each slot once; an output one PUT: no footer is read, nothing is listed.
		run("settle", map[objstore.Op]int64{objstore.OpGet: slotsOfBatch, objstore.OpPut: 2}, func() error {
			_, err := x.settle(ctx, settler)
			return err
		})
	}
	// The eighth pack armed the merge: each pack once, one output.
	run("pack-merge", map[objstore.Op]int64{objstore.OpGet: batches, objstore.OpPut: 1}, func() error {
		sum, err := x.markers(ctx, settler, catalog.DutyPackMerge, catalog.DutyTailFill, catalog.DutyGC)
		if err == nil && sum.runs != 1 {
			err = fmt.Errorf("%d markers were served, want the one merge", sum.runs)
		}
		return err
	})
	x.clock.advance(readGrace)
	// Every dead object's footer once, and nothing else.
	run("first look", map[objstore.Op]int64{objstore.OpGet: batches}, func() error { return x.reap(ctx, reap.Confirmed, batches) })
	x.clock.advance(readGrace)
	run("reap", map[objstore.Op]int64{objstore.OpGet: batches, objstore.OpDelete: 1}, func() error { return x.reap(ctx, reap.Reaped, batches) })
	trim := func() error {
		due, err := x.take(ctx, catalog.DutyTrimCheck)
		if err == nil && len(due) != 1 {
			err = fmt.Errorf("%d trim-checks are due, want one", len(due))
		}
		if err != nil {
			return err
		}
		_, err = reap.NewTrimmer(x.cat, x.classes, orphan.NewDeleter(x.classes), 1<<30).RunOnce(ctx, due[0])
		return err
	}
	// However many slots: the chain's head, read and written, and one bulk delete.
	run("condemn slots", map[objstore.Op]int64{objstore.OpGet: 1, objstore.OpPut: 1}, trim)
	x.clock.advance(readGrace)
	run("delete slots", map[objstore.Op]int64{objstore.OpGet: 1, objstore.OpDelete: 1}, trim)
}

// TestRequestsStayBounded settles many batches, through two generations of packs, with all
// sizes 1/256 of the defaults: so a request here stands for one there.
func TestRequestsStayBounded(t *testing.T) {
	const (
		scale   = 256
		batches = 64
		batch   = settle.DefaultSettleBytes / scale / 8
	)
	perGB := map[int]float64{}
	for _, streams := range []int{10, 100, 1000} {
		b := benchOn(t, Options{Sizes: Sizes{Batches: batches, Batch: batch}})
		a := newAuthor(time.Now)
		x := tierOn(t, b, a)
		settler, err := x.settler(settle.Config{StreamObjectMin: settle.DefaultStreamObjectMin / scale, TailTarget: settle.DefaultTailTarget / scale})
		if err != nil {
			t.Fatal(err)
		}
		out := Streams{Streams: streams, Batches: batches}
		if err := b.settleStreamsBy(t.Context(), x, a, settler, &out); err != nil {
			t.Fatal(err)
		}
		perGB[streams] = out.RequestsPerGB / scale
		t.Logf("%d streams: %.0f requests a GB at full scale (%.0f PUT-like), %d pack-merges, %d tail-fills, %d objects",
			streams, out.RequestsPerGB/scale, out.PutLikePerGB/scale, out.PackMerges, out.TailFills, out.Objects)
	}
	for streams, n := range perGB {
		if few := perGB[10]; n > mostStreamRatio*few {
			t.Errorf("I9: %d streams cost %.0f requests a GB, ten of them %.0f", streams, n, few)
		}
	}
}

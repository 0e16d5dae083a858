package coldload_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// chainRows is what a scan has to show from a seq on; live gives each stream's first.
func chainRows(x *tiertest.Tier, from segment.Seq, live map[string]segment.Seq) (out []coldload.ShardRow) {
	for name, rows := range x.Rows {
		for _, r := range rows {
			if r.Seq >= max(from, live[name]) {
				out = append(out, coldload.ShardRow{Stream: name, Epoch: 1, Row: r})
			}
		}
	}
	slices.SortFunc(out, func(a, b coldload.ShardRow) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

func scanAll(ctx context.Context, r *coldload.Reader, x *tiertest.Tier, from segment.Seq, each func(coldload.ShardRow)) (out []coldload.ShardRow, err error) {
	for row, err := range r.Scan(ctx, x.Chain, from) {
		if err != nil {
			return out, err
		}
		out = append(out, row)
		if each != nil {
			each(row)
		}
	}
	return out, nil
}

func sameScan(t *testing.T, got, want []coldload.ShardRow) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		if g.Stream != w.Stream || g.Epoch != w.Epoch || g.Seq != w.Seq || g.Time != w.Time || !bytes.Equal(g.Payload, w.Payload) {
			t.Fatalf("row %d is %q %d, want %q %d", i, g.Stream, g.Seq, w.Stream, w.Seq)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
}

// stages are the lives of a chain that a scan reads the same of.
var stages = []struct {
	name string
	make func(t testing.TB, x *tiertest.Tier)
}{
	{"slots", func(testing.TB, *tiertest.Tier) {}},
	{"settled, slots stand", func(t testing.TB, x *tiertest.Tier) { x.Settle(1 << 20) }},
	{"condemned", func(t testing.TB, x *tiertest.Tier) { x.Settle(1 << 20); x.CondemnSlots() }},
	{"packs only", func(t testing.TB, x *tiertest.Tier) { x.Settle(1 << 26); x.TrimSlots() }},
	{"stream objects only", func(t testing.TB, x *tiertest.Tier) { x.Settle(1); x.TrimSlots() }},
	{"across the border", func(t testing.TB, x *tiertest.Tier) {
		x.Settle(1 << 14)
		x.TrimSlots()
		x.Slot(tiertest.Write{Stream: "b", Rows: 7, Size: 30}, tiertest.Write{Stream: "new", Rows: 3, Size: 30}, tiertest.Write{Stream: "a", Rows: 1, Size: 30})
		x.Settle(1 << 14)
		x.Slot(tiertest.Write{Stream: "a", Rows: 2, Size: 30})
	}},
}

func TestScan(t *testing.T) {
	for _, st := range stages {
		t.Run(st.name, func(t *testing.T) {
			x, _ := threeSlots(t, nil)
			st.make(t, x)
			for _, cfg := range []coldload.Config{{}, {PlanRefs: 2, ScanRefs: 2, Window: 1}} {
				r := reader(t, x, cfg)
				for from := segment.Seq(0); from < 230; from += 19 {
					got, err := scanAll(t.Context(), r, x, from, nil)
					if err != nil {
						t.Fatalf("from %d: %v", from, err)
					}
					sameScan(t, got, chainRows(x, from, nil))
				}
			}
		})
	}
}

func TestScanEnds(t *testing.T) {
	x := tiertest.New(t, nil)
	r := reader(t, x, coldload.Config{})
	if got, err := scanAll(t.Context(), r, x, 0, nil); err != nil || len(got) != 0 {
		t.Fatalf("an empty chain: %d rows, %v", len(got), err)
	}
	x.Slot(tiertest.Write{Stream: "a", Rows: 5, Size: 10})
	if got, err := scanAll(t.Context(), r, x, 6, nil); err != nil || len(got) != 0 {
		t.Fatalf("beyond the tip: %d rows, %v", len(got), err)
	}
	for stop := range 5 {
		n := 0
		for _, err := range r.Scan(t.Context(), x.Chain, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > stop {
				break
			}
		}
	}
	for _, err := range r.Scan(t.Context(), segment.Chain{Epoch: 7}, 0) {
		if !errors.Is(err, catalog.ErrNotFound) {
			t.Fatalf("no such chain: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	got, err := scanAll(ctx, r, x, 0, func(coldload.ShardRow) { cancel() })
	if !errors.Is(err, context.Canceled) || len(got) != 1 {
		t.Fatalf("cancelled: %d rows, %v", len(got), err)
	}
}

// TestScanTrimmed: rows of a trimmed stream are not shown, wherever their bytes stand.
func TestScanTrimmed(t *testing.T) {
	for _, st := range stages {
		for _, walk := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, walked %t", st.name, walk), func(t *testing.T) {
				x, _ := threeSlots(t, nil)
				st.make(t, x)
				cut := x.Rows["b"][70].Seq
				if _, err := x.Catalog.TrimStream(t.Context(), "b", at(cut)); err != nil {
					t.Fatal(err)
				}
				if walk {
					x.Walk("b")
				}
				got, err := scanAll(t.Context(), reader(t, x, coldload.Config{}), x, 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				sameScan(t, got, chainRows(x, 0, map[string]segment.Seq{"b": cut}))
			})
		}
	}
}

// TestScanTrimmedMeanwhile: what a trim takes away while the scan runs may be
// missing; every other row is there.
func TestScanTrimmedMeanwhile(t *testing.T) {
	for _, st := range stages {
		t.Run(st.name, func(t *testing.T) {
			x, _ := threeSlots(t, nil)
			st.make(t, x)
			all := x.Rows["b"]
			n := 0
			got, err := scanAll(t.Context(), reader(t, x, coldload.Config{PlanRefs: 2, ScanRefs: 2}), x, 0, func(coldload.ShardRow) {
				if n++; n == 40 {
					if _, err := x.Catalog.DeleteStream(t.Context(), "b"); err != nil {
						t.Fatal(err)
					}
					x.Walk("b")
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			got = slices.DeleteFunc(got, func(r coldload.ShardRow) bool { return r.Stream == "b" })
			live := map[string]segment.Seq{"b": all[len(all)-1].Seq + 1}
			sameScan(t, got, chainRows(x, 0, live))
		})
	}
}

// TestScanSlotsGo: the slots are settled and deleted while the scan reads.
func TestScanSlotsGo(t *testing.T) {
	x, _ := threeSlots(t, nil)
	n := 0
	got, err := scanAll(t.Context(), reader(t, x, coldload.Config{}), x, 0, func(coldload.ShardRow) {
		if n++; n == 10 {
			x.Settle(1 << 20)
			x.TrimSlots()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	sameScan(t, got, chainRows(x, 0, nil))
}

// TestScanLost: an object that is gone ends the scan with ErrLost, after the rows
// before it.
func TestScanLost(t *testing.T) {
	for _, st := range stages {
		t.Run(st.name, func(t *testing.T) {
			x, _ := threeSlots(t, nil)
			st.make(t, x)
			keys := map[string]bool{}
			row, err := x.Catalog.Chain(t.Context(), x.Chain)
			if err != nil {
				t.Fatal(err)
			}
			for info, err := range x.Store.List(t.Context(), "", "") {
				k, perr := segment.ParseKey(info.Key)
				if err != nil || perr != nil {
					t.Fatal(err, perr)
				}
				// Settled copies of what a slot still serves are not read.
				keys[info.Key] = k.Kind == segment.KeySlot && k.ID >= row.Condemned || k.Kind != segment.KeySlot && row.Condemned > 1
			}
			read := 0
			for key, used := range keys {
				if !used {
					continue
				}
				obj, info, err := x.Store.ReadAll(t.Context(), key, 1<<30)
				if err != nil {
					t.Fatal(err)
				}
				if refs, err := x.Catalog.Liveness(t.Context(), key); err != nil || len(refs) == 0 || refs[0].First >= row.NextSeq {
					if k, _ := segment.ParseKey(key); k.Kind != segment.KeySlot {
						t.Fatal(key, len(refs), err)
					}
				} else if k, _ := segment.ParseKey(key); k.Kind != segment.KeySlot && refs[0].First > 195 {
					continue // settled, but served by a slot that still stands
				}
				if _, err := x.Mem.Delete(t.Context(), []string{key}); err != nil {
					t.Fatal(err)
				}
				got, err := scanAll(t.Context(), reader(t, x, coldload.Config{Replans: 2}), x, 0, nil)
				var se *coldload.ScanError
				if !errors.Is(err, coldload.ErrLost) || !errors.As(err, &se) || se.Key != key {
					t.Fatalf("%s is gone: %d rows, %v", key, len(got), err)
				}
				sameScan(t, got, chainRows(x, 0, nil)[:len(got)])
				read++
				if _, err := x.Store.PutOnce(t.Context(), key, obj, info.Meta); err != nil {
					t.Fatal(err)
				}
			}
			if read == 0 {
				t.Fatal("no object was taken away")
			}
		})
	}
}

// TestScanHole: refs that the catalog lost without a trim are ErrLost.
func TestScanHole(t *testing.T) {
	for _, drop := range []string{"a", "b"} {
		x, _ := threeSlots(t, nil)
		x.Settle(1)
		x.TrimSlots()
		r, err := coldload.New(&forgetful{Catalog: x.Catalog, stream: drop}, x.Classes, coldload.Config{Clock: x.Clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		got, err := scanAll(t.Context(), r, x, 0, nil)
		if !errors.Is(err, coldload.ErrLost) {
			t.Fatalf("%d rows, %v", len(got), err)
		}
	}
}

// forgetful has no refs of a stream any more.
type forgetful struct {
	coldload.Catalog
	stream string
}

func (f *forgetful) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	refs, err := f.Catalog.ChainRefs(ctx, c, from, limit)
	return slices.DeleteFunc(refs, func(r catalog.Ref) bool { return r.Stream == f.stream }), err
}

func (f *forgetful) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	p, err := f.Catalog.Plan(ctx, r)
	if r.Stream == f.stream {
		p.Refs = nil
	}
	return p, err
}

// TestScanPlanAges: no GET begins after the plan's end.
func TestScanPlanAges(t *testing.T) {
	var x *tiertest.Tier
	slow := false
	x, _ = threeSlots(t, func(d objstore.Driver) objstore.Driver {
		return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
			if slow && c.Op == objstore.OpGet {
				x.Clock.Advance(tiertest.ReadGrace / 5)
			}
			return faultstore.Fault{}
		})
	})
	x.Settle(1)
	x.TrimSlots()
	slow = true
	got, err := scanAll(t.Context(), reader(t, x, coldload.Config{PlanRefs: 2, ScanRefs: 2, Window: 1}), x, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	sameScan(t, got, chainRows(x, 0, nil))
	slow = false
	r := reader(t, x, coldload.Config{Clock: func() time.Time { x.Clock.Advance(tiertest.ReadGrace); return x.Clock.Now() }})
	if _, err := scanAll(t.Context(), r, x, 0, nil); !errors.Is(err, objstore.ErrUnavailable) {
		t.Fatalf("plans that age at once: %v", err)
	}
}

// TestScanFaults: whatever GET fails, the scan is complete or ends in that fault.
func TestScanFaults(t *testing.T) {
	for i := 0; ; i++ {
		on, n, hit := false, 0, false
		x, _ := threeSlots(t, func(d objstore.Driver) objstore.Driver {
			return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
				if !on || c.Op != objstore.OpGet {
					return faultstore.Fault{}
				}
				if n++; n-1 < i {
					return faultstore.Fault{}
				}
				hit = true
				return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrDenied}
			})
		})
		x.Settle(1 << 20)
		x.TrimSlots()
		x.Slot(tiertest.Write{Stream: "a", Rows: 2, Size: 30})
		on = true
		got, err := scanAll(t.Context(), reader(t, x, coldload.Config{Window: 1}), x, 0, nil)
		want := chainRows(x, 0, nil)
		if !hit {
			sameScan(t, got, want)
			return
		}
		if !errors.Is(err, objstore.ErrDenied) {
			t.Fatalf("call %d: %v", i, err)
		}
		sameScan(t, got, want[:len(got)])
	}
}

// TestScanMemory: a chain far larger than the budget is read within it, slots or
// settled alike.
func TestScanMemory(t *testing.T) {
	x := tiertest.New(t, nil)
	const slots, budget = 6, 1 << 20
	for range slots {
		var ws []tiertest.Write
		for s := range 8 {
			for range 4 {
				ws = append(ws, tiertest.Write{Stream: fmt.Sprint("s", s), Rows: 50, Size: 1000})
			}
		}
		x.Slot(ws...)
	}
	for _, settled := range []bool{false, true} {
		if settled {
			x.Settle(1 << 16)
			x.TrimSlots()
		}
		want := chainRows(x, 0, nil)
		r := reader(t, x, coldload.Config{MemoryBytes: budget, FetchBytes: 64 << 10, Window: 2})
		var base, m runtime.MemStats
		for range 3 { // pools are emptied by the second
			runtime.GC()
		}
		runtime.ReadMemStats(&base)
		n, peak := 0, uint64(0)
		for row, err := range r.Scan(t.Context(), x.Chain, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if row.Seq != want[n].Seq || row.Stream != want[n].Stream || !bytes.Equal(row.Payload, want[n].Payload) {
				t.Fatalf("row %d is %q %d", n, row.Stream, row.Seq)
			}
			if n++; n%1000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc-min(base.HeapAlloc, m.HeapAlloc))
			}
		}
		if n != len(want) {
			t.Fatalf("%d rows, want %d", n, len(want))
		}
		t.Logf("settled %t: %d MB of rows, at most %d KB held", settled, len(want)/1000, peak>>10)
		if peak > 6*budget {
			t.Errorf("settled %t: %d bytes held for a budget of %d", settled, peak, budget)
		}
	}
}

package coldload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func reader(t testing.TB, x *tiertest.Tier, cfg coldload.Config) *coldload.Reader {
	t.Helper()
	if cfg.Clock == nil {
		cfg.Clock = x.Clock.Now
	}
	r, err := coldload.New(x.Catalog, x.Classes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func at(seq segment.Seq) segment.Pos { return segment.Pos{Epoch: 1, Seq: seq} }

// collect reads until the end or an error.
func collect(ctx context.Context, r *coldload.Reader, stream string, from, to segment.Pos) (rows []coldload.Row, err error) {
	for row, err := range r.Rows(ctx, stream, from, to) {
		if err != nil {
			return rows, err
		}
		rows = append(rows, coldload.Row{Epoch: row.Epoch, Row: row.Clone()})
	}
	return rows, nil
}

// same fails unless got are exactly these rows.
func same(t *testing.T, got []coldload.Row, want []segment.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Epoch != 1 || got[i].Seq != want[i].Seq || got[i].Time != want[i].Time || !bytes.Equal(got[i].Payload, want[i].Payload) {
			t.Fatalf("row %d is %d %q, want %d %q", i, got[i].Seq, got[i].Payload, want[i].Seq, want[i].Payload)
		}
	}
}

// threeSlots is a stream over three slots among others.
func threeSlots(t testing.TB, wrap func(objstore.Driver) objstore.Driver) (*tiertest.Tier, []string) {
	x := tiertest.New(t, wrap)
	var keys []string
	for range 3 {
		keys = append(keys, x.Slot(
			tiertest.Write{Stream: "a", Rows: 10, Size: 40}, tiertest.Write{Stream: "b", Rows: 50, Size: 400},
			tiertest.Write{Stream: "a", Rows: 5, Size: 4000},
		))
	}
	return x, keys
}

func TestReadsAllInOrder(t *testing.T) {
	x, _ := threeSlots(t, nil)
	for _, cfg := range []coldload.Config{{}, {PlanRefs: 2, Window: 1, MemoryBytes: 1 << 20}} {
		for _, stream := range []string{"a", "b"} {
			got, err := collect(t.Context(), reader(t, x, cfg), stream, segment.Pos{}, segment.Pos{})
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, x.Rows[stream])
		}
	}
}

func TestReadsAnyRange(t *testing.T) {
	x, _ := threeSlots(t, nil)
	r := reader(t, x, coldload.Config{PlanRefs: 2})
	all := x.Rows["a"]
	for from := range all {
		for _, to := range []int{from, from + 3, from + 17, len(all) - 1} {
			if to >= len(all) {
				continue
			}
			got, err := collect(t.Context(), r, "a", at(all[from].Seq), at(all[to].Seq))
			if err != nil {
				t.Fatalf("%d to %d: %v", from, to, err)
			}
			same(t, got, all[from:to+1])
		}
	}
	got, err := collect(t.Context(), r, "a", at(all[len(all)-1].Seq+1000), segment.Pos{})
	if err != nil || len(got) != 0 {
		t.Fatalf("beyond the tip: %d rows, %v", len(got), err)
	}
}

func TestUnknownStream(t *testing.T) {
	x, _ := threeSlots(t, nil)
	if _, err := collect(t.Context(), reader(t, x, coldload.Config{}), "nobody", segment.Pos{}, segment.Pos{}); !errors.Is(err, catalog.ErrNotFound) {
		t.Fatalf("want ErrNotFound, got %v", err)
	}
}

func TestCallerMayStop(t *testing.T) {
	x, _ := threeSlots(t, nil)
	r := reader(t, x, coldload.Config{Window: 2})
	for stop := range len(x.Rows["a"]) {
		n := 0
		for _, err := range r.Rows(t.Context(), "a", segment.Pos{}, segment.Pos{}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > stop {
				break
			}
		}
	}
}

func TestCancelledReadEnds(t *testing.T) {
	x, _ := threeSlots(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range reader(t, x, coldload.Config{PlanRefs: 2}).Rows(ctx, "a", segment.Pos{}, segment.Pos{}) {
		if last = err; err == nil {
			n++
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Fatalf("after %d rows: want context.Canceled, got %v", n, last)
	}
}

func TestTrimmed(t *testing.T) {
	x, _ := threeSlots(t, nil)
	all := x.Rows["a"]
	if _, err := x.Catalog.TrimStream(t.Context(), "a", at(all[20].Seq)); err != nil {
		t.Fatal(err)
	}
	r := reader(t, x, coldload.Config{})
	got, err := collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, all[20:])
	_, err = collect(t.Context(), r, "a", at(all[19].Seq), segment.Pos{})
	var re *coldload.ReadError
	if !errors.Is(err, coldload.ErrTrimmed) || !errors.As(err, &re) || re.First != at(all[20].Seq) {
		t.Fatalf("want ErrTrimmed with the first row that remains, got %v", err)
	}
	if _, err := x.Catalog.DeleteStream(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	end := x.Rows["a"][len(x.Rows["a"])-1].Seq + 1
	if _, err := collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{}); !errors.Is(err, coldload.ErrDeleted) || !errors.As(err, &re) || re.First != at(end) {
		t.Fatalf("want ErrDeleted with where rows that come again would stand, %d, got %v", end, err)
	}
	if got, err := collect(t.Context(), r, "a", at(end), segment.Pos{}); err != nil || len(got) != 0 {
		t.Fatalf("from there on: %d rows, %v", len(got), err)
	}
	if _, err := collect(t.Context(), r, "a", at(all[20].Seq), segment.Pos{}); !errors.Is(err, coldload.ErrDeleted) {
		t.Fatalf("want ErrDeleted, got %v", err)
	}
}

// TestK29: 404, collected or lost? Below live_from it is trimmed, above it is
// lost, and loud.
func TestK29LostAboveTrimmedBelow(t *testing.T) {
	x, keys := threeSlots(t, nil)
	if _, err := x.Mem.Delete(t.Context(), keys[1:2]); err != nil {
		t.Fatal(err)
	}
	r := reader(t, x, coldload.Config{})
	got, err := collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{})
	var re *coldload.ReadError
	if !errors.Is(err, coldload.ErrLost) || !errors.As(err, &re) || re.Key != keys[1] {
		t.Fatalf("want ErrLost naming %s, got %v", keys[1], err)
	}
	same(t, got, x.Rows["a"][:15]) // what stands before the loss was delivered
	if _, err := x.Catalog.TrimStream(t.Context(), "a", at(x.Rows["a"][30].Seq)); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(t.Context(), r, "a", re.At, segment.Pos{}); !errors.Is(err, coldload.ErrTrimmed) {
		t.Fatalf("want ErrTrimmed, got %v", err)
	}
}

// TestK29BelowTheWatermark: the same of a chain's watermark, for a stream and for a scan.
func TestK29BelowTheWatermark(t *testing.T) {
	x, keys := threeSlots(t, nil)
	ctx := t.Context()
	slots, err := x.Catalog.Slots(ctx, x.Chain, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	mark := catalog.Watermark{Chain: x.Chain, Seq: slots[0].Next - 1, Segment: slots[0].ID, Term: x.Term}
	if _, err := x.Catalog.RaiseWatermark(ctx, mark); err != nil {
		t.Fatal(err)
	}
	x.Delete(keys[0]) // given up: nobody misses it
	r := reader(t, x, coldload.Config{})
	got, err := collect(ctx, r, "a", segment.Pos{}, segment.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, x.Rows["a"][15:])
	scanned, err := scanAll(ctx, r, x, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	sameScan(t, scanned, chainRows(x, mark.Seq+1, nil))
	var re *coldload.ReadError
	if _, err := collect(ctx, r, "a", at(mark.Seq), segment.Pos{}); !errors.Is(err, coldload.ErrTrimmed) || !errors.As(err, &re) || re.First != at(mark.Seq+1) {
		t.Errorf("below the watermark: %v", err)
	}
	var se *coldload.ScanError
	if _, err := scanAll(ctx, r, x, mark.Seq, nil); !errors.Is(err, coldload.ErrTrimmed) || !errors.As(err, &se) || se.First != mark.Seq+1 {
		t.Errorf("below the watermark: %v", err)
	}
	x.Delete(keys[1]) // above it
	if _, err := collect(ctx, r, "a", segment.Pos{}, segment.Pos{}); !errors.Is(err, coldload.ErrLost) || !errors.As(err, &re) || re.Key != keys[1] {
		t.Errorf("above the watermark: %v", err)
	}
	if _, err := scanAll(ctx, r, x, 0, nil); !errors.Is(err, coldload.ErrLost) || !errors.As(err, &se) || se.Key != keys[1] {
		t.Errorf("above the watermark: %v", err)
	}
}

// planner counts and changes what the catalog answers.
type planner struct {
	coldload.Catalog
	calls  atomic.Int64
	change func(call int64, p *catalog.Plan)
}

func (p *planner) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	plan, err := p.Catalog.Plan(ctx, r)
	if n := p.calls.Add(1); err == nil && p.change != nil {
		p.change(n, &plan)
	}
	return plan, err
}

// TestK28: planned, then the object went elsewhere: the reader plans again from
// the row after the last one it delivered.
func TestK28PlansAgain(t *testing.T) {
	x, _ := threeSlots(t, nil)
	p := &planner{Catalog: x.Catalog, change: func(call int64, p *catalog.Plan) {
		if call == 1 { // a plan from before a settle: its second object is gone
			p.Refs[1].Key = segment.SlotKey(segment.Chain{Epoch: 1}, 99)
		}
	}}
	r, err := coldload.New(p, x.Classes, coldload.Config{Clock: x.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, x.Rows["a"])
	if n := p.calls.Load(); n != 2 {
		t.Errorf("planned %d times, want 2", n)
	}
}

// TestK27: a catalog that is stale for ever ends in a typed error, not in a loop.
func TestK27BoundedReplans(t *testing.T) {
	x, _ := threeSlots(t, nil)
	p := &planner{Catalog: x.Catalog, change: func(_ int64, p *catalog.Plan) {
		p.Refs[0].Key = segment.SlotKey(segment.Chain{Epoch: 1}, 99)
	}}
	r, err := coldload.New(p, x.Classes, coldload.Config{Clock: x.Clock.Now, Replans: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{}); !errors.Is(err, coldload.ErrLost) {
		t.Fatalf("want ErrLost, got %v", err)
	}
	if n := p.calls.Load(); n != 3 {
		t.Errorf("planned %d times, want 3", n)
	}
}

// TestHole: refs that do not link are a hole, wherever it is.
func TestHole(t *testing.T) {
	x, _ := threeSlots(t, nil)
	for name, change := range map[string]func(p *catalog.Plan){
		"first missing":  func(p *catalog.Plan) { p.Refs = p.Refs[1:] },
		"middle missing": func(p *catalog.Plan) { p.Refs = append(p.Refs[:1:1], p.Refs[2:]...) },
		"last missing":   func(p *catalog.Plan) { p.Refs = p.Refs[:2] },
		"all missing":    func(p *catalog.Plan) { p.Refs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := &planner{Catalog: x.Catalog, change: func(_ int64, p *catalog.Plan) { change(p) }}
			r, err := coldload.New(p, x.Classes, coldload.Config{Clock: x.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{}); !errors.Is(err, coldload.ErrLost) {
				t.Fatalf("want ErrLost, got %v", err)
			}
		})
	}
}

// TestLies: an object that holds something else than its ref says is corrupt, and
// says where.
func TestLies(t *testing.T) {
	x, keys := threeSlots(t, nil)
	for name, change := range map[string]func(r *catalog.Ref){
		"row sum": func(r *catalog.Ref) { r.RowSum++ },
		"rows":    func(r *catalog.Ref) { r.Rows++ },
		"crc":     func(r *catalog.Ref) { r.CRC++ },
		"sum":     func(r *catalog.Ref) { r.Sum++ },
		"offset":  func(r *catalog.Ref) { r.Offset++ },
		"stream":  func(r *catalog.Ref) { r.Stream = "b" },
	} {
		t.Run(name, func(t *testing.T) {
			p := &planner{Catalog: x.Catalog, change: func(_ int64, p *catalog.Plan) { change(&p.Refs[1]) }}
			r, err := coldload.New(p, x.Classes, coldload.Config{Clock: x.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			_, err = collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{})
			if !errors.Is(err, coldload.ErrCorrupt) && !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("want a corruption, got %v", err)
			}
			if !bytes.Contains([]byte(err.Error()), []byte(keys[1])) {
				t.Errorf("the error does not name the object: %v", err)
			}
		})
	}
}

// TestPlanAges: a GET that would begin after the plan's end is not sent; the reader
// plans again, and goes on where it was.
func TestPlanAges(t *testing.T) {
	var x *tiertest.Tier
	x, _ = threeSlots(t, func(d objstore.Driver) objstore.Driver {
		return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
			if x != nil && c.Op == objstore.OpGet {
				// A slow store: two GETs, which may be under way at once, fit a plan's life.
				x.Clock.Advance(tiertest.ReadGrace / 5)
			}
			return faultstore.Fault{}
		})
	})
	for range 7 {
		x.Slot(tiertest.Write{Stream: "a", Rows: 3, Size: 40})
	}
	p := &planner{Catalog: x.Catalog}
	r, err := coldload.New(p, x.Classes, coldload.Config{Clock: x.Clock.Now, Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, x.Rows["a"])
	if n := p.calls.Load(); n < 2 {
		t.Errorf("planned %d times: an aged plan was relied on", n)
	}
}

// TestRequests counts: one GET a slot, none for footers.
func TestRequests(t *testing.T) {
	x, _ := threeSlots(t, nil)
	before := x.Store.Counters()
	if _, err := collect(t.Context(), reader(t, x, coldload.Config{}), "a", segment.Pos{}, segment.Pos{}); err != nil {
		t.Fatal(err)
	}
	if got := x.Store.Counters().Sub(before).Total(); got != 3 {
		t.Errorf("%d requests for three slots, want 3", got)
	}
}

// TestFaults: whatever call fails, the read is complete or ends in an error; it
// never skips (I7).
func TestFaults(t *testing.T) {
	for _, kind := range []error{objstore.ErrUnavailable, objstore.ErrShort, objstore.ErrDenied} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			for i := 0; ; i++ {
				var on atomic.Bool
				n, hit := 0, false
				x, _ := threeSlots(t, func(d objstore.Driver) objstore.Driver {
					return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
						if !on.Load() || c.Op != objstore.OpGet {
							return faultstore.Fault{}
						}
						n++
						if n-1 < i {
							return faultstore.Fault{}
						}
						hit = true
						return faultstore.Fault{Kind: faultstore.NotApplied, Err: kind}
					})
				})
				on.Store(true)
				got, err := collect(t.Context(), reader(t, x, coldload.Config{Window: 1}), "a", segment.Pos{}, segment.Pos{})
				if !hit {
					same(t, got, x.Rows["a"])
					return
				}
				if !errors.Is(err, kind) {
					t.Fatalf("call %d failed with %v, the read ended with %v", i, kind, err)
				}
				same(t, got, x.Rows["a"][:len(got)])
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	x := tiertest.New(b, nil)
	for range 4 {
		x.Slot(tiertest.Write{Stream: "s", Rows: 20_000, Size: 200})
	}
	r := reader(b, x, coldload.Config{Clock: time.Now})
	b.SetBytes(4 * 20_000 * 200)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range r.Rows(b.Context(), "s", segment.Pos{}, segment.Pos{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 80_000 {
			b.Fatalf("%d rows", n)
		}
	}
}

package check_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tier has two slots with streams whose names sort oddly as keys.
func tier(t testing.TB) *tiertest.Tier { return tierOn(t, memstore.Options{}, nil) }

func tierOn(t testing.TB, opts memstore.Options, wrap func(objstore.Driver) objstore.Driver) *tiertest.Tier {
	x := tiertest.NewOn(t, opts, wrap)
	for range 2 {
		var ws []tiertest.Write
		for _, name := range names {
			ws = append(ws, tiertest.Write{Stream: name, Rows: 4, Size: 50})
		}
		x.Slot(ws...)
	}
	return x
}

var names = []string{"a", "a~b", "A%2F", "ä/ö", "z z", "a\x00b"}

// must walks with small and large pages, which must agree, and returns the report.
func must(t *testing.T, x *tiertest.Tier) *check.Report {
	t.Helper()
	var first *check.Report
	for _, page := range []int{1, 2, 0} {
		pages := &paged{Catalog: x.Catalog, max: page}
		r, err := check.Fsck(t.Context(), pages, x.Classes, check.Config{Page: page})
		if err != nil {
			t.Fatal(err)
		}
		if page > 0 && pages.most > page {
			t.Fatalf("a page of %d rows was read, at most %d may be", pages.most, page)
		}
		if first == nil {
			first = r
		} else if fmt.Sprint(*r) != fmt.Sprint(*first) {
			t.Fatalf("pages of %d say\n%+v\npages of 1\n%+v", page, *r, *first)
		}
	}
	return first
}

// paged watches the sizes of the pages asked for.
type paged struct {
	check.Catalog
	max, most int
}

func (p *paged) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	p.most = max(p.most, limit)
	return p.Catalog.RefsByKey(ctx, after, limit)
}

func (p *paged) Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error) {
	p.most = max(p.most, limit)
	return p.Catalog.Streams(ctx, after, limit)
}

func (p *paged) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	p.most = max(p.most, r.Limit)
	return p.Catalog.Plan(ctx, r)
}

// garbage fails unless these and no other keys are garbage of the state.
func garbage(t *testing.T, r *check.Report, state check.State, keys ...string) {
	t.Helper()
	got := map[string]check.State{}
	for _, g := range r.Garbage {
		got[g.Key] = g.State
	}
	ok := len(r.Garbage) == len(keys) && r.GarbageTotal == int64(len(keys)) && r.DamageTotal == 0
	for _, k := range keys {
		ok = ok && got[k] == state
	}
	if len(keys) > 0 && r.Verdict != check.Garbage || len(keys) == 0 && r.Verdict != check.Clean {
		ok = false
	}
	if !ok {
		t.Fatalf("want %q as %s: %+v", keys, state, *r)
	}
}

func TestClean(t *testing.T) {
	x := tier(t)
	look := func(waiting int64) {
		t.Helper()
		r := must(t, x)
		garbage(t, r, "")
		if r.Waiting != waiting {
			t.Fatalf("%d wait, want %d: %+v", r.Waiting, waiting, *r)
		}
	}
	look(0)
	x.Settle(1)
	look(2) // the slots, until their trim
	x.CondemnSlots()
	look(2)
	x.DeleteSlots()
	look(0)
	x.Slot(tiertest.Write{Stream: "a", Rows: 3, Size: 20})
	x.Settle(1 << 20)
	x.TrimSlots()
	look(0)
	r := must(t, x)
	if r.Streams != int64(len(names)) || r.Refs != int64(len(names))+1 || r.Objects != int64(len(names))+1 {
		t.Errorf("%+v", *r)
	}
	// A trim kills refs; their objects wait for the reap.
	if _, err := x.Catalog.DeleteStream(t.Context(), "a~b"); err != nil {
		t.Fatal(err)
	}
	garbage(t, must(t, x), "")
	x.Walk("a~b")
	garbage(t, must(t, x), check.Pending, segment.StreamKey("a~b", 1, x.Rows["a~b"][0].Seq, 0))
}

func TestStraySlot(t *testing.T) {
	x := tier(t)
	key := x.Keys(segment.KeySlot)[0]
	body, _, err := x.Store.ReadAll(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	x.Settle(1)
	x.TrimSlots()
	x.Put(key, body)
	garbage(t, must(t, x), check.Leaked, key)
}

func TestNotAbsorbedYet(t *testing.T) {
	x := tier(t)
	x.Put(segment.SlotKey(x.Chain, 3), []byte("of a writer under way"))
	r := must(t, x)
	garbage(t, r, "")
	if r.Waiting != 1 {
		t.Fatalf("%+v", *r)
	}
}

func TestLeakedAndUnknown(t *testing.T) {
	leaked := []string{
		segment.StreamKey("a", 1, 999, 0), segment.PackKey(segment.Chain{Epoch: 1}, 1, 2, 7),
		segment.SlotKey(segment.Chain{Epoch: 9}, 1),
	}
	unknown := []string{"hello", "seg/nothing", "meta/strandline2", segment.HeadKey(segment.Chain{Epoch: 9}), segment.TrimKey(segment.Chain{Epoch: 9}, 1), segment.TopologyKey(9)}
	for state, keys := range map[check.State][]string{check.Leaked: leaked, check.Unknown: unknown} {
		x := tier(t)
		for _, k := range keys {
			x.Put(k, []byte("x"))
		}
		x.Put(segment.StampKey(), []byte("{}"))
		x.Put(segment.TopologyKey(1), []byte("{}"))
		x.Put(segment.HeadKey(x.Chain), headOf(t, x.Chain))
		x.Put(segment.TrimKey(x.Chain, 1), []byte("{}"))
		garbage(t, must(t, x), state, keys...)
	}
}

// announce makes an intent for a key, as a job does.
func announce(t *testing.T, x *tiertest.Tier, key string) {
	t.Helper()
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(x.Chain), Owner: "job"}
	if err := x.Catalog.LeaseDuty(t.Context(), h, time.Hour); err != nil {
		t.Fatal(err)
	}
	_, err := x.Catalog.Announce(t.Context(), catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: h, Nonce: "n", Deadline: 30 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
}

func TestIntents(t *testing.T) {
	x := tier(t)
	key := segment.StreamKey("a", 1, 1, 0)
	announce(t, x, key)
	garbage(t, must(t, x), "")
	x.Put(key, []byte("of a job under way"))
	r := must(t, x)
	if garbage(t, r, ""); r.Waiting != 1 {
		t.Fatalf("a job is making it: %+v", *r)
	}
	x.Clock.Advance(31 * time.Minute)
	garbage(t, must(t, x), check.Pending, key)
	x.Clock.Advance(2 * time.Hour)
	ms, err := x.Catalog.MarkersOf(t.Context(), catalog.DutyOrphan, "", 1)
	if err != nil || len(ms) != 1 {
		t.Fatal(ms, err)
	}
	if v, _, err := x.Catalog.CondemnIntent(t.Context(), ms[0].MarkerRef); err != nil || v != catalog.Condemned {
		t.Fatal(v, err)
	}
	garbage(t, must(t, x), check.Pending, key)
	if err := x.Catalog.BurnIntent(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	garbage(t, must(t, x), check.Pending, key) // a request that landed late
}

func TestUploads(t *testing.T) {
	x := tier(t)
	keys := []string{segment.StreamKey("a", 1, 999, 0), segment.SlotKey(x.Chain, 3)}
	odd := "hello/there"
	id, err := x.Mem.CreateUpload(t.Context(), odd, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.Clock.Advance(tiertest.OrphanGrace)
	garbage(t, must(t, x), check.Unknown, odd) // the sweep never touches it
	if err := x.Mem.Abort(t.Context(), odd, id); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if _, err := x.Mem.CreateUpload(t.Context(), k, nil); err != nil {
			t.Fatal(err)
		}
	}
	if r := must(t, x); r.Waiting != 2 || r.Verdict != check.Clean {
		t.Fatalf("young: %+v", *r)
	}
	x.Clock.Advance(tiertest.OrphanGrace)
	r := must(t, x) // the slot's belongs to a living owner
	if garbage(t, r, check.Pending, keys[0]); r.Waiting != 1 || r.Garbage[0].Upload == "" {
		t.Fatalf("old: %+v", *r)
	}
	announce(t, x, keys[0])
	if r := must(t, x); r.Waiting != 2 || r.Verdict != check.Clean {
		t.Fatalf("under an intent: %+v", *r)
	}
}

// damaged fails unless exactly these spans are damaged.
func damaged(t *testing.T, r *check.Report, want ...check.DamageItem) {
	t.Helper()
	if r.Verdict != check.Damage || len(r.Damage) != len(want) || r.DamageTotal != int64(len(want)) {
		t.Fatalf("want %d damaged spans: %+v", len(want), *r)
	}
	for i, w := range want {
		g := r.Damage[i]
		if g.Stream != w.Stream || g.Epoch != 1 || g.First != w.First || g.Last != w.Last || g.Key != w.Key || !strings.Contains(g.Why, w.Why) {
			t.Fatalf("want %+v, got %+v", w, g)
		}
	}
}

// span is all rows of a stream, as one object has them.
func span(x *tiertest.Tier, stream, why string) check.DamageItem {
	rows := x.Rows[stream]
	d := check.DamageItem{Stream: stream, First: rows[0].Seq, Last: rows[len(rows)-1].Seq, Why: why}
	d.Key = segment.StreamKey(stream, 1, d.First, 0)
	return d
}

func TestDanglingRef(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	want := span(x, "z z", "not in the bucket")
	x.Delete(want.Key)
	damaged(t, must(t, x), want)
	// Rows that were given up are no loss.
	want.First = x.Rows["z z"][3].Seq
	if _, err := x.Catalog.TrimStream(t.Context(), "z z", segment.Pos{Epoch: 1, Seq: want.First}); err != nil {
		t.Fatal(err)
	}
	damaged(t, must(t, x), want)
	if _, err := x.Catalog.DeleteStream(t.Context(), "z z"); err != nil {
		t.Fatal(err)
	}
	if r := must(t, x); r.Verdict != check.Clean {
		t.Fatalf("%+v", *r)
	}
}

// TestBrokenObjects: whatever stands at the key instead is damage of its rows.
func TestBrokenObjects(t *testing.T) {
	for name, c := range map[string]struct {
		make func(x *tiertest.Tier, body []byte) []byte
		why  string
	}{
		"empty":          {func(*tiertest.Tier, []byte) []byte { return nil }, "shorter than a trailer"},
		"a few bytes":    {func(_ *tiertest.Tier, b []byte) []byte { return b[:20] }, "shorter than a trailer"},
		"truncated":      {func(_ *tiertest.Tier, b []byte) []byte { return b[:len(b)-1] }, "corrupt"},
		"a flipped bit":  {func(_ *tiertest.Tier, b []byte) []byte { b[len(b)-segment.TrailerBytes-3] ^= 4; return b }, "corrupt"},
		"another stream": {func(x *tiertest.Tier, _ []byte) []byte { return read(x, span(x, "a", "").Key) }, "no chunk of the stream"},
		"another kind":   {func(x *tiertest.Tier, _ []byte) []byte { return read(x, x.Keys(segment.KeySlot)[0]) }, "a slot"},
	} {
		t.Run(name, func(t *testing.T) {
			x := tier(t)
			x.Settle(1)
			want := span(x, "z z", c.why)
			body := c.make(x, read(x, want.Key))
			x.Delete(want.Key)
			x.Put(want.Key, body)
			damaged(t, must(t, x), want)
		})
	}
}

func read(x *tiertest.Tier, key string) []byte {
	x.T.Helper()
	body, _, err := x.Store.ReadAll(x.T.Context(), key, 1<<20)
	if err != nil {
		x.T.Fatal(err)
	}
	return bytes.Clone(body)
}

// skewed changes what the catalog says.
type skewed struct {
	check.Catalog
	ref  func(r *catalog.Ref)
	plan func(p *catalog.Plan)
}

func (s *skewed) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	return s.skew(s.Catalog.RefsByKey(ctx, after, limit))
}

func (s *skewed) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	return s.skew(s.Catalog.Liveness(ctx, key))
}

func (s *skewed) skew(refs []catalog.LiveRef, err error) ([]catalog.LiveRef, error) {
	for i := range refs {
		if s.ref != nil && refs[i].Stream == "z z" {
			s.ref(&refs[i].Ref)
		}
	}
	return refs, err
}

func (s *skewed) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	p, err := s.Catalog.Plan(ctx, r)
	if err == nil && s.plan != nil && r.Stream == "z z" {
		s.plan(&p)
	}
	return p, err
}

func TestFooterAgainstRefs(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	for name, c := range map[string]struct {
		ref func(r *catalog.Ref)
		why string
	}{
		"row sum":       {func(r *catalog.Ref) { r.RowSum++ }, "of sum"},
		"rows":          {func(r *catalog.Ref) { r.Rows++ }, "rows of sum"},
		"covers less":   {func(r *catalog.Ref) { r.Last++ }, "covers rows"},
		"begins before": {func(r *catalog.Ref) { r.First--; r.Rows++ }, "rows of sum"},
		"offset":        {func(r *catalog.Ref) { r.Offset += 4 }, "readers go by the ref"},
		"stored":        {func(r *catalog.Ref) { r.Stored-- }, "readers go by the ref"},
		"crc":           {func(r *catalog.Ref) { r.CRC++ }, "readers go by the ref"},
		"digest":        {func(r *catalog.Ref) { r.Sum++ }, "readers go by the ref"},
		"codec":         {func(r *catalog.Ref) { r.Codec ^= 1 }, "readers go by the ref"},
		"raw":           {func(r *catalog.Ref) { r.Raw++ }, "readers go by the ref"},
	} {
		r, err := check.Fsck(t.Context(), &skewed{Catalog: x.Catalog, ref: c.ref}, x.Classes, check.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != check.Damage || len(r.Damage) != 1 || r.Damage[0].Stream != "z z" || !strings.Contains(r.Damage[0].Why, c.why) {
			t.Errorf("%s: %+v", name, *r)
		}
	}
	// The rest of a shorter output begins at another stream's row.
	r, err := check.Fsck(t.Context(), &skewed{Catalog: x.Catalog, ref: func(r *catalog.Ref) { r.First -= 2 }}, x.Classes, check.Config{})
	if err != nil || r.Verdict != check.Clean {
		t.Errorf("first below its first row: %+v, %v", r, err)
	}
}

func TestHoles(t *testing.T) {
	x := tier(t)
	x.Slot(tiertest.Write{Stream: "z z", Rows: 4, Size: 50})
	rows := x.Rows["z z"]
	for name, c := range map[string]struct {
		plan        func(p *catalog.Plan)
		first, last segment.Seq
	}{
		"first":  {func(p *catalog.Plan) { p.Refs = p.Refs[1:] }, 1, rows[3].Seq},
		"middle": {func(p *catalog.Plan) { p.Refs = append(p.Refs[:1:1], p.Refs[2:]...) }, rows[3].Seq + 1, rows[7].Seq},
		"last":   {func(p *catalog.Plan) { p.Refs = p.Refs[:2] }, rows[7].Seq + 1, rows[11].Seq},
		"all":    {func(p *catalog.Plan) { p.Refs = nil }, 1, rows[11].Seq},
		"overlap": {func(p *catalog.Plan) {
			p.Refs[0].Last, p.Refs[1].PrevLast = p.Refs[1].First, segment.Pos{Epoch: 1, Seq: p.Refs[1].First}
		}, rows[4].Seq, rows[7].Seq},
		"tip below":    {func(p *catalog.Plan) { p.Stream.Last.Seq-- }, rows[8].Seq, rows[11].Seq},
		"beyond chain": {func(p *catalog.Plan) { p.Stream.Last.Seq += 10; p.Refs[2].Last += 10 }, rows[8].Seq, rows[11].Seq + 10},
	} {
		r, err := check.Fsck(t.Context(), &skewed{Catalog: x.Catalog, plan: c.plan}, x.Classes, check.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Damage) != 1 || r.Damage[0].Stream != "z z" || r.Damage[0].First != c.first || r.Damage[0].Last != c.last {
			t.Errorf("%s: want %d to %d: %+v", name, c.first, c.last, *r)
		}
	}
}

// TestTransient: whatever single call fails, of store or catalog, the walk ends in
// that error or is as clean as without; no verdict is built on it (K16, K21).
func TestTransient(t *testing.T) {
	for _, kind := range []faultstore.Kind{faultstore.NotApplied, faultstore.ShortBody, faultstore.TruncatedList, faultstore.WrongBytes} {
		hits := 0
		for i := 1; ; i++ {
			on, n, hit := false, 0, false
			x := tierOn(t, memstore.Options{PageSize: 3}, func(d objstore.Driver) objstore.Driver {
				return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
					fits := kind == faultstore.NotApplied || c.Op == objstore.OpGet && kind != faultstore.TruncatedList || c.Op == objstore.OpList && kind == faultstore.TruncatedList
					if !on || !fits {
						return faultstore.Fault{}
					}
					if n++; n != i {
						return faultstore.Fault{}
					}
					hit = true
					f := faultstore.Fault{Kind: kind, Keep: 1}
					if kind == faultstore.NotApplied {
						f.Err = objstore.ErrDenied // not tried again
					}
					return f
				})
			})
			x.Settle(1 << 20)
			x.Put(segment.StreamKey("a", 1, 999, 0), []byte("leaked"))
			on = true
			r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{})
			if err == nil && r.Verdict == check.Unreadable {
				if kind != faultstore.NotApplied || r.UnreadableTotal != 1 || r.LeakedTotal != 1 || r.DamageTotal != 0 {
					t.Fatalf("call %d: %+v", i, *r)
				}
			} else if err == nil {
				garbage(t, r, check.Leaked, segment.StreamKey("a", 1, 999, 0))
			} else if kind == faultstore.WrongBytes || kind == faultstore.NotApplied && !errors.Is(err, objstore.ErrDenied) {
				t.Fatalf("call %d: %v", i, err)
			}
			if !hit {
				break
			}
			hits++
		}
		if hits == 0 {
			t.Fatalf("fault %v was never hit", kind)
		}
	}
}

func TestNoStoreForAClass(t *testing.T) {
	x := tier(t)
	classes := objstore.Classes{"express": {x.Store}}
	if r, err := check.Fsck(t.Context(), x.Catalog, classes, check.Config{}); err == nil {
		t.Fatalf("the refs' class was not walked: %+v", *r)
	}
}

func TestTwoBuckets(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	mem := memstore.New(memstore.Options{Clock: x.Clock.Now})
	second, err := objstore.New(mem, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	set := &x.Classes
	(*set)["standard"] = append((*set)["standard"], second)
	if r := must(t, x); r.Verdict != check.Clean {
		t.Fatalf("only the deciding bucket must hold everything: %+v", *r)
	}
	want := span(x, "a", "shorter than a trailer")
	if _, err := second.PutOnce(t.Context(), want.Key, []byte("a bad copy"), nil); err != nil {
		t.Fatal(err)
	}
	r := must(t, x)
	if r.Verdict != check.Rotten || r.DamageTotal != 0 || r.RottenTotal != 1 || r.Rotten[0].Key != want.Key || !strings.Contains(r.Rotten[0].Why, want.Why) {
		t.Fatalf("%+v", *r)
	}
	if _, err := mem.Delete(t.Context(), []string{want.Key}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.PutOnce(t.Context(), segment.StreamKey("a", 1, 999, 0), []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	garbage(t, must(t, x), check.Leaked, segment.StreamKey("a", 1, 999, 0))
	want.Why = "not in the bucket"
	x.Delete(want.Key)
	if r := must(t, x); r.DamageTotal != 1 || r.Damage[0].Key != want.Key {
		t.Fatalf("%+v", *r)
	}
}

func TestUnorderedListing(t *testing.T) {
	x := tierOn(t, memstore.Options{Shuffle: 7, PageSize: 2, EmptyPages: true}, nil)
	x.Settle(1)
	x.Put("hello", nil)
	want := span(x, "a", "not in the bucket")
	garbage(t, must(t, x), check.Unknown, "hello")
	x.Delete(want.Key)
	if r := must(t, x); r.DamageTotal != 1 || r.Damage[0].Key != want.Key || r.GarbageTotal != 1 {
		t.Fatalf("%+v", *r)
	}
}

func TestFindingsAreCapped(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	for i := range 20 {
		x.Put(fmt.Sprint("junk", i), nil)
	}
	for _, name := range names {
		x.Delete(span(x, name, "").Key)
	}
	r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{MaxFindings: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Garbage) != 3 || r.GarbageTotal != 20 || len(r.Damage) != 3 || r.DamageTotal != int64(len(names)) || r.Verdict != check.Damage {
		t.Fatalf("%+v", *r)
	}
}

func TestCensus(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	x.Put("hello", []byte("12345"))
	got, err := check.Census(t.Context(), x.Classes)
	if err != nil {
		t.Fatal(err)
	}
	if got["slot"].Objects != 2 || got["stream"].Objects != int64(len(names)) || got["unknown"] != (check.Count{Objects: 1, Bytes: 5}) {
		t.Fatalf("%+v", got)
	}
}

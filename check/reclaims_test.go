package check_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// raise gives up the first slot of tier, 24 rows.
func raise(t *testing.T, x *tiertest.Tier) {
	t.Helper()
	if _, err := x.Catalog.RaiseWatermark(t.Context(), catalog.Watermark{Chain: x.Chain, Seq: 24, Segment: 1, Term: x.Term}); err != nil {
		t.Fatal(err)
	}
}

func retire(t *testing.T, x *tiertest.Tier) {
	t.Helper()
	refs, _, err := x.Catalog.DeadRefs(t.Context(), x.Chain, 0)
	if err != nil || len(refs) == 0 {
		t.Fatal(refs, err)
	}
	if n, err := x.Catalog.RetireRefs(t.Context(), refs); err != nil || n != len(refs) {
		t.Fatal(n, err)
	}
}

func resolve(t *testing.T, x *tiertest.Tier) {
	t.Helper()
	m, err := x.Catalog.Marker(t.Context(), catalog.DutyReclaim, catalog.ChainID(x.Chain))
	if err == nil {
		err = x.Catalog.Resolve(t.Context(), m.MarkerRef)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A watermark that is ahead of its reclaim: refs that it gave up are pending while the
// marker stands, and a leak without it.
func TestRefsBelowTheWatermark(t *testing.T) {
	x := tier(t)
	raise(t, x)
	key := segment.SlotKey(x.Chain, 1)
	garbage(t, must(t, x), check.Pending, key)
	resolve(t, x)
	garbage(t, must(t, x), check.Leaked, key)
	retire(t, x)
	r := must(t, x)
	if garbage(t, r, ""); r.Waiting != 1 || r.Refs != int64(len(names)) {
		t.Fatalf("%+v", *r)
	}
}

// K29: an object that is gone: below the watermark its rows were given up, above it
// they are lost.
func TestK29GoneBelowAndAboveTheWatermark(t *testing.T) {
	t.Run("slots", func(t *testing.T) {
		x := tier(t)
		raise(t, x)
		x.Delete(segment.SlotKey(x.Chain, 1))
		garbage(t, must(t, x), check.Pending, segment.SlotKey(x.Chain, 1))
		x.Delete(segment.SlotKey(x.Chain, 2))
		r := must(t, x)
		if len(r.Damage) != len(names) || r.Verdict != check.Damage {
			t.Fatalf("%+v", *r)
		}
		for _, d := range r.Damage {
			if d.First < 25 || d.Key != segment.SlotKey(x.Chain, 2) {
				t.Errorf("%+v: rows that were given up are not lost", d)
			}
		}
	})
	t.Run("an object that straddles", func(t *testing.T) {
		x := tier(t)
		x.Settle(1)
		raise(t, x)
		key := segment.StreamKey("a", 1, x.Rows["a"][0].Seq, 0)
		x.Delete(key)
		r := must(t, x)
		if len(r.Damage) != 1 || r.Damage[0].First != 25 || r.Damage[0].Key != key {
			t.Errorf("%+v, want the rows of a from 25 on", *r)
		}
	})
}

// endedMeanwhile ends the reclaim right after its refs were seen.
type endedMeanwhile struct {
	check.Catalog
	end func()
}

func (e *endedMeanwhile) DeadRefs(ctx context.Context, c segment.Chain, limit int) ([]catalog.Ref, bool, error) {
	refs, more, err := e.Catalog.DeadRefs(ctx, c, limit)
	if e.end != nil {
		e.end()
		e.end = nil
	}
	return refs, more, err
}

func TestReclaimThatEndsMeanwhile(t *testing.T) {
	x := tier(t)
	raise(t, x)
	cat := &endedMeanwhile{Catalog: x.Catalog, end: func() { retire(t, x); resolve(t, x) }}
	r, err := check.Fsck(t.Context(), cat, x.Classes, check.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if garbage(t, r, ""); cat.end != nil {
		t.Error("nothing was looked at")
	}
}

// closeChain absorbs a fence that ends the chain.
func closeChain(t *testing.T, x *tiertest.Tier) {
	t.Helper()
	row, err := x.Catalog.Chain(t.Context(), x.Chain)
	if err != nil {
		t.Fatal(err)
	}
	u, now := uuid.New(), x.Clock.Now().UnixNano()
	body := segment.AppendHeader(nil, u)
	frame := func(kind segment.Kind, payload []byte, err error) {
		t.Helper()
		if err == nil {
			body, err = segment.AppendFrame(body, u, int64(len(body)), kind, 0, payload)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	start, err := segment.AppendStart(nil, &segment.Start{Chain: x.Chain, ID: row.AbsorbedEnd, Base: row.NextSeq, Term: x.Term, Prev: row.LastUUID, Created: now})
	frame(segment.KindStart, start, err)
	frame(segment.KindSeal, segment.AppendSeal(nil, segment.Seal{Frames: 1, Next: row.NextSeq, Digest: xxhash.Sum64(body)}), nil)
	plan, err := segment.PlanBundle(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	var obj bytes.Buffer
	f, err := plan.WriteTo(&obj, segment.BundleOptions{Object: uuid.New(), Created: now, Writer: "test", Sealed: now, Fence: true, Closed: true})
	if err != nil {
		t.Fatal(err)
	}
	key := segment.SlotKey(x.Chain, row.AbsorbedEnd)
	x.Put(key, obj.Bytes())
	bucket := absorb.Bucket{Set: objstore.Set{x.Store}, Class: segment.ClassStandard}
	if _, err = x.Catalog.AbsorbSlot(t.Context(), absorb.FromFooter(f, bucket, key, int64(obj.Len()), absorb.Caller{Owner: x.Owner, Term: x.Term})); err != nil {
		t.Fatal(err)
	}
}

func TestClosedChain(t *testing.T) {
	x := tier(t)
	closeChain(t, x)
	for _, step := range [][2]catalog.TopologyState{{catalog.TopologyOpen, catalog.TopologyClosing}, {catalog.TopologyClosing, catalog.TopologyClosed}} {
		garbage(t, must(t, x), "")
		if _, err := x.Catalog.SetTopologyState(t.Context(), 1, step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	garbage(t, must(t, x), "")
	stray := segment.SlotKey(x.Chain, 4)
	x.Put(stray, []byte("of a writer that never heard"))
	garbage(t, must(t, x), check.Unknown, stray)
}

// half says that epoch 1 is closed, whatever its chains are.
type half struct{ check.Catalog }

func (h half) Topologies(ctx context.Context) ([]catalog.Topology, error) {
	all, err := h.Catalog.Topologies(ctx)
	for i := range all {
		all[i].State = catalog.TopologyClosed
	}
	return all, err
}

func TestClosedEpochWithAnOpenChain(t *testing.T) {
	x := tier(t)
	if r, err := check.Fsck(t.Context(), half{x.Catalog}, x.Classes, check.Config{}); !errors.Is(err, catalog.ErrCorrupt) {
		t.Errorf("%+v, %v", r, err)
	}
}

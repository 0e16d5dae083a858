package settle

import (
	"fmt"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// large publishes a slot of one stream in so many chunks, 8 MiB each.
func (x *tier) large(chunks int) {
	var ws []write
	for range 8 * chunks {
		ws = append(ws, write{stream: "s", rows: 16, size: 64<<10 - 64, noise: true})
	}
	x.slot(ws...)
}

// Objects of large chunks move within the store: 95 % of the bytes at least, in few
// requests, by gc and by tail-fill.
func TestRewritesCopyWithinTheStore(t *testing.T) {
	build := func(t *testing.T) *tier {
		x := newTier(t)
		x.rows = nil // a reading of them all would be the longest part of this test
		x.lax = true
		for _, chunks := range []int{6, 3} {
			x.large(chunks)
			x.settle(x.settler(Config{SettleAge: -1}))
		}
		return x
	}
	for name, c := range map[string]struct {
		duty catalog.Duty
		prep func(x *tier)
		// copies: a source's run of chunks goes with one request, up to 64 MiB.
		sources, copies int64
	}{
		"tail-fill": {catalog.DutyTailFill, func(*tier) {}, 2, 2},
		"gc": {catalog.DutyGC, func(x *tier) {
			f, _, err := readTail(x.t.Context(), x.store, segment.StreamKey("s", 1, 1, 0))
			must(x.t, err)
			x.trim("s", f.Chunks[len(f.Chunks)/2].First)
			must(x.t, x.db.Arm(x.t.Context(), catalog.DutyGC, segment.StreamKey("s", 1, 1, 0), segment.ClassStandard, 0))
		}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			x := build(t)
			c.prep(x)
			m := x.taken(c.duty)
			before := x.store.Counters()
			rep, err := x.settler(Config{}).RunMarker(t.Context(), m, "settler-1")
			must(t, err)
			n := x.store.Counters().Sub(before)
			moved := rep.Through + rep.ServerSide
			if len(rep.Failures) != 0 || moved < 20<<20 || float64(rep.ServerSide) < 0.95*float64(moved) {
				t.Fatalf("%d of %d bytes within the store: %+v", rep.ServerSide, moved, rep)
			}
			if n.BytesIn+n.BytesOut > moved/20 {
				t.Errorf("%d bytes in, %d out, of %d", n.BytesIn, n.BytesOut, moved)
			}
			if got := n.Requests[objstore.OpCopyPart]; got > c.copies {
				t.Errorf("%d copies, at most %d wanted", got, c.copies)
			}
			if got := n.Requests[objstore.OpHead]; got != 0 {
				t.Errorf("%d HEADs, though every source's footer was read", got)
			}
			x.costs(t, n, cost{sources: c.sources, outputs: 1})
		})
	}
}

// What is copied in one request stands in a row in its source: a pack's chunks with a
// dead one between them do not.
func TestCopiedRunsAreContiguous(t *testing.T) {
	x := newTier(t)
	var ws []write
	for _, stream := range []string{"a", "b", "c"} {
		ws = append(ws, write{stream: stream, rows: 96, size: 64 << 10, noise: true})
	}
	x.slot(ws...)
	cfg := Config{SettleAge: -1, StreamObjectMin: 32 << 20}
	x.settle(x.settler(cfg))
	x.remove("b")
	must(t, x.db.Arm(t.Context(), catalog.DutyGC, x.keyOf("a"), segment.ClassStandard, 0))
	rep, err := x.settler(cfg).RunMarker(t.Context(), x.taken(catalog.DutyGC), "settler-1")
	must(t, err)
	if rep.ServerSide != rep.StoredBytes-rep.Through || rep.ServerSide < 12<<20 || rep.Requests.Requests[objstore.OpCopyPart] != 2 {
		t.Errorf("report %+v", rep)
	}
}

// A short chunk between long ones is taken along by their copy: it ends no run, so that
// no head of the next one passes through the process.
func TestLoneShortChunksAreCopiedAlong(t *testing.T) {
	x := newTier(t)
	x.rows, x.lax = nil, true
	for range 2 {
		x.large(3)
		x.slot(write{stream: "s", rows: 16, size: 64 << 10, noise: true})
	}
	x.settle(x.settler(Config{SettleAge: -1}))
	key := segment.StreamKey("s", 1, 1, 0)
	f, _, err := readTail(t.Context(), x.store, key)
	must(t, err)
	short := 0
	for _, c := range f.Chunks[1 : len(f.Chunks)-1] {
		if c.Stored < copyMin {
			short++
		}
	}
	if short == 0 {
		t.Fatalf("no short chunk between long ones: %+v", f.Chunks)
	}
	x.trim("s", f.Chunks[1].First)
	must(t, x.db.Arm(t.Context(), catalog.DutyGC, key, segment.ClassStandard, 0))
	rep, err := x.settler(Config{}).RunMarker(t.Context(), x.taken(catalog.DutyGC), "settler-1")
	must(t, err)
	if rep.Through > 1<<20 || rep.ServerSide < 32<<20 || rep.Requests.Requests[objstore.OpCopyPart] != 1 {
		t.Errorf("%d bytes through the process, %d within the store: %+v", rep.Through, rep.ServerSide, rep)
	}
}

// cost is what a batch may ask for: see costs.
type cost struct{ sources, outputs int64 }

// costs is I9 for a batch of a rewrite:
//
//	PUT-like <= 2 x outputs + parts         a create and a complete for each output, or one PUT
//	GETs     <= 2 x sources + parts         the live part of each source and its footer, and
//	                                        one for each part that is begun by a source's head
//	HEADs    <= sources                     those that move as a whole without a footer
func (x *tier) costs(t *testing.T, n objstore.Counters, c cost) {
	t.Helper()
	parts := n.Requests[objstore.OpCopyPart] + n.Requests[objstore.OpUploadPart]
	if got := n.PutLike(); got > 2*c.outputs+parts {
		t.Errorf("I9: %d PUT-like requests for %d outputs of %d parts: %v", got, c.outputs, parts, n.Requests)
	}
	if got := n.Requests[objstore.OpGet]; got > 2*c.sources+parts {
		t.Errorf("I9: %d GETs for %d sources and %d parts: %v", got, c.sources, parts, n.Requests)
	}
	if got := n.Requests[objstore.OpHead]; got > c.sources {
		t.Errorf("I9: %d HEADs for %d sources: %v", got, c.sources, n.Requests)
	}
	if all := n.PutLike() + n.Requests[objstore.OpGet] + n.Requests[objstore.OpHead]; n.Total() != all {
		t.Errorf("I9: other requests than these: %v", n.Requests)
	}
}

// I9 for each policy, with small objects: one PUT an output, and of each source what is
// live and no footer, for a ref to one chunk needs none.
func TestI9OfRewrites(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := smallParts(t)
			sc.build(x)
			m := x.taken(sc.duty)
			want := cost{1, 1}
			switch sc.duty {
			case catalog.DutyTailFill:
				want.sources = 2
			case catalog.DutyPackMerge:
				want = cost{3, 2}
			}
			before := x.store.Counters()
			rep, err := x.settlerOn(x.store, x.db, few()).RunMarker(t.Context(), m, "settler-1")
			must(t, err)
			n := x.store.Counters().Sub(before)
			if int64(rep.Outputs) != want.outputs || n.PutLike() != want.outputs || n.Requests[objstore.OpGet] != want.sources {
				t.Errorf("%d outputs, requests %v", rep.Outputs, n.Requests)
			}
			x.costs(t, n, want)
		})
	}
}

// Tiny streams for ever: packs are merged as they come, so that requests for each slot
// stay bounded, and refs to a stream grow with the logarithm of its slots.
func TestMergesBoundPacksAndRefs(t *testing.T) {
	x := smallParts(t)
	cfg := few()
	s := x.settlerOn(x.store, x.db, cfg)
	const slots = 27
	for i := range slots {
		x.slot(write{stream: "a", rows: 2, size: 50}, write{stream: fmt.Sprintf("b%d", i%5), rows: 1, size: 50})
		x.settle(s)
		x.pays(s)
	}
	if refs := x.refsOf("a"); len(refs) != 1 || refs[0].Generation != 3 {
		t.Errorf("%d slots, %d refs: %+v", slots, len(refs), refs)
	}
	n := x.store.Counters()
	// A slot's own PUT, its pack's, and a share of 1/3 + 1/9 + 1/27 of merges.
	if got := n.PutLike(); got > 3*slots {
		t.Errorf("%d PUT-like requests for %d slots", got, slots)
	}
}

// A stream written evenly: its tail is filled step by step, each byte O(log n) times.
func TestTailFillsCascade(t *testing.T) {
	x := smallParts(t)
	s := x.settlerOn(x.store, x.db, few())
	const windows = 16
	var moved, once int64
	for range windows {
		x.slot(write{stream: "s", rows: 40, size: 2000, noise: true})
		x.settle(s)
		refs := x.refsOf("s")
		once += refs[len(refs)-1].Stored
		for len(x.debts()) > 0 {
			rep, err := s.RunMarker(t.Context(), x.debts()[0], "settler-1")
			must(t, err)
			moved += rep.StoredBytes
		}
	}
	refs := x.refsOf("s")
	if len(refs) > 4 {
		t.Errorf("%d windows stand in %d refs", windows, len(refs))
	}
	if moved == 0 || moved > 5*once {
		t.Errorf("%d bytes were rewritten of %d: more than log2(%d)+1 times", moved, once, windows)
	}
}

// The target ends the filling.
func TestTailTargetEndsTheFilling(t *testing.T) {
	x := smallParts(t)
	cfg := few()
	cfg.TailTarget = 150 << 10
	s := x.settlerOn(x.store, x.db, cfg)
	for range 6 {
		x.slot(write{stream: "s", rows: 40, size: 2000, noise: true})
		x.settle(s)
		x.pays(s)
	}
	if refs := x.refsOf("s"); len(refs) != 3 || refs[0].Stored < cfg.TailTarget {
		t.Errorf("refs %+v", refs)
	}
}

// A member that keeps failing keeps its packs the earliest. They hold up the others a
// few attempts at most.
func TestStuckPacksHoldUpNobody(t *testing.T) {
	x := smallParts(t)
	cfg := few()
	s := x.settlerOn(x.store, x.db, cfg)
	for range 3 {
		x.slot(write{stream: "bad", rows: 3, size: 50}, write{stream: "a", rows: 3, size: 50})
		x.settle(s)
	}
	var stuck []string
	for _, r := range x.refsOf("bad") {
		stuck = append(stuck, r.Key)
	}
	x.lax = true
	for _, key := range stuck {
		x.damage(key, "bad")
	}
	s = x.settlerOn(x.store, x.db, cfg)
	for range 3 {
		x.slot(write{stream: "a", rows: 3, size: 50})
		x.settle(s)
	}
	for range 4 {
		m := x.debts(catalog.DutyPackMerge)[0]
		rep, err := s.RunMarker(t.Context(), m, "settler-1")
		must(t, err)
		if len(rep.Failures) != 1 || rep.Failures[0].Stream != "bad" {
			t.Fatalf("report %+v", rep)
		}
		must(t, x.db.Postpone(t.Context(), m.MarkerRef, 0, rep.Failures[0].Err.Error()))
	}
	for _, r := range x.refsOf("a") {
		if r.Generation == 0 {
			t.Errorf("ref %s of a waits behind %v", r.FirstPos(), stuck)
		}
	}
}

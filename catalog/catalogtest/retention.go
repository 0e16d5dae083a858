package catalogtest

import (
	"slices"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// interest is a policy whose floor is one of World's slots.
var interest = catalog.Retention{Mode: catalog.RetentionInterest, SegmentBytes: 1000, MinSegments: 1}

func testAckClosed(t *testing.T, open Open) {
	w := NewWorld(t, open)
	a := w.Build("a:5")
	a.Consumers = []segment.Consumer{{Name: "fast", Cursor: 4}, {Name: "slow", Cursor: 1}}
	_, err := w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	w.Continue(a)
	ack := func(name string, seq segment.Seq) error {
		_, err := w.C.AckClosed(w.Ctx, w.Chain, name, seq)
		return err
	}
	w.Is(ack("slow", 2), catalog.ErrConflict, "chain closed")
	w.closeChain()
	w.Is(ack("none", 2), catalog.ErrNotFound, "")
	w.Is(ack("slow", 6), catalog.ErrInvalid, "")
	_, err = w.C.AckClosed(w.Ctx, segment.Chain{Epoch: 7}, "slow", 1)
	w.Is(err, catalog.ErrNotFound, "")
	armed := func() int64 {
		m, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
		return m.Version
	}
	before := armed()
	w.OK(ack("fast", 5))
	Equal(t, "slowest did not move", armed(), before)
	row, err := w.C.AckClosed(w.Ctx, w.Chain, "slow", 3)
	w.OK(err)
	if armed() == before {
		t.Fatal("slowest moved: trim-check is armed")
	}
	Equal(t, "cursor", row.Consumers[1], segment.Consumer{Name: "slow", Cursor: 3})
	w.OK(ack("slow", 2))
	Equal(t, "never back", w.Row().Consumers[1].Cursor, 3)
	w.OK(ack("slow", 5)) // the last row
}

func testMarkerVerb(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:1")
	id := catalog.SettleID(w.Chain, 1)
	got, err := w.C.Marker(w.Ctx, catalog.DutySettle, id)
	w.OK(err)
	want, _ := w.Marker(catalog.DutySettle, id)
	Equal(t, "marker", got, want)
	for _, none := range []string{catalog.SettleID(w.Chain, 2), "", id[:len(id)-1]} {
		_, err = w.C.Marker(w.Ctx, catalog.DutySettle, none)
		w.Is(err, catalog.ErrNotFound, "")
	}
	_, err = w.C.Marker(w.Ctx, catalog.DutyGC, id)
	w.Is(err, catalog.ErrNotFound, "")
}

// raise is RaiseWatermark as nobody's.
func (w *World) raise(seq segment.Seq, id segment.ID, term segment.Term) (catalog.ChainRow, error) {
	return w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: w.Chain, Seq: seq, Segment: id, Term: term})
}

func testWatermark(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 4 { // rows 1-2, 3-4, 5-6, 7-8
		a := w.Build("a:2")
		a.Consumers = []segment.Consumer{{Name: "slow", Cursor: 6}}
		_, err := w.C.AbsorbSlot(w.Ctx, a)
		w.OK(err)
		w.Continue(a)
	}
	void := w.Build("a:2")
	void.Slot.Prev, void.Void, void.Reason = UUID(77), true, "does not link"
	_, err := w.C.AbsorbSlot(w.Ctx, void)
	w.OK(err)
	w.ID++
	for _, c := range []struct {
		name, guard string
		kind        error
		seq         segment.Seq
		id          segment.ID
		term        segment.Term
	}{
		{"no seq", "", catalog.ErrInvalid, 0, 1, w.Term},
		{"no segment", "", catalog.ErrInvalid, 2, 0, w.Term},
		{"another's term", "term", catalog.ErrConflict, 4, 2, w.Term + 1},
		{"the lease lives", "lease", catalog.ErrConflict, 4, 2, 0},
		{"a consumer has yet to pass", "consumer", catalog.ErrConflict, 8, 4, w.Term},
		{"absorbed_end", "absorbed_end", catalog.ErrConflict, 6, 6, w.Term},
		{"no slot ends there", "slot", catalog.ErrConflict, 5, 3, w.Term},
		{"another slot ends there", "slot", catalog.ErrConflict, 6, 2, w.Term},
		{"a void slot", "slot", catalog.ErrConflict, 6, 5, w.Term},
	} {
		if _, err := w.raise(c.seq, c.id, c.term); err == nil {
			t.Fatalf("%s: raised", c.name)
		} else {
			w.Is(err, c.kind, c.guard)
		}
	}
	_, err = w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: segment.Chain{Epoch: 8}, Seq: 1, Segment: 1})
	w.Is(err, catalog.ErrNotFound, "")
	Equal(t, "nothing was given up", w.Row().WatermarkSeq, 0)
	reclaim := func() (catalog.Marker, bool) { return w.Marker(catalog.DutyReclaim, catalog.ChainID(w.Chain)) }
	if _, ok := reclaim(); ok {
		t.Fatal("a refused watermark armed reclaim")
	}

	row, err := w.raise(4, 2, w.Term)
	w.OK(err)
	Equal(t, "watermark", [2]uint64{uint64(row.WatermarkSeq), uint64(row.WatermarkSegment)}, [2]uint64{4, 2})
	Equal(t, "stands", w.Row().WatermarkSeq, 4)
	m, ok := reclaim()
	if !ok || m.Due.After(w.Clock.Now()) {
		t.Fatalf("reclaim is armed with it, at once: %+v %v", m, ok)
	}
	Equal(t, "live_from", w.Refs("a")[0].First, 5)
	for _, below := range [][2]uint64{{4, 2}, {2, 1}} { // a lost answer, an older plan
		row, err = w.raise(segment.Seq(below[0]), segment.ID(below[1]), w.Term)
		w.OK(err)
		Equal(t, "never back", row.WatermarkSeq, 4)
	}
	again, _ := reclaim()
	Equal(t, "a no-op arms nothing", again.Version, m.Version)
	// Nobody's plan counts once the lease is over.
	w.Clock.Advance(leaseTime)
	row, err = w.raise(6, 3, 0)
	w.OK(err)
	Equal(t, "watermark", row.WatermarkSegment, 3)
}

// testWatermarkClosed: a closed chain's lease says nothing; its last slot may go too.
func testWatermarkClosed(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:2")
	w.closeChain()
	row, err := w.raise(2, 1, 0)
	w.OK(err)
	Equal(t, "watermark", row.WatermarkSeq, 2)
	row, err = w.raise(2, 2, 0) // the fence that closed it
	w.OK(err)
	Equal(t, "segment", row.WatermarkSegment, 2)
}

// testAbsorbNewConsumer: who comes later starts no lower than the watermark.
func testAbsorbNewConsumer(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:5")
	_, err := w.raise(5, 1, w.Term)
	w.OK(err)
	a := w.Build("a:5")
	a.Consumers = []segment.Consumer{{Name: "early", Cursor: 0}, {Name: "late", Cursor: 7}}
	got, err := w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	Equal(t, "early", got.Chain.Consumers[0].Cursor, 5)
	Equal(t, "late", got.Chain.Consumers[1].Cursor, 7)
	Equal(t, "absorbed refs of rows above", got.Dead, 0)
}

func testDeadRefs(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:2 b:2 c:1") // 1-5
	w.Absorb("a:2 b:2")     // 6-9
	w.Absorb("a:1 b:1 d:1") // 10-12
	w.Settle("a")           // one object over all three slots
	dead := func(limit int) []catalog.Ref {
		refs, more, err := w.C.DeadRefs(w.Ctx, w.Chain, limit)
		w.OK(err)
		all, _, err := w.C.DeadRefs(w.Ctx, w.Chain, 0)
		w.OK(err)
		Equal(t, "more", more, len(all) > len(refs))
		return refs
	}
	straddling := func(after *catalog.Ref) []catalog.Ref {
		refs, _, err := w.C.StraddlingRefs(w.Ctx, w.Chain, after, 0)
		w.OK(err)
		return refs
	}
	Equal(t, "no watermark, none dead", len(dead(0)), 0)
	Equal(t, "no watermark, none straddles", len(straddling(nil)), 0)
	_, err := w.raise(9, 2, w.Term)
	w.OK(err)
	Equal(t, "dead", len(dead(0)), 3) // b twice, c; a's straddles
	page := dead(2)
	Equal(t, "a page, by their last rows", [2]segment.Seq{page[0].Last, page[1].Last}, [2]segment.Seq{4, 5})
	Equal(t, "straddling", len(straddling(nil)), 1)
	Equal(t, "straddling", straddling(nil)[0].Stream, "a")
	w.OK(w.C.ArmWatchers(w.Ctx, page))
	n, err := w.C.RetireRefs(w.Ctx, page)
	w.OK(err)
	Equal(t, "retired", n, 2)
	rest := dead(2)
	Equal(t, "rest", len(rest), 1)
	Equal(t, "rest", rest[0].Last, 9)
	_, _, err = w.C.DeadRefs(w.Ctx, segment.Chain{Epoch: 5}, 1)
	w.Is(err, catalog.ErrNotFound, "")
	_, _, err = w.C.StraddlingRefs(w.Ctx, segment.Chain{Epoch: 5}, nil, 1)
	w.Is(err, catalog.ErrNotFound, "")
}

func testStraddlingPages(t *testing.T, open Open) {
	w := NewWorld(t, open)
	names := []string{"a", "b", "c", "d", "e"}
	for range 3 {
		w.Absorb("a:1 b:1 c:1 d:1 e:1")
	}
	for _, s := range names[1:] {
		w.Settle(s) // a's slot refs never straddle
	}
	_, err := w.raise(5, 1, w.Term)
	w.OK(err)
	var got []string
	var after *catalog.Ref
	for {
		refs, more, err := w.C.StraddlingRefs(w.Ctx, w.Chain, after, 3)
		w.OK(err)
		for _, r := range refs {
			got = append(got, r.Stream)
		}
		if !more {
			break
		}
		after = &refs[len(refs)-1]
	}
	if !slices.Equal(got, names[1:]) {
		t.Fatalf("paged %q", got)
	}
}

// testSlotRows: a slot's row stays until it is trimmed, and past retention's need.
func testSlotRows(t *testing.T, open Open) {
	w := NewWorld(t, open)
	_, err := w.C.SetRetention(w.Ctx, 1, interest)
	w.OK(err)
	for range 4 {
		w.Absorb("a:2")
	}
	left := func() (ids []segment.ID) {
		slots, err := w.C.Slots(w.Ctx, w.Chain, 0, 10)
		w.OK(err)
		for _, s := range slots {
			ids = append(ids, s.ID)
		}
		return ids
	}
	w.trimAll()
	Equal(t, "trimmed", w.Row().Trimmed, 5)
	Equal(t, "rows that a plan needs", len(left()), 4)
	_, err = w.raise(4, 2, w.Term)
	w.OK(err)
	if got := left(); !slices.Equal(got, []segment.ID{3, 4}) {
		t.Fatalf("given up and trimmed: rows of %v stand", got)
	}
	_, err = w.raise(8, 4, w.Term)
	w.OK(err)
	if got := left(); !slices.Equal(got, []segment.ID{4}) {
		t.Fatalf("the chain's last row stays: rows of %v stand", got)
	}
	w.Absorb("a:2")
	Equal(t, "the chain goes on", w.Row().AbsorbedEnd, 6)
}

// testLatePolicy: a policy that is set after all was trimmed finds ends to plan with,
// one every full-size segment.
func testLatePolicy(t *testing.T, open Open) {
	w := NewWorld(t, open)
	const slots = 12
	for range slots {
		a := w.Build("a:2")
		a.Slot.Bytes = catalog.DefaultSegmentBytes / 3
		_, err := w.C.AbsorbSlot(w.Ctx, a)
		w.OK(err)
		w.Continue(a)
		if w.ID%5 == 0 {
			w.trimAll()
		}
	}
	w.closeChain()
	w.trimAll()
	rows, err := w.C.Slots(w.Ctx, w.Chain, 0, 0)
	w.OK(err)
	if len(rows) > slots/2 {
		t.Fatalf("%d rows stand", len(rows))
	}
	var bytes int64
	for i, r := range rows {
		bytes += r.Bytes
		if i > 0 && r.First != rows[i-1].Next {
			t.Fatalf("row %d begins with %d, the one before ends before %d", r.ID, r.First, rows[i-1].Next)
		}
	}
	Equal(t, "bytes", bytes, slots*(catalog.DefaultSegmentBytes/3)+1000)
	p := catalog.Retention{Mode: catalog.RetentionInterest, Segments: 2}
	got, ok := catalog.PlanRetention(catalog.RetentionInput{Row: w.Row(), Policy: p, Slots: rows})
	if !ok {
		t.Fatalf("nothing to give up in %+v", rows)
	}
	row, err := w.C.RaiseWatermark(w.Ctx, got)
	w.OK(err)
	Equal(t, "watermark", row.WatermarkSeq, got.Seq)
	Equal(t, "about two segments are left", row.NextSeq-got.Seq < 16, true)
}

// testPlainTrim: without settling, slots go when retention gave them up.
func testPlainTrim(t *testing.T, open Open) {
	w := NewWorld(t, open)
	_, err := w.C.EnsureTopology(w.Ctx, topology(2, false))
	w.OK(err)
	w.onChain(segment.Chain{Epoch: 2})
	for range 3 {
		w.Absorb("a:2")
	}
	_, err = w.raise(4, 2, w.Term)
	w.OK(err)
	row, err := w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	Equal(t, "refs stand still: their grace has not begun", row.Rewritten, 1)
	dead, _, err := w.C.DeadRefs(w.Ctx, w.Chain, 0)
	w.OK(err)
	for i, want := range []segment.ID{2, 3} {
		n, err := w.C.RetireRefs(w.Ctx, dead[i:i+1])
		w.OK(err)
		Equal(t, "retired", n, 1)
		row, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
		w.OK(err)
		Equal(t, "rewritten", row.Rewritten, want)
	}
}

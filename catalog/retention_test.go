package catalog

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

var retainNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// retainChain has n slots of 10 rows and 100 bytes, sealed a minute apart, the last one
// just now.
func retainChain(n int) (row ChainRow, slots []SlotRow) {
	row = ChainRow{Chain: segment.Chain{Epoch: 1}, AbsorbedEnd: segment.ID(n + 1), NextSeq: segment.Seq(10*n + 1)}
	for i := range n {
		slots = append(slots, SlotRow{
			Chain: row.Chain, ID: segment.ID(i + 1), First: segment.Seq(10*i + 1), Next: segment.Seq(10*i + 11), Bytes: 100,
			Sealed: retainNow.Add(-time.Duration(n-1-i) * time.Minute),
		})
	}
	return row, slots
}

func TestPlanRetention(t *testing.T) {
	at := func(name string, s segment.Seq) []segment.Consumer {
		return []segment.Consumer{{Name: name, Cursor: s}}
	}
	for _, c := range []struct {
		name   string
		policy Retention
		change func(*RetentionInput)
		want   segment.ID // 0: nothing
	}{
		{"the zero policy keeps", Retention{Rows: 1}, nil, 0},
		{"keep keeps", Retention{Mode: RetentionKeep, Rows: 1}, nil, 0},
		{"an unknown mode keeps", Retention{Mode: "strict", Rows: 1}, nil, 0},
		{"no limit and no consumer", Retention{Mode: RetentionInterest}, nil, 0},
		{"interest", Retention{Mode: RetentionInterest}, func(in *RetentionInput) { in.Row.Consumers = at("a", 35) }, 3},
		{"interest at a slot's end", Retention{Mode: RetentionInterest}, func(in *RetentionInput) { in.Row.Consumers = at("a", 40) }, 4},
		{"one that acknowledged nothing", Retention{Mode: RetentionInterest}, func(in *RetentionInput) { in.Row.Consumers = at("a", 0) }, 0},
		{"the slowest counts", Retention{Mode: RetentionInterest}, func(in *RetentionInput) { in.Row.Consumers = append(at("a", 75), at("b", 20)...) }, 2},
		{"a local one counts", Retention{Mode: RetentionInterest}, func(in *RetentionInput) { in.Row.Consumers, in.Local = at("a", 75), at("b", 20) }, 2},
		{"the floor holds against interest", Retention{Mode: RetentionInterest}, func(in *RetentionInput) { in.Row.Consumers = at("a", 100) }, 8},
		{"a higher floor", Retention{Mode: RetentionInterest, MinSegments: 4}, func(in *RetentionInput) { in.Row.Consumers = at("a", 100) }, 6},
		{"rows", Retention{Mode: RetentionInterest, Rows: 45}, nil, 5},
		{"rows at a slot's end", Retention{Mode: RetentionInterest, Rows: 40}, nil, 6},
		{"rows, and a slow consumer", Retention{Mode: RetentionInterest, Rows: 40}, func(in *RetentionInput) { in.Row.Consumers = at("a", 15) }, 1},
		{"rows, and one that acknowledged nothing", Retention{Mode: RetentionInterest, Rows: 40}, func(in *RetentionInput) { in.Row.Consumers = at("a", 0) }, 0},
		{"bytes", Retention{Mode: RetentionInterest, Bytes: 350}, nil, 6},
		{"age", Retention{Mode: RetentionInterest, Age: 6 * time.Minute}, nil, 4},
		{"age of a seal time unknown", Retention{Mode: RetentionInterest, Age: 6 * time.Minute}, func(in *RetentionInput) { in.Slots[2].Sealed = time.Time{} }, 2},
		{"age, clocks of owners differ", Retention{Mode: RetentionInterest, Age: 6 * time.Minute}, func(in *RetentionInput) { in.Slots[1].Sealed = retainNow }, 1},
		{"segments", Retention{Mode: RetentionInterest, Segments: 3}, nil, 7},
		{"segments below the floor", Retention{Mode: RetentionInterest, Segments: 1}, nil, 8},
		{"the highest that any limit allows", Retention{Mode: RetentionInterest, Rows: 90, Bytes: 500, Age: 8 * time.Minute}, nil, 5},
		{"a limit nothing reaches", Retention{Mode: RetentionInterest, Rows: 1000}, nil, 0},
		{"segments that overflow", Retention{Mode: RetentionInterest, Segments: math.MaxUint64}, nil, 0},
		{"not above the standing one", Retention{Mode: RetentionInterest, Rows: 45}, func(in *RetentionInput) { in.Row.WatermarkSeq, in.Row.WatermarkSegment = 50, 5 }, 0},
		{"above the standing one", Retention{Mode: RetentionInterest, Rows: 45}, func(in *RetentionInput) { in.Row.WatermarkSeq, in.Row.WatermarkSegment = 40, 4 }, 5},
		{"slots absorbed after the row was read", Retention{Mode: RetentionInterest, Rows: 1}, func(in *RetentionInput) { in.Row.AbsorbedEnd, in.Row.NextSeq = 6, 51 }, 3},
		{"a void slot is no boundary", Retention{Mode: RetentionInterest, Rows: 45}, func(in *RetentionInput) { in.Slots[4].Void = true }, 4},
		{"an empty slot gives no row up", Retention{Mode: RetentionInterest, Rows: 1}, func(in *RetentionInput) {
			for i := range in.Slots[:8] {
				in.Slots[i].First, in.Slots[i].Next = 1, 1
			}
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			row, slots := retainChain(10)
			in := RetentionInput{Row: row, Policy: c.policy, Slots: slots, Now: retainNow}
			in.Policy.SegmentBytes = 100
			if c.change != nil {
				c.change(&in)
			}
			got, ok := PlanRetention(in)
			if ok != (c.want != 0) || ok && (got.Segment != c.want || got.Seq != segment.Seq(10*c.want) || got.Term != 0 || got.Chain != row.Chain) {
				t.Errorf("got %+v %v, want segment %d", got, ok, c.want)
			}
		})
	}
}

// TestPlanRetentionHolds: over random chains and policies, a plan never passes a cursor
// or absorbed_end, never goes back, always ends with a slot, leaves its floor, and is
// taken by the guard. Thinned slots never give more up.
func TestPlanRetentionHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	planned := 0
	for range 20_000 {
		in := randomRetention(r)
		w, ok := PlanRetention(in)
		thin, thinOK := PlanRetention(thinned(in))
		if thinOK && (!ok || thin.Segment > w.Segment) {
			t.Fatalf("thinned plan %+v beyond %+v %v of %+v", thin, w, ok, in)
		}
		if !ok {
			continue
		}
		planned++
		row := in.Row
		i := slices.IndexFunc(in.Slots, func(s SlotRow) bool { return s.ID == w.Segment })
		if i < 0 || in.Slots[i].Void || in.Slots[i].Next-1 != w.Seq {
			t.Fatalf("%+v is no slot's end", w)
		}
		if standing, err := CheckWatermark(&row, &w, &in.Slots[i], row.LeaseEnd); standing || err != nil {
			t.Fatalf("%+v: the guard says %v %v", w, standing, err)
		}
		for _, c := range slices.Concat(row.Consumers, in.Local) {
			if c.Cursor < w.Seq {
				t.Fatalf("%+v passes %+v", w, c)
			}
		}
		if w.Segment >= row.AbsorbedEnd || w.Segment <= row.WatermarkSegment || w.Seq < row.WatermarkSeq {
			t.Fatalf("%+v in %+v", w, row)
		}
		var left int64
		for _, s := range in.Slots[i+1:] {
			if !s.Void && s.ID < row.AbsorbedEnd {
				left += s.Bytes
			}
		}
		if left < in.Policy.floor() {
			t.Fatalf("%+v leaves %d bytes, the floor is %d", w, left, in.Policy.floor())
		}
		row.WatermarkSeq, row.WatermarkSegment = w.Seq, w.Segment
		in.Row = row
		if again, ok := PlanRetention(in); ok {
			t.Fatalf("%+v, and at once %+v", w, again)
		}
	}
	if planned < 1000 {
		t.Errorf("only %d of the plans gave anything up", planned)
	}
}

func thinned(in RetentionInput) RetentionInput {
	in.Slots = ThinSlots(slices.Clone(in.Slots))
	return in
}

func randomRetention(r *rand.Rand) RetentionInput {
	in := RetentionInput{Row: ChainRow{Chain: segment.Chain{Epoch: 1}, AbsorbedEnd: 1, NextSeq: 1, LeaseEnd: retainNow}, Now: retainNow}
	from := r.IntN(5)
	for i := range 1 + r.IntN(30) {
		s := SlotRow{ID: in.Row.AbsorbedEnd, First: in.Row.NextSeq, Bytes: int64(r.IntN(200)), Sealed: retainNow.Add(time.Duration(i-r.IntN(60)) * time.Minute)}
		s.Next = s.First + segment.Seq(r.IntN(20))
		if s.Void = r.IntN(8) == 0; s.Void {
			s.First, s.Next = segment.Seq(r.IntN(3)), segment.Seq(r.IntN(900))
		} else {
			in.Row.NextSeq = s.Next
			if i < from && s.Next > 1 {
				in.Row.WatermarkSeq, in.Row.WatermarkSegment = s.Next-1, s.ID
			}
		}
		in.Row.AbsorbedEnd++
		in.Slots = append(in.Slots, s)
	}
	cursors := func(n int) (out []segment.Consumer) {
		for i := range r.IntN(n) {
			out = append(out, segment.Consumer{Name: string(rune('a' + i)), Cursor: in.Row.WatermarkSeq + segment.Seq(r.IntN(int(in.Row.NextSeq-in.Row.WatermarkSeq)))})
		}
		return out
	}
	in.Row.Consumers, in.Local = cursors(3), cursors(2)
	in.Policy = Retention{Mode: RetentionInterest, SegmentBytes: 1 + int64(r.IntN(300)), MinSegments: uint64(r.IntN(4))}
	for _, set := range []func(){
		func() { in.Policy.Rows = uint64(r.IntN(100)) }, func() { in.Policy.Bytes = int64(r.IntN(2000)) },
		func() { in.Policy.Age = time.Duration(r.IntN(60)) * time.Minute }, func() { in.Policy.Segments = uint64(r.IntN(9)) },
	} {
		if r.IntN(3) == 0 {
			set()
		}
	}
	return in
}

func TestThinSlots(t *testing.T) {
	_, slots := retainChain(5)
	slots[1].Void = true
	slots[2].Sealed = slots[2].Sealed.Add(-time.Hour)
	got := ThinSlots(slots)
	if len(got) != 2 || got[0].ID != 3 || got[0].First != 1 || got[0].Next != 31 || got[0].Bytes != 200 || got[0].Sealed != retainNow.Add(-4*time.Minute) || got[1].ID != 5 {
		t.Errorf("got %+v", got)
	}
}

// manySlots serves rows of many slots, ten rows each.
type manySlots segment.ID

func (m manySlots) Slots(_ context.Context, c segment.Chain, from segment.ID, limit int) (out []SlotRow, err error) {
	for id := max(from, 1); id <= segment.ID(m) && len(out) < limit; id++ {
		out = append(out, SlotRow{Chain: c, ID: id, First: segment.Seq(10*id - 9), Next: segment.Seq(10*id + 1), Bytes: 100})
	}
	return out, nil
}

func TestRetentionSlots(t *testing.T) {
	const n = 100_000
	row := ChainRow{Chain: segment.Chain{Epoch: 1}, AbsorbedEnd: n + 1, NextSeq: 10*n + 1, WatermarkSegment: 7, WatermarkSeq: 70}
	slots, err := RetentionSlots(t.Context(), manySlots(n), &row)
	if err != nil || len(slots) > MaxRetentionSlots+2048 {
		t.Fatalf("%d slots, %v", len(slots), err)
	}
	var bytes int64
	for _, s := range slots {
		bytes += s.Bytes
	}
	if bytes != 100*(n-7) || slots[0].First != 71 || slots[len(slots)-1].ID != n {
		t.Errorf("%d bytes from %d to slot %d", bytes, slots[0].First, slots[len(slots)-1].ID)
	}
	w, ok := PlanRetention(RetentionInput{Row: row, Policy: Retention{Mode: RetentionInterest, Rows: 1000, SegmentBytes: 100}, Slots: slots})
	if !ok || w.Seq > 10*n-1000 || w.Seq < 10*n-2000 {
		t.Errorf("plan %+v %v", w, ok)
	}
}

func TestDecodeRetention(t *testing.T) {
	want := Retention{Mode: RetentionInterest, Rows: 3, Bytes: 4, Age: time.Hour, Segments: 5, SegmentBytes: 6, MinSegments: 7}
	s, err := EncodeRetention(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeRetention(s); err != nil || got != want {
		t.Errorf("got %+v %v", got, err)
	}
	if got, err := DecodeRetention("{}"); err != nil || got != (Retention{}) || !got.Keeps() {
		t.Errorf("nothing said: %+v %v", got, err)
	}
	if got, err := DecodeRetention(`{"mode":"interest","rows":3,"hold":9}`); err != nil || !got.Keeps() || got.Rows != 3 {
		t.Errorf("a newer build's: %+v %v", got, err)
	}
	if _, err := DecodeRetention(`{"mode":`); !errors.Is(err, ErrCorrupt) {
		t.Errorf("garbage: %v", err)
	}
}

func TestFeeding(t *testing.T) {
	for _, c := range []struct {
		from, to uint32
		s        segment.Shard
		want     []segment.Shard
	}{
		{4, 8, 6, []segment.Shard{2}},
		{8, 4, 1, []segment.Shard{1, 5}},
		{3, 2, 1, []segment.Shard{0, 1, 2}},
		{6, 4, 3, []segment.Shard{1, 3, 5}},
		{1, 5, 4, []segment.Shard{0}},
		{0, 5, 4, nil},
		{5, 5, 5, nil},
	} {
		if got := Feeding(c.from, c.to, c.s); !slices.Equal(got, c.want) {
			t.Errorf("%d to %d, shard %d: %v, want %v", c.from, c.to, c.s, got, c.want)
		}
	}
	// Every name's old shard feeds its new one, and no shard is named for nothing.
	for from := uint32(1); from < 9; from++ {
		for to := uint32(1); to < 9; to++ {
			seen := map[[2]segment.Shard]bool{}
			for h := range uint64(from) * uint64(to) {
				a, b := segment.Shard(h%uint64(from)), segment.Shard(h%uint64(to))
				seen[[2]segment.Shard{a, b}] = true
				if !slices.Contains(Feeding(from, to, b), a) {
					t.Fatalf("%d to %d: %d does not feed %d", from, to, a, b)
				}
			}
			n := 0
			for s := range to {
				n += len(Feeding(from, to, segment.Shard(s)))
			}
			if n != len(seen) {
				t.Fatalf("%d to %d: %d pairs, %d occur", from, to, n, len(seen))
			}
		}
	}
}

// TestWatermarkRow: a boundary is a slot's end that every consumer has passed, set by the
// owner's term or after its lease; it never comes back.
func TestWatermarkRow(t *testing.T) {
	row := ChainRow{Term: 3, LeaseEnd: t0.Add(time.Minute), AbsorbedEnd: 6, NextSeq: 51, WatermarkSeq: 10, WatermarkSegment: 1, Consumers: []segment.Consumer{{Name: "a", Cursor: 30}}}
	end := func(n segment.Seq) *SlotRow { return &SlotRow{Next: n} }
	for name, x := range map[string]struct {
		w      Watermark
		ends   *SlotRow
		after  time.Duration
		raised bool
		kind   error
	}{
		"by its owner":       {Watermark{Seq: 30, Segment: 3, Term: 3}, end(31), 0, true, nil},
		"after its lease":    {Watermark{Seq: 30, Segment: 3}, end(31), time.Minute, true, nil},
		"within its lease":   {Watermark{Seq: 30, Segment: 3}, end(31), 0, false, ErrConflict},
		"an owner before":    {Watermark{Seq: 30, Segment: 3, Term: 2}, end(31), time.Minute, false, ErrConflict},
		"committed before":   {Watermark{Seq: 10, Segment: 1, Term: 2}, nil, 0, false, nil},
		"lower":              {Watermark{Seq: 5, Segment: 1}, nil, 0, false, nil},
		"past a consumer":    {Watermark{Seq: 31, Segment: 3, Term: 3}, end(32), 0, false, ErrConflict},
		"no slot's end":      {Watermark{Seq: 29, Segment: 3, Term: 3}, end(31), 0, false, ErrConflict},
		"no slot":            {Watermark{Seq: 30, Segment: 3, Term: 3}, nil, 0, false, ErrConflict},
		"a void slot":        {Watermark{Seq: 30, Segment: 3, Term: 3}, &SlotRow{Next: 31, Void: true}, 0, false, ErrConflict},
		"above absorbed_end": {Watermark{Seq: 30, Segment: 6, Term: 3}, end(31), 0, false, ErrConflict},
		"nothing":            {Watermark{Term: 3}, nil, 0, false, ErrInvalid},
	} {
		next, raised, err := WatermarkRow(row, &x.w, x.ends, t0.Add(x.after))
		if raised != x.raised || !errors.Is(err, x.kind) {
			t.Errorf("%s: raised %v, %v", name, raised, err)
		}
		want := row
		if raised {
			want.WatermarkSeq, want.WatermarkSegment = x.w.Seq, x.w.Segment
		}
		if next.WatermarkSeq != want.WatermarkSeq || next.WatermarkSegment != want.WatermarkSegment || len(next.Consumers) != 1 {
			t.Errorf("%s: became %+v", name, next)
		}
	}
}

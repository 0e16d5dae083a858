package coldload_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// twoEpochs is a stream with 20 rows in an epoch of two slots, and 30 in one of three.
// settled: the newer one's first two slots are one stream object.
func twoEpochs(t *testing.T, settled bool) (x *tiertest.Tier, older, newer []segment.Row) {
	x = tiertest.New(t, nil)
	x.Slot(tiertest.Write{Stream: "a", Rows: 10, Size: 100}, tiertest.Write{Stream: "b", Rows: 3, Size: 10})
	x.Slot(tiertest.Write{Stream: "a", Rows: 10, Size: 100}, tiertest.Write{Stream: "b", Rows: 3, Size: 10})
	older = slices.Clone(x.Rows["a"])
	x.NextEpoch()
	for i := range 3 {
		x.Slot(tiertest.Write{Stream: "a", Rows: 10, Size: 100}, tiertest.Write{Stream: "b", Rows: 2, Size: 10})
		if settled && i == 1 {
			x.Settle(1)
		}
	}
	return x, older, x.Rows["a"][len(older):]
}

// pages are configurations that plan all at once, and two refs at a time.
var pages = []coldload.Config{{}, {PlanRefs: 2, Window: 1}}

// sameIn fails unless got are exactly these rows of epoch 1, then these of epoch 2.
func sameIn(t *testing.T, got []coldload.Row, older, newer []segment.Row) {
	t.Helper()
	for i := len(older); i < len(got); i++ {
		if got[i].Epoch != 2 {
			t.Fatalf("row %d is of epoch %d", i, got[i].Epoch)
		}
		got[i].Epoch = 1
	}
	same(t, got, slices.Concat(older, newer))
}

// TestOlderEpochKeeps (I1): rows of an older epoch that its own chain keeps are read,
// though a newer epoch's chain gave up its first ones; then those above its watermark. A
// settled ref that the watermark cuts in two gives its upper part only.
func TestOlderEpochKeeps(t *testing.T) {
	for _, settled := range []bool{false, true} {
		x, older, newer := twoEpochs(t, settled)
		mark := x.GiveUp(1)
		for _, reclaimed := range []bool{false, true} {
			if reclaimed {
				x.Reclaim()
			}
			for _, cfg := range pages {
				r := reader(t, x, cfg)
				got, err := collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{})
				if err != nil {
					t.Fatal(err)
				}
				sameIn(t, got, older, newer[10:])
				readsParts(t, r, older, newer, mark)
			}
		}
	}
}

// readsParts reads from and to positions on both sides of the gap, and in it.
func readsParts(t *testing.T, r *coldload.Reader, older, newer []segment.Row, mark segment.Seq) {
	t.Helper()
	pos := func(e segment.Epoch, s segment.Seq) segment.Pos { return segment.Pos{Epoch: e, Seq: s} }
	for _, c := range []struct {
		from, to segment.Pos
		older    []segment.Row
		newer    []segment.Row
	}{
		{pos(1, older[15].Seq), segment.Pos{}, older[15:], newer[10:]},
		{pos(1, older[19].Seq+1), segment.Pos{}, nil, newer[10:]},
		{pos(1, older[5].Seq), pos(1, older[19].Seq), older[5:], nil},
		{pos(1, older[5].Seq), pos(2, mark), older[5:], nil},
		{pos(1, older[5].Seq), pos(2, newer[11].Seq), older[5:], newer[10:12]},
		{pos(2, mark+1), segment.Pos{}, nil, newer[10:]},
	} {
		got, err := collect(t.Context(), r, "a", c.from, c.to)
		if err != nil {
			t.Fatalf("%s to %s: %v", c.from, c.to, err)
		}
		sameIn(t, got, c.older, c.newer)
	}
	var re *coldload.ReadError
	_, err := collect(t.Context(), r, "a", pos(2, mark), segment.Pos{})
	if !errors.Is(err, coldload.ErrTrimmed) || !errors.As(err, &re) || re.First != pos(2, mark+1) {
		t.Errorf("in the gap: %v", err)
	}
}

// TestNewerEpochGone: all of the newer epoch is given up; the older one is read to its
// end.
func TestNewerEpochGone(t *testing.T) {
	x, older, _ := twoEpochs(t, false)
	x.GiveUp(3)
	for range 2 {
		for _, cfg := range pages {
			got, err := collect(t.Context(), reader(t, x, cfg), "a", segment.Pos{}, segment.Pos{})
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, older)
		}
		x.Reclaim()
	}
}

// TestGapHidesNoHole: a ref that is missing above the watermark, or in the older epoch
// before one that stands, is a hole all the same. (That of the older epoch's last rows no
// link tells any more.)
func TestGapHidesNoHole(t *testing.T) {
	x, _, _ := twoEpochs(t, false)
	x.GiveUp(1)
	for _, lose := range []int{0, 2, 3} { // 0 and 1 are of the older epoch, 2 and 3 of the newer
		lost := false
		p := &planner{Catalog: x.Catalog, change: func(_ int64, p *catalog.Plan) {
			if len(p.Refs) == 4 {
				p.Refs, lost = slices.Delete(p.Refs, lose, lose+1), true
			}
		}}
		r, err := coldload.New(p, x.Classes, coldload.Config{Clock: x.Clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = collect(t.Context(), r, "a", segment.Pos{}, segment.Pos{}); !errors.Is(err, coldload.ErrLost) || !lost {
			t.Errorf("ref %d is missing (%t): %v", lose, lost, err)
		}
	}
}

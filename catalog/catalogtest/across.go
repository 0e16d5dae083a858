package catalogtest

import (
	"slices"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// acrossWorld has refs of many lengths over each other, on both sides of 16^3 and 16^4.
func acrossWorld(t *testing.T, open Open) *World {
	t.Helper()
	w := NewWorld(t, open)
	for range 30 {
		w.Absorb("a:1 b:3000 c:2 d:1 e:1")
	}
	w.Absorb("g:4096 h:4097") // the longest short one, the shortest long one
	o := w.beside()           // another chain's are none of it
	o.Absorb("f:9000")
	a, b, c, d := w.Refs("a"), w.Refs("b"), w.Refs("c"), w.Refs("d")
	for _, run := range []catalog.Run{
		streamRun("a", a...), streamRun("b", b[1:3]...), streamRun("b", b[4:20]...), streamRun("c", c[2:4]...), streamRun("d", d[5:29]...),
	} {
		w.commitNext(catalog.Next{}, run)
	}
	return w
}

// testRefsAcross: the refs over a cut are all refs over a cut.
func testRefsAcross(t *testing.T, open Open) {
	w := acrossWorld(t, open)
	all, err := w.C.ChainRefs(w.Ctx, w.Chain, 0, 0)
	w.OK(err)
	var cuts []segment.Seq
	lengths := map[int]int{}
	for _, r := range all {
		cuts = append(cuts, r.First-1, r.First, (r.First+r.Last)/2, r.Last-1, r.Last)
		switch n := r.Last - r.First; {
		case n < 1<<12:
			lengths[3]++
		case n < 1<<16:
			lengths[4]++
		default:
			lengths[5]++
		}
	}
	for digits := 3; digits <= 5; digits++ {
		if lengths[digits] == 0 {
			t.Fatalf("no ref of %d digits: %v", digits, lengths)
		}
	}
	slices.Sort(cuts)
	most := 0
	for _, at := range slices.Compact(cuts) {
		var want []catalog.Ref
		for _, r := range all {
			if r.First <= at && at < r.Last {
				want = append(want, r)
			}
		}
		most = max(most, len(want))
		for _, limit := range []int{1, 2, 0} {
			var got []catalog.Ref
			var after *catalog.Ref
			for pages := 0; ; pages++ {
				if pages > len(all) {
					t.Fatalf("across %d, in pages of %d: no end", at, limit)
				}
				page, more, err := w.C.RefsAcross(w.Ctx, w.Chain, at, after, limit)
				w.OK(err)
				if limit > 0 && len(page) > limit || more && len(page) == 0 {
					t.Fatalf("a page of %d, more: %v", len(page), more)
				}
				got = append(got, page...)
				if !more {
					break
				}
				after = &page[len(page)-1]
			}
			if !slices.Equal(got, want) {
				t.Fatalf("across %d, in pages of %d: %+v\nwant %+v", at, limit, got, want)
			}
		}
	}
	if most < 4 {
		t.Fatalf("%d refs lie across one cut at most", most)
	}
	_, more, err := w.C.RefsAcross(w.Ctx, w.Chain, all[len(all)-1].Last, nil, 0)
	w.OK(err)
	Equal(t, "more behind the last row", more, false)
}

// testStraddlingLong: those that a watermark cuts, however far they reach.
func testStraddlingLong(t *testing.T, open Open) {
	w := acrossWorld(t, open)
	slots, err := w.C.Slots(w.Ctx, w.Chain, 0, 0)
	w.OK(err)
	for _, s := range []catalog.SlotRow{slots[1], slots[2], slots[6]} {
		_, err := w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: w.Chain, Seq: s.Next - 1, Segment: s.ID, Term: w.Term})
		w.OK(err)
		across, _, err := w.C.RefsAcross(w.Ctx, w.Chain, s.Next-1, nil, 0)
		w.OK(err)
		across = slices.DeleteFunc(across, func(r catalog.Ref) bool { return !r.Kind.Settled() })
		got, more, err := w.C.StraddlingRefs(w.Ctx, w.Chain, nil, 0)
		w.OK(err)
		Equal(t, "more", more, false)
		if len(got) == 0 || !slices.Equal(got, across) {
			t.Fatalf("watermark %d cuts %+v, got %+v", s.Next-1, across, got)
		}
	}
}

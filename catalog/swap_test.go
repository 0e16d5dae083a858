package catalog

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/strandline/strandline/segment"
)

// span is a ref of n rows from first on, with sums by hash.
func span(first, last segment.Seq, prev segment.Seq, key string) Ref {
	r := Ref{StreamID: 1, Chain: segment.Chain{Epoch: 1}, First: first, Last: last, Key: key, Kind: RefSlot, Revision: -1}
	if prev > 0 {
		r.PrevLast = pos(1, prev)
	}
	sum(&r)
	return r
}

func hash(s segment.Seq) uint64 { return (uint64(s) + 1) * 0x9e3779b97f4a7c15 }

func sum(r *Ref) {
	r.Rows, r.RowSum, r.Bytes = 0, 0, 0
	for s := r.First; s <= r.Last; s++ {
		if s%10 == 0 {
			continue // of another stream
		}
		r.Rows++
		r.RowSum += hash(s)
		r.Bytes += 100
	}
}

// A remainder may begin where no row of its stream stands: its rewrite begins at its first
// row. That is no cut as long as no row is missing.
func TestPlanSwapOfARemainderThatBeginsBetweenItsRows(t *testing.T) {
	rem := span(10, 25, 9, "seg/x") // 10 is of another stream
	at := func(p segment.Pos) *Ref {
		if e := rem; e.FirstPos() == p {
			return &e
		}
		return nil
	}
	next := rem
	next.First, next.Key, next.Kind, next.Revision = 11, "obj/k", RefStream, 0
	sw, err := PlanSwap(&Run{Expect: []Ref{rem}, New: next}, segment.Pos{}, at)
	if err != nil || sw.Committed == nil || sw.Remainder != nil {
		t.Fatalf("swap %+v, error %v", sw, err)
	}
	if c := sw.Committed; c.First != 11 || c.Last != 25 || c.Rows != rem.Rows || c.PrevLast != rem.PrevLast {
		t.Fatalf("committed %+v", c)
	}
	less := next
	less.First = 12
	sum(&less)
	if _, err := PlanSwap(&Run{Expect: []Ref{rem}, New: less}, segment.Pos{}, at); !errors.Is(err, ErrConflict) {
		t.Fatalf("row 11 is missing: %v", err)
	}
	other := next
	other.RowSum++
	if _, err := PlanSwap(&Run{Expect: []Ref{rem}, New: other}, segment.Pos{}, at); !errors.Is(err, ErrConflict) {
		t.Fatalf("another row: %v", err)
	}
}

// TestPlanSwapOfACutHead: the ref of an output whose head was dead says which row went last, not which
// came before all that went: a reader that was given only the latter missed rows.
func TestPlanSwapOfACutHead(t *testing.T) {
	ref := span(11, 25, 9, "seg/x")
	at := func(segment.Pos) *Ref { e := ref; return &e }
	for _, c := range []struct{ says, want segment.Pos }{
		{pos(1, 14), pos(1, 14)},
		{segment.Pos{}, ref.PrevLast},
		{ref.PrevLast, ref.PrevLast}, // not known
		{pos(1, 15), ref.PrevLast},
		{pos(2, 1), ref.PrevLast}, // not before it
	} {
		next := ref
		next.First, next.PrevLast, next.Key, next.Kind, next.Revision = 15, c.says, "obj/k", RefStream, 0
		sum(&next)
		sw, err := PlanSwap(&Run{Expect: []Ref{ref}, New: next}, pos(1, 15), at)
		if err != nil || sw.Committed.First != 15 || sw.Committed.PrevLast != c.want {
			t.Errorf("output that follows %s: committed %+v, want one that follows %s: %v", c.says, sw.Committed, c.want, err)
		}
	}
}

// TestPlanSwapRandom: whatever a trim took, and wherever the output ends, the refs
// after the swap have the rows of the refs before it, above live_from, each once.
func TestPlanSwapRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	remainders, left, nothing := 0, 0, 0
	for range 5000 {
		var expect []Ref
		next, prev := segment.Seq(1), segment.Seq(0)
		for range 1 + r.IntN(5) {
			n := segment.Seq(1 + r.IntN(12))
			e := span(next, next+n, prev, "seg/x")
			for e.Last%10 == 0 || e.First%10 == 0 {
				if e.Last%10 == 0 {
					e.Last++
				}
				if e.First%10 == 0 {
					e.First++
				}
			}
			sum(&e)
			expect = append(expect, e)
			prev, next = e.Last, e.Last+1+segment.Seq(r.IntN(2))
		}
		live := pos(1, segment.Seq(r.IntN(int(next))))
		n := expect[0]
		n.Last, n.Key, n.Kind, n.Revision = expect[len(expect)-1].Last, "obj/k", RefStream, 0
		if r.IntN(2) == 0 {
			n.Last = n.First + segment.Seq(r.IntN(int(n.Last-n.First)+1))
		}
		n.Rows, n.RowSum, n.Bytes = 0, 0, 0
		for _, e := range expect {
			if e.First > n.Last {
				break
			}
			e.Last = min(e.Last, n.Last)
			sum(&e)
			addSums(&n, &e)
		}
		walked := r.IntN(2) == 0
		sw, err := PlanSwap(&Run{Expect: expect, New: n}, live, func(p segment.Pos) *Ref {
			for i := range expect {
				if e := expect[i]; e.FirstPos() == p && (!walked || !e.Dead(live)) {
					return &e
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%v: live_from %s, output to %d: %+v", err, live, n.Last, expect)
		}
		if sw.Remainder != nil {
			remainders++
		}
		if expect[0].Dead(live) {
			left++
		}
		if sw.Committed == nil {
			nothing++
		}
		checkSwap(t, &sw, expect, n.Last, live)
	}
	if remainders == 0 || left == 0 || nothing == 0 {
		t.Errorf("never came to: remainders %d, left out %d, nothing %d", remainders, left, nothing)
	}
}

func checkSwap(t *testing.T, sw *Swap, expect []Ref, end segment.Seq, live segment.Pos) {
	t.Helper()
	after := map[segment.Seq]Ref{}
	for _, e := range expect {
		if !e.Dead(live) {
			after[e.First] = e
		}
	}
	for _, g := range sw.Sources() {
		delete(after, g.First)
	}
	for _, c := range []*Ref{sw.Committed, sw.Remainder} {
		if c == nil {
			continue
		}
		want := Ref{}
		for _, e := range expect {
			if e.Last < c.First || e.First > c.Last || e.Dead(live) {
				continue
			}
			e.First, e.Last = max(e.First, c.First), min(e.Last, c.Last)
			sum(&e)
			addSums(&want, &e)
		}
		if c.Rows != want.Rows || c.RowSum != want.RowSum || c.Bytes != want.Bytes {
			t.Fatalf("ref %d..%d has %d rows, want %d; %+v, live_from %s, end %d", c.First, c.Last, c.Rows, want.Rows, expect, live, end)
		}
		if _, twice := after[c.First]; twice {
			t.Fatalf("two refs begin at %d", c.First)
		}
		after[c.First] = *c
	}
	var prev *Ref
	for s := segment.Seq(0); s < 200; s++ {
		e, ok := after[s]
		if !ok {
			continue
		}
		if prev != nil && e.PrevLast != prev.LastPos() {
			t.Fatalf("hole before %d: prev_last %s, last %s", e.First, e.PrevLast, prev.LastPos())
		}
		prev = &e
	}
}

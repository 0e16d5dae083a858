package check_test

import (
	"slices"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// epochs is a tier whose older epoch keeps all, and whose newer one gave up its first slot
// of three.
func epochs(t *testing.T) *tiertest.Tier {
	x := tier(t)
	x.NextEpoch()
	for range 3 {
		x.Slot(tiertest.Write{Stream: "a", Rows: 4, Size: 50}, tiertest.Write{Stream: "z z", Rows: 4, Size: 50})
	}
	x.GiveUp(1)
	return x
}

// TestEpochsKept: what the newer epoch's chain gave up behind the older one's rows is no
// hole, before its refs are retired and after, and be it all of the newer epoch.
func TestEpochsKept(t *testing.T) {
	x := epochs(t)
	sound := func(what string) {
		t.Helper()
		if r := must(t, x); r.DamageTotal != 0 || r.RottenTotal != 0 || r.LeakedTotal != 0 {
			t.Fatalf("%s: %+v", what, *r)
		}
	}
	sound("given up")
	x.Reclaim()
	sound("retired")
	x.GiveUp(3)
	sound("all given up")
	x.Reclaim()
	sound("all retired")
}

// TestEpochsHoles: a hole in either epoch is one all the same.
func TestEpochsHoles(t *testing.T) {
	x := epochs(t)
	x.Reclaim()
	rows := x.Rows["z z"]
	for _, c := range []struct {
		lose        int // of the live refs: 0 and 1 of the older epoch, 2 and 3 of the newer
		epoch       segment.Epoch
		first, last segment.Seq
	}{
		{0, 1, 1, rows[3].Seq},
		{2, 2, 1, rows[15].Seq},
		{3, 2, rows[15].Seq + 1, rows[19].Seq},
	} {
		lost := false
		r, err := check.Fsck(t.Context(), &skewed{Catalog: x.Catalog, plan: func(p *catalog.Plan) {
			if len(p.Refs) == 4 {
				p.Refs, lost = slices.Delete(p.Refs, c.lose, c.lose+1), true
			}
		}}, x.Classes, check.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if !lost || len(r.Damage) != 1 || r.Damage[0].Stream != "z z" || r.Damage[0].Epoch != c.epoch || r.Damage[0].First != c.first || r.Damage[0].Last != c.last {
			t.Errorf("ref %d is missing (%t), want %d to %d of epoch %d: %+v", c.lose, lost, c.first, c.last, c.epoch, r.Damage)
		}
	}
}

// TestEpochsExplained: rows of both epochs, of the gap, and seqs behind the older one's
// last row.
func TestEpochsExplained(t *testing.T) {
	x := epochs(t)
	rows := x.Rows["a"]
	pos := func(e segment.Epoch, s segment.Seq) segment.Pos { return segment.Pos{Epoch: e, Seq: s} }
	explain := func(q check.RowQuestion, want check.Situation, at segment.Pos) {
		t.Helper()
		q.Stream = "a"
		e, err := (&check.Explainer{Catalog: x.Catalog, Classes: x.Classes}).Row(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if e.Situation != want || e.Row.Epoch != at.Epoch || e.Row.Seq != at.Seq {
			t.Errorf("%+v: %s at %d.%d, want %s at %s: %v", q, e.Situation, e.Row.Epoch, e.Row.Seq, want, at, e.Why)
		}
	}
	old, behind := pos(1, rows[7].Seq), pos(1, rows[7].Seq+1)
	for _, reclaimed := range []bool{false, true} {
		if reclaimed {
			x.Reclaim()
		}
		explain(check.RowQuestion{Word: check.FirstRow}, check.IsLive, pos(1, rows[0].Seq))
		explain(check.RowQuestion{Pos: old}, check.IsLive, old)
		explain(check.RowQuestion{Pos: behind}, check.NoRow, behind)
		explain(check.RowQuestion{Pos: pos(2, 1)}, check.IsTrimmed, pos(2, 1))
		explain(check.RowQuestion{Pos: pos(2, rows[12].Seq)}, check.IsLive, pos(2, rows[12].Seq))
	}
	x.GiveUp(3)
	for range 2 {
		explain(check.RowQuestion{Pos: old}, check.IsLive, old)
		explain(check.RowQuestion{Pos: behind}, check.NoRow, behind)
		x.Reclaim()
	}
}

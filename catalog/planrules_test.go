package catalog

import (
	"errors"
	"testing"

	"github.com/strandline/strandline/segment"
)

func refOf(e segment.Epoch, first, last segment.Seq, prev segment.Pos) *Ref {
	return &Ref{Chain: segment.Chain{Epoch: e}, First: first, Last: last, PrevLast: prev}
}

func TestLinked(t *testing.T) {
	p := &Plan{Stream: Stream{LiveFrom: pos(1, 3)}, Cuts: map[segment.Epoch]segment.Pos{2: pos(2, 6)}}
	for name, c := range map[string]struct {
		ref   *Ref
		last  segment.Pos
		first bool
		want  bool
	}{
		"follows":                            {refOf(1, 7, 9, pos(1, 6)), pos(1, 6), false, true},
		"a hole":                             {refOf(1, 7, 9, pos(1, 6)), pos(1, 5), false, false},
		"an overlap":                         {refOf(1, 7, 9, pos(1, 6)), pos(1, 8), false, false},
		"over the border":                    {refOf(2, 7, 9, pos(1, 6)), pos(1, 6), false, true},
		"over the border, a hole":            {refOf(2, 7, 9, pos(1, 6)), pos(1, 5), false, false},
		"behind what was given up":           {refOf(2, 7, 9, pos(2, 5)), pos(1, 6), false, true},
		"of a later epoch":                   {refOf(3, 1, 9, pos(2, 5)), pos(1, 6), false, true},
		"behind a row that is kept":          {refOf(2, 7, 9, pos(2, 6)), pos(1, 6), false, false},
		"an overlap with what was given up":  {refOf(2, 7, 9, pos(2, 5)), pos(2, 7), false, false},
		"no row before":                      {refOf(2, 7, 9, segment.Pos{}), pos(1, 6), false, false},
		"first, from its first":              {refOf(1, 7, 9, pos(1, 6)), pos(1, 7), true, true},
		"first, of the stream":               {refOf(1, 7, 9, segment.Pos{}), pos(1, 4), true, true},
		"first, a hole":                      {refOf(1, 7, 9, pos(1, 6)), pos(1, 6), true, false},
		"first, behind what was given up":    {refOf(2, 7, 9, pos(2, 5)), pos(1, 6), true, true},
		"first, behind a row that is kept":   {refOf(2, 9, 9, pos(2, 6)), pos(1, 6), true, false},
		"first, from a row that is given up": {refOf(2, 7, 9, pos(2, 5)), pos(2, 5), true, false},
	} {
		if got := p.Linked(c.ref, c.last, c.first); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for at, want := range map[segment.Pos]bool{pos(1, 2): true, pos(1, 3): false, pos(2, 5): true, pos(2, 6): false, pos(3, 1): false} {
		if p.Dead(at) != want {
			t.Errorf("%s: dead %v", at, !want)
		}
	}
}

// TestPlannerAsks: an epoch's chain is looked at once, and only those that matter are; a
// look that fails ends the plan.
func TestPlannerAsks(t *testing.T) {
	asked := map[segment.Epoch]int{}
	live := func(e segment.Epoch) (segment.Pos, error) {
		asked[e]++
		return map[segment.Epoch]segment.Pos{2: pos(2, 6), 3: pos(3, 4)}[e], nil
	}
	s := Stream{Last: pos(3, 9)}
	p, err := NewPlanner(s, PlanRequest{}, 10, live)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Ref{refOf(1, 1, 3, segment.Pos{}), refOf(1, 4, 6, pos(1, 3)), refOf(3, 5, 7, pos(2, 5)), refOf(3, 8, 9, pos(3, 7))} {
		from := map[segment.Epoch]segment.Pos{3: pos(3, 4)}[r.Epoch]
		if full, err := p.Take(&LiveRef{Ref: *r, LiveFrom: from}); full || err != nil {
			t.Fatal(full, err)
		}
	}
	got := p.Done()
	if len(got.Refs) != 4 || got.LiveFrom != (segment.Pos{}) || len(got.Cuts) != 2 || asked[1] != 0 || asked[2] != 1 || asked[3] != 1 {
		t.Errorf("plan %+v, asked %v", got, asked)
	}
	away := errors.New("away")
	for _, bad := range []segment.Epoch{1, 2, 3} {
		p, err := NewPlanner(s, PlanRequest{From: pos(1, 1)}, 10, func(e segment.Epoch) (segment.Pos, error) {
			if e == bad {
				return segment.Pos{}, away
			}
			return segment.Pos{}, nil
		})
		if bad != 2 {
			if !errors.Is(err, away) {
				t.Errorf("epoch %d: %v", bad, err)
			}
			continue
		}
		if _, err = p.Take(&LiveRef{Ref: *refOf(3, 5, 7, pos(2, 5))}); !errors.Is(err, away) {
			t.Errorf("epoch %d: %v", bad, err)
		}
	}
}

// TestPlannerCuts: a ref that its chain's watermark cuts says so, be it the first, which
// reading then begins in, or one behind an older epoch's.
func TestPlannerCuts(t *testing.T) {
	none := func(segment.Epoch) (segment.Pos, error) { return segment.Pos{}, nil }
	cut := LiveRef{Ref: *refOf(2, 1, 9, pos(1, 3)), LiveFrom: pos(2, 6)}
	for _, older := range []bool{true, false} {
		p, err := NewPlanner(Stream{Last: pos(3, 9)}, PlanRequest{}, 10, none)
		if err != nil {
			t.Fatal(err)
		}
		want := segment.Pos{}
		if older {
			_, err = p.Take(&LiveRef{Ref: *refOf(1, 1, 3, segment.Pos{})})
		} else {
			cut.PrevLast, want = segment.Pos{}, pos(2, 6)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err = p.Take(&cut); err != nil {
			t.Fatal(err)
		}
		if got := p.Done(); got.LiveIn(2) != pos(2, 6) || got.LiveFrom != want {
			t.Errorf("older %v: %+v", older, got)
		}
	}
}

package catalog

import (
	"errors"
	"slices"
	"testing"

	"github.com/strandline/strandline/segment"
)

// TestTrimAndDelete: live_from only rises (I6), not past the tip; a deleted stream's lies
// right behind it.
func TestTrimAndDelete(t *testing.T) {
	was := Stream{LiveFrom: pos(1, 10), Last: pos(1, 20), Deleted: true}
	for at, want := range map[segment.Pos]segment.Pos{
		pos(1, 15): pos(1, 15), pos(1, 21): pos(1, 21), pos(1, 10): pos(1, 10), pos(1, 3): pos(1, 10), {}: pos(1, 10),
	} {
		if s, err := TrimStream(was, at); err != nil || s.LiveFrom != want || !s.Deleted {
			t.Errorf("trim to %v: %+v, %v", at, s, err)
		}
	}
	if s, err := TrimStream(was, pos(1, 22)); !errors.Is(err, ErrBeyondTip) || s.LiveFrom != was.LiveFrom {
		t.Errorf("beyond the tip: %+v, %v", s, err)
	}
	was.Deleted = false
	if s := DeleteStream(was); s.LiveFrom != pos(1, 21) || !s.Deleted {
		t.Errorf("deleted: %+v", s)
	}
	was.LiveFrom = pos(2, 0) // trimmed into an epoch that has no row yet
	if s := DeleteStream(was); s.LiveFrom != pos(2, 0) {
		t.Errorf("deleted, trimmed before: %+v", s)
	}
}

func liveRef(first, last segment.Seq, live segment.Pos) *LiveRef {
	return &LiveRef{Ref: Ref{StreamID: 1, Chain: segment.Chain{Epoch: 1}, First: first, Last: last, Key: "k", Kind: RefStream}, LiveFrom: live}
}

// TestWalkPage: a page has the dead refs up to its limit, and the one that live_from cuts.
func TestWalkPage(t *testing.T) {
	for name, x := range map[string]struct {
		live     segment.Seq
		limit    int
		dead     int
		more     bool
		straddle bool
	}{
		"two of them":     {21, 5, 2, false, false},
		"a full page":     {41, 3, 3, true, false},
		"full to the end": {31, 3, 3, false, false},
		"cut in two":      {15, 5, 1, false, true},
		"none":            {1, 5, 0, false, false},
		"cut first":       {5, 5, 0, false, true},
	} {
		var w WalkPage
		for first := segment.Seq(1); first <= 41; first += 10 {
			if w.Take(liveRef(first, first+9, pos(1, x.live)), x.limit) {
				break
			}
		}
		if len(w.Dead) != x.dead || w.More != x.more || (w.Straddle != nil) != x.straddle {
			t.Errorf("%s: %d dead, more %v, straddle %v", name, len(w.Dead), w.More, w.Straddle)
		}
	}
}

// TestRetirable: a ref goes if it stands as it was seen, is dead, and once.
func TestRetirable(t *testing.T) {
	dead, alive := pos(1, 21), pos(1, 20)
	seen := liveRef(11, 20, dead).Ref
	for name, x := range map[string]struct {
		stands *LiveRef
		want   int
	}{
		"dead":            {liveRef(11, 20, dead), 1},
		"its last lives":  {liveRef(11, 20, alive), 0},
		"gone":            {nil, 0},
		"ends elsewhere":  {liveRef(11, 19, dead), 0},
		"another object":  {func() *LiveRef { l := liveRef(11, 20, dead); l.Key = "other"; return l }(), 0},
		"another version": {func() *LiveRef { l := liveRef(11, 20, dead); l.Revision++; return l }(), 0},
	} {
		gone := Retirable([]Ref{seen, seen}, func(*Ref) *LiveRef { return x.stands })
		if len(gone) != x.want {
			t.Errorf("%s: %+v", name, gone)
		}
	}
}

// TestWatchersOf: each settled object once; slots and what is lost have no reap-check.
func TestWatchersOf(t *testing.T) {
	refs := []Ref{
		{Key: "b", Kind: RefPack, Class: "x"}, {Key: "s", Kind: RefSlot}, {Key: "a", Kind: RefStream, Class: "y"}, {Key: "b", Kind: RefPack, Class: "x"}, {Kind: RefLost},
	}
	if got := WatchersOf(refs); !slices.Equal(got, []Armed{{"b", "x"}, {"a", "y"}}) {
		t.Errorf("watchers %v", got)
	}
	if err := CheckKnown("v", refs); err != nil {
		t.Error(err)
	}
	if err := CheckKnown("v", append(refs, Ref{Kind: "newer"})); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// TestSettleMarkersOfSlots: from keys to ids and back to slots; what is none is refused.
func TestSettleMarkersOfSlots(t *testing.T) {
	c := segment.Chain{Epoch: 1, Shard: 2}
	ids, err := SettleIDs([]string{segment.SlotKey(c, 7), segment.SlotKey(c, 8)})
	if err != nil || !slices.Equal(ids, []string{SettleID(c, 7), SettleID(c, 8)}) {
		t.Fatalf("ids %v: %v", ids, err)
	}
	slots, err := SettleSlots(c, []MarkerRef{{Duty: DutySettle, ID: ids[0]}, {Duty: DutySettle, ID: ids[1]}})
	if err != nil || !slices.Equal(slots, []segment.ID{7, 8}) {
		t.Errorf("slots %v: %v", slots, err)
	}
	if _, err := SettleIDs([]string{segment.PackKey(c, 1, 2, 0)}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a pack's key: %v", err)
	}
	for name, m := range map[string]MarkerRef{
		"another duty":  {Duty: DutyGC, ID: ids[0]},
		"another chain": {Duty: DutySettle, ID: SettleID(segment.Chain{Epoch: 1}, 7)},
		"no slot":       {Duty: DutySettle, ID: "x"},
	} {
		if _, err := SettleSlots(c, []MarkerRef{m}); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

// TestSwapsAndTails: what several runs do together, and what a commit makes due.
func TestSwapsAndTails(t *testing.T) {
	run := func(stream int64) Run {
		e := Ref{StreamID: stream, Chain: segment.Chain{Epoch: 1}, First: 1, Last: 10, Key: "slot", Kind: RefSlot, Revision: -1}
		n := e
		n.Key, n.Kind, n.Revision = "out", RefStream, 0
		return Run{Expect: []Ref{e}, New: n}
	}
	r := &Rewrite{Key: "out", Runs: []Run{run(1), run(2)}}
	stands := func(stream int64, at segment.Pos) *Ref {
		e := r.Runs[stream-1].Expect[0]
		if at != e.FirstPos() {
			return nil
		}
		return &e
	}
	live := make([]segment.Pos, 2)
	if _, err := PlanSwaps(r, live, 1, stands); !errors.Is(err, ErrConflict) {
		t.Errorf("a stream that went away: %v", err)
	}
	swaps, err := PlanSwaps(r, live, 2, stands)
	if err != nil {
		t.Fatal(err)
	}
	out, gone, come := SwapRefs(swaps)
	if len(out.Committed) != 2 || out.Nothing || len(gone) != 2 || gone[1].StreamID != 2 || len(come) != 2 || come[0].Key != "out" {
		t.Errorf("commit %+v, gone %v, come %v", out, gone, come)
	}
	if swaps, err = PlanSwaps(r, []segment.Pos{pos(1, 11), pos(1, 11)}, 2, stands); err != nil {
		t.Fatal(err)
	}
	if out, gone, come := SwapRefs(swaps); !out.Nothing || out.Retired != 2 || len(gone) != 2 || len(come) != 0 {
		t.Errorf("all dead: commit %+v, gone %v, come %v", out, gone, come)
	}
	committed := []Ref{{StreamID: 1, Chain: segment.Chain{Epoch: 1}, First: 11, Last: 20, PrevLast: pos(1, 10), Key: "new", Kind: RefStream, Stored: 50}}
	tail := LiveRef{Ref: Ref{StreamID: 1, Chain: segment.Chain{Epoch: 1}, First: 1, Last: 10, Key: "tail", Kind: RefStream, Class: "c", Stored: 100}}
	if got := TailsDue(committed, []LiveRef{tail}, 1000); !slices.Equal(got, []Armed{{"tail", "c"}}) {
		t.Errorf("tails %v", got)
	}
	for name, change := range map[string]func(*LiveRef){
		"dead":           func(l *LiveRef) { l.LiveFrom = pos(1, 11) },
		"ends before":    func(l *LiveRef) { l.Last = 9 },
		"another stream": func(l *LiveRef) { l.StreamID = 2 },
		"full":           func(l *LiveRef) { l.Stored = 1000 },
	} {
		l := tail
		change(&l)
		if got := TailsDue(committed, []LiveRef{l}, 1000); len(got) != 0 {
			t.Errorf("%s: tails %v", name, got)
		}
	}
}

// TestLoseRefs: there is something to lose, or the answer says what to do.
func TestLoseRefs(t *testing.T) {
	lost, err := LoseRefs("k", "s", []Ref{{Key: "k", Kind: RefPack, First: 1}, {Key: "k", Kind: RefPack, First: 5}})
	if err != nil || len(lost) != 2 || lost[1].Kind != RefLost || lost[1].First != 5 || lost[1].Key != "" {
		t.Errorf("lost %+v: %v", lost, err)
	}
	if _, err := LoseRefs("k", "s", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing: %v", err)
	}
	c := segment.Chain{Epoch: 1}
	if k, err := VoidSlot(segment.SlotKey(c, 3)); err != nil || k.ID != 3 || k.Chain != c {
		t.Errorf("slot %+v: %v", k, err)
	}
	if _, err := VoidSlot(segment.PackKey(c, 1, 2, 0)); !errors.Is(err, ErrNotFound) {
		t.Errorf("a pack: %v", err)
	}
}

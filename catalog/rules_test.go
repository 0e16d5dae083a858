package catalog

import (
	"errors"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

func pos(e segment.Epoch, s segment.Seq) segment.Pos { return segment.Pos{Epoch: e, Seq: s} }

func uid(n byte) (u segment.UUID) { u[0] = n; return u }

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestEffectiveLiveFrom(t *testing.T) {
	c := segment.Chain{Epoch: 2}
	for _, x := range []struct {
		live      segment.Pos
		watermark segment.Seq
		want      segment.Pos
	}{
		{pos(0, 0), 0, pos(0, 0)},
		{pos(1, 50), 0, pos(1, 50)},
		{pos(0, 0), 9, pos(2, 10)},
		{pos(1, 50), 9, pos(2, 10)},
		{pos(2, 10), 9, pos(2, 10)},
		{pos(2, 11), 9, pos(2, 11)},
		{pos(3, 1), 9, pos(3, 1)},
	} {
		if got := EffectiveLiveFrom(x.live, c, x.watermark); got != x.want {
			t.Errorf("live_from %s, watermark %d: got %s, want %s", x.live, x.watermark, got, x.want)
		}
	}
	r := Ref{Chain: c, First: 5, Last: 9}
	for p, want := range map[segment.Pos][2]bool{ // dead, straddles
		pos(1, 99): {false, false}, pos(2, 5): {false, false}, pos(2, 6): {false, true},
		pos(2, 9): {false, true}, pos(2, 10): {true, false}, pos(3, 1): {true, false},
	} {
		if got := [2]bool{r.Dead(p), r.Straddles(p)}; got != want {
			t.Errorf("live_from %s: got %v, want %v", p, got, want)
		}
	}
}

func TestMargin(t *testing.T) {
	unset := Margin{}
	if unset.Deleting(t0, time.Minute) != time.Minute || unset.Reading(t0, time.Second) != time.Second {
		t.Error("a margin that nobody set is careful on both sides")
	}
	m := Margin{Seeded: true, Value: time.Hour, Old: time.Minute, Effective: t0}
	before, after := t0.Add(-1), t0
	if m.Deleting(before, 0) != time.Hour || m.Reading(before, 0) != time.Minute {
		t.Error("until it takes effect deleters use the longer, readers the shorter")
	}
	if m.Deleting(after, 0) != time.Hour || m.Reading(after, 0) != time.Hour {
		t.Error("then the value")
	}
	if got := (Settings{ReadGrace: m}).PlanTTL(after); got != 30*time.Minute {
		t.Errorf("plan ttl %v", got)
	}
}

// TestCheckAbsorbTrimmed: once the slot row is gone, the term table speaks only for
// the caller's own present term (K1).
func TestCheckAbsorbTrimmed(t *testing.T) {
	row := ChainRow{Owner: uid(1), Term: 5, AbsorbedEnd: 20, Trimmed: 15}
	own := &TermRow{Term: 5, Owner: uid(1), First: 8, Last: 19}
	for name, x := range map[string]struct {
		id   segment.ID
		term segment.Term
		call segment.Term
		own  segment.UUID
		row  *TermRow
		void bool
		ok   bool
	}{
		"own present term":            {10, 5, 5, uid(1), own, false, true},
		"before the term began":       {7, 5, 5, uid(1), own, false, false},
		"a lower term":                {10, 4, 5, uid(1), &TermRow{Term: 4, Owner: uid(1), First: 1, Last: 12}, false, false},
		"term that never began":       {10, 5, 5, uid(1), &TermRow{Term: 5, Owner: uid(1)}, false, false},
		"no term row":                 {10, 5, 5, uid(1), nil, false, false},
		"term of another":             {10, 5, 5, uid(1), &TermRow{Term: 5, Owner: uid(2), First: 8, Last: 19}, false, false},
		"fenced caller":               {10, 4, 4, uid(2), own, false, false},
		"present term, not owner":     {10, 5, 5, uid(2), own, false, false},
		"one who acknowledges none":   {10, 5, 0, segment.UUID{}, own, false, false},
		"void of what is not there":   {10, 5, 5, uid(1), own, true, false},
		"a term that the row has not": {10, 6, 6, uid(1), own, false, false},
	} {
		a := &Absorb{Slot: SlotRow{ID: x.id, Term: x.term, UUID: uid(9)}, CallerOwner: x.own, CallerTerm: x.call, Void: x.void}
		already, err := CheckAbsorb(&row, a, Absorbing{Term: x.row}, t0)
		if !already || (err == nil) != x.ok || !x.ok && !errors.Is(err, ErrFenced) {
			t.Errorf("%s: already %v, %v", name, already, err)
		}
	}
}

func TestCheckVoid(t *testing.T) {
	row := ChainRow{Owner: uid(1), Term: 5, AbsorbedEnd: 3, LeaseEnd: t0}
	for name, x := range map[string]struct {
		owner segment.UUID
		term  segment.Term
		now   time.Time
		ok    bool
	}{
		"owner":                     {uid(1), 5, t0.Add(-1), true},
		"stranger, living lease":    {segment.UUID{}, 0, t0.Add(-1), false},
		"stranger, after the lease": {segment.UUID{}, 0, t0, true},
	} {
		_, err := CheckAbsorb(&row, &Absorb{Slot: SlotRow{ID: 3}, CallerOwner: x.owner, CallerTerm: x.term, Void: true}, Absorbing{}, x.now)
		if (err == nil) != x.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, x := range map[string]struct {
		a    Absorb
		want bool
	}{
		"nobody could decode it": {Absorb{}, true},
		"a fence":                {Absorb{Slot: SlotRow{First: 4, Next: 4}}, false},
		"rows":                   {Absorb{Slot: SlotRow{First: 4, Next: 6}}, true},
		"refs":                   {Absorb{Slot: SlotRow{First: 4, Next: 4}, Refs: make([]Ref, 1)}, true},
	} {
		if got := x.a.HoldsRows(); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNextRewritten(t *testing.T) {
	row := ChainRow{AbsorbedEnd: 10, Rewritten: 3, Condemned: 2, WatermarkSegment: 4}
	for name, x := range map[string]struct {
		in   RewrittenInput
		want segment.ID
	}{
		"nothing owed":               {RewrittenInput{Row: row, Settle: true}, 10},
		"one owed":                   {RewrittenInput{Row: row, Settle: true, Earliest: 7}, 7},
		"owed below: never back":     {RewrittenInput{Row: row, Settle: true, Earliest: 1}, 3},
		"consumer behind":            {RewrittenInput{Row: row, Settle: true, Slowest: 5}, 5},
		"consumer too far behind":    {RewrittenInput{Row: row, Settle: true, Slowest: 5, HoldFloor: 8}, 8},
		"floor below the consumer":   {RewrittenInput{Row: row, Settle: true, Slowest: 5, HoldFloor: 4}, 5},
		"owed below consumer":        {RewrittenInput{Row: row, Settle: true, Slowest: 8, Earliest: 6}, 6},
		"plain tier: by watermark":   {RewrittenInput{Row: row}, 5},
		"plain tier: a parked void":  {RewrittenInput{Row: row, Earliest: 4}, 4},
		"plain, watermark beyond it": {RewrittenInput{Row: ChainRow{AbsorbedEnd: 4, WatermarkSegment: 9}}, 4},
	} {
		if got := NextRewritten(x.in); got != x.want {
			t.Errorf("%s: got %d, want %d", name, got, x.want)
		}
	}
}

func TestCheckCursors(t *testing.T) {
	if err := CheckCursors(&ChainRow{Trimmed: 1, Condemned: 2, Rewritten: 2, AbsorbedEnd: 3}); err != nil {
		t.Error(err)
	}
	for _, bad := range []ChainRow{
		{}, {Trimmed: 2, Condemned: 1, Rewritten: 2, AbsorbedEnd: 3}, {Trimmed: 1, Condemned: 3, Rewritten: 2, AbsorbedEnd: 3}, {Trimmed: 1, Condemned: 2, Rewritten: 4, AbsorbedEnd: 3},
	} {
		if err := CheckCursors(&bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestSlotsDue(t *testing.T) {
	row := ChainRow{Trimmed: 1, Condemned: 3, CondemnedAt: t0}
	if SlotsDue(&row, time.Minute, t0.Add(time.Minute-1)) || !SlotsDue(&row, time.Minute, t0.Add(time.Minute)) {
		t.Error("due exactly one grace after they were condemned")
	}
	row.Trimmed = 3
	if SlotsDue(&row, time.Minute, t0.Add(time.Hour)) {
		t.Error("nothing is condemned")
	}
}

func TestMarkerIDs(t *testing.T) {
	c := segment.Chain{Epoch: 3, Shard: 0xabcdef01}
	if got, id, err := ParseSettleID(SettleID(c, 77)); got != c || id != 77 || err != nil {
		t.Errorf("settle id: %v %v %v", got, id, err)
	}
	if got, err := ParseChainID(ChainID(c)); got != c || err != nil {
		t.Errorf("chain id: %v %v", got, err)
	}
	if got, err := ParseStreamID(StreamID(5)); got != 5 || err != nil {
		t.Errorf("stream id: %v %v", got, err)
	}
	for _, bad := range []string{"", "x", ChainID(c), ChainID(c) + ".", ChainID(c) + ".4d", SettleID(c, 0), SettleID(c, 77) + "0", "00000003.ABCDEF01.000000000000004d"} {
		if _, _, err := ParseSettleID(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("settle id %q: %v", bad, err)
		}
	}
	if SettleID(c, 9) >= SettleID(c, 10) || SettleID(c, 0xff) >= SettleID(c, 0x100) {
		t.Error("ids of one chain order by position")
	}
}

func TestMergeConsumers(t *testing.T) {
	c := func(n string, s segment.Seq) segment.Consumer { return segment.Consumer{Name: n, Cursor: s} }
	got := MergeConsumers([]segment.Consumer{c("a", 9), c("b", 4)}, []segment.Consumer{c("z", 1), c("a", 5)}, 0)
	if len(got) != 2 || got[0] != c("a", 9) || got[1] != c("z", 1) {
		t.Errorf("got %v", got)
	}
	if fresh := MergeConsumers([]segment.Consumer{c("a", 9)}, []segment.Consumer{c("a", 9), c("z", 1)}, 7); fresh[0] != c("a", 9) || fresh[1] != c("z", 7) {
		t.Errorf("above a watermark: got %v", fresh)
	}
	if s := SlowestCursor(got); !s.OK || s.Seq != 1 {
		t.Errorf("slowest %v", s)
	}
	if s := SlowestCursor(nil); s.OK {
		t.Errorf("slowest of none %v", s)
	}
}

func TestDerivable(t *testing.T) {
	k, err := segment.ParseKey(segment.StreamKey("a", 1, 10, 3))
	if err != nil {
		t.Fatal(err)
	}
	at := func(rev int32) *Ref { return &Ref{Chain: segment.Chain{Epoch: 1}, First: 10, Last: 20, Revision: rev} }
	for name, x := range map[string]struct {
		at   *Ref
		live segment.Pos
		want bool
	}{
		"nothing begins there": {nil, pos(0, 0), false}, "of a slot": {at(-1), pos(0, 0), true}, "lower revision": {at(2), pos(0, 0), true},
		"that revision": {at(3), pos(0, 0), false}, "higher": {at(4), pos(0, 0), false}, "dead": {at(2), pos(1, 21), false}, "straddles": {at(2), pos(1, 15), true},
	} {
		if got := StreamKeyDerivable(k, x.at, x.live); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	c := segment.Chain{Epoch: 1}
	p := segment.Key{Kind: segment.KeyPack, Chain: c, ID: 3, LastID: 6, Revision: 2}
	lower, same, range2 := p, p, p
	lower.Revision = 1
	range2.LastID, range2.Revision = 7, 0
	for name, x := range map[string]struct {
		trimmed segment.ID
		others  []segment.Key
		want    bool
	}{
		"slots stand": {6, nil, true}, "trimmed": {7, nil, false}, "a lower revision is named": {7, []segment.Key{same, lower}, true},
		"only its own and another range": {7, []segment.Key{same, range2}, false},
	} {
		if got := PackKeyDerivable(p, &ChainRow{Trimmed: x.trimmed}, x.others); got != x.want {
			t.Errorf("pack: %s: %v", name, got)
		}
	}
}

func TestCheckHead(t *testing.T) {
	head := segment.Head{Epoch: 1, Shard: 2, Term: 5, AbsorbedEnd: 9, WatermarkSeq: 100, WatermarkSegment: 4, Condemned: 6}
	good := ChainRow{Chain: segment.Chain{Epoch: 1, Shard: 2}, Term: 5, AbsorbedEnd: 9, WatermarkSeq: 100, WatermarkSegment: 4, Condemned: 6}
	if err := CheckHead(head, good); err != nil {
		t.Error(err)
	}
	for name, back := range map[string]func(*ChainRow){
		"term": func(r *ChainRow) { r.Term-- }, "absorbed_end": func(r *ChainRow) { r.AbsorbedEnd-- }, "watermark": func(r *ChainRow) { r.WatermarkSeq-- },
		"watermark segment": func(r *ChainRow) { r.WatermarkSegment-- }, "condemned": func(r *ChainRow) { r.Condemned-- },
	} {
		r := good
		back(&r)
		if err := CheckHead(head, r); !errors.Is(err, ErrRolledBack) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := good
	other.Shard++
	if err := CheckHead(head, other); !errors.Is(err, ErrInvalid) {
		t.Errorf("another chain: %v", err)
	}
}

func TestJudgeAt(t *testing.T) {
	in := Intent{Announced: t0, Deadline: t0.Add(time.Minute)}
	if got := JudgeAt(&in, time.Hour); !got.Equal(t0.Add(time.Hour)) {
		t.Errorf("by grace: %v", got)
	}
	if got := JudgeAt(&in, time.Second); !got.Equal(in.Deadline) {
		t.Errorf("by deadline: %v", got)
	}
}

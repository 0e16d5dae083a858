package catalog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

func TestTailFillDue(t *testing.T) {
	const target = 1000
	c := segment.Chain{Epoch: 1, Shard: 2}
	base := func() (prev, next Ref) {
		prev = Ref{StreamID: 1, Chain: c, First: 1, Last: 9, Key: "p", Kind: RefStream, Stored: 400}
		next = Ref{StreamID: 1, Chain: c, First: 12, Last: 14, PrevLast: pos(1, 9), Key: "n", Kind: RefStream, Stored: 100}
		return prev, next
	}
	for name, x := range map[string]struct {
		change func(prev, next *Ref)
		want   bool
	}{
		"a quarter":           {func(_, _ *Ref) {}, true},
		"less":                {func(_, n *Ref) { n.Stored-- }, false},
		"just below":          {func(p, n *Ref) { p.Stored, n.Stored = target-1, target }, true},
		"at the target":       {func(p, n *Ref) { p.Stored, n.Stored = target, target }, false},
		"behind a pack":       {func(p, _ *Ref) { p.Kind = RefPack }, false},
		"behind a slot":       {func(p, _ *Ref) { p.Kind = RefSlot }, false},
		"behind a loss":       {func(p, _ *Ref) { p.Kind = RefLost }, false},
		"a pack":              {func(_, n *Ref) { n.Kind = RefPack }, false},
		"one object":          {func(p, n *Ref) { p.Key = n.Key }, false},
		"not linked":          {func(_, n *Ref) { n.PrevLast = pos(1, 8) }, false},
		"of another stream":   {func(_, n *Ref) { n.StreamID = 2 }, false},
		"of an earlier epoch": {func(_, n *Ref) { n.Epoch = 2 }, false},
	} {
		prev, next := base()
		x.change(&prev, &next)
		if got := TailFillDue(&prev, &next, target); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLoseRef: a lost ref keeps its place and what it says of its rows, and nothing
// that points at bytes.
func TestLoseRef(t *testing.T) {
	was := Ref{
		StreamID: 3, Stream: "s", Chain: segment.Chain{Epoch: 1, Shard: 4}, First: 5, Last: 9, PrevLast: pos(1, 2),
		Key: "k", Kind: RefPack, Class: segment.ClassStandard, Revision: 7, Generation: 2,
		Chunks: 1, Offset: 10, Stored: 20, Raw: 30, Codec: 1, CRC: 2, Sum: 3,
		Rows: 4, RowSum: 5, Bytes: 6, MinTime: 7, MaxTime: 8,
	}
	want := Ref{
		StreamID: 3, Stream: "s", Chain: was.Chain, First: 5, Last: 9, PrevLast: pos(1, 2),
		Kind: RefLost, Rows: 4, RowSum: 5, Bytes: 6, MinTime: 7, MaxTime: 8,
	}
	if got := LoseRef(was); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if k := want.Kind; k.Settled() || !k.Known() {
		t.Error("a lost ref names nothing to watch, and stops nobody")
	}
	if d := DescribeLoss([]Ref{want, {Rows: 3, Chain: was.Chain, First: 11, Last: 13}}); !strings.Contains(d, "stream s: 7 rows in 2 refs, 1.5 to 1.13") {
		t.Error(d)
	}
}

// TestDerivableLost: no job comes to the key of a span that was given up.
func TestDerivableLost(t *testing.T) {
	k := segment.Key{Kind: segment.KeyStream, Chain: segment.Chain{Epoch: 1}, First: 10, Revision: 3}
	at := Ref{Chain: k.Chain, First: 10, Last: 20, Kind: RefStream}
	if !StreamKeyDerivable(k, &at, pos(0, 0)) {
		t.Error("a stream object of a lower revision begins there")
	}
	if at = LoseRef(at); StreamKeyDerivable(k, &at, pos(0, 0)) {
		t.Error("a lost span begins there")
	}
}

// TestDerivableMerged: a merge derives a pack key from packs whose ranges are parts of
// the key's, so each of those keeps it burned.
func TestDerivableMerged(t *testing.T) {
	c := segment.Chain{Epoch: 1}
	burned := segment.Key{Kind: segment.KeyPack, Chain: c, ID: 3, LastID: 9, Revision: 2}
	row := &ChainRow{Trimmed: 10}
	for name, x := range map[string]struct {
		change func(*segment.Key)
		want   bool
	}{
		"its beginning":      {func(o *segment.Key) { o.LastID = 5 }, true},
		"its middle":         {func(o *segment.Key) { o.ID, o.LastID = 4, 8 }, true},
		"its end":            {func(o *segment.Key) { o.ID = 6 }, true},
		"all of it":          {func(*segment.Key) {}, true},
		"begins before it":   {func(o *segment.Key) { o.ID = 2 }, false},
		"ends behind it":     {func(o *segment.Key) { o.LastID = 10 }, false},
		"of its revision":    {func(o *segment.Key) { o.ID, o.Revision = 4, 2 }, false},
		"of another chain":   {func(o *segment.Key) { o.ID, o.Chain.Shard = 4, 1 }, false},
		"no pack":            {func(o *segment.Key) { o.ID, o.Kind = 4, segment.KeyStream }, false},
		"its slots, trimmed": {func(o *segment.Key) { *o = segment.Key{} }, false},
	} {
		o := burned
		o.Revision = 1
		x.change(&o)
		if got := PackKeyDerivable(burned, row, []segment.Key{o}); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestChangeMargin(t *testing.T) {
	at, of := t0, SafetyMargin{Name: "ReadGrace", Least: time.Second}
	change := func(m Margin, v time.Duration) Margin {
		t.Helper()
		got, err := of.change(m, v, at)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := change(Margin{}, time.Minute)
	if want := (Margin{Seeded: true, Value: time.Minute, Old: time.Minute, Effective: t0}); first != want {
		t.Errorf("first %+v", first)
	}
	raised := change(first, time.Hour)
	if want := (Margin{Seeded: true, Value: time.Hour, Old: time.Minute, Effective: t0.Add(time.Minute)}); raised != want {
		t.Errorf("raised %+v", raised)
	}
	if change(raised, time.Hour) != raised {
		t.Error("the value that stands changes nothing")
	}
	at = raised.Effective.Add(-1)
	if m, err := of.change(raised, 2*time.Hour, at); !errors.Is(err, ErrConflict) || m != raised {
		t.Errorf("a second change before the first is in force: %+v, %v", m, err)
	}
	at = raised.Effective
	lowered := change(raised, time.Second)
	if lowered.Effective != at.Add(time.Hour) || lowered.Old != time.Hour {
		t.Errorf("lowered %+v", lowered)
	}
	if _, err := of.change(lowered, time.Second-1, at.Add(time.Hour)); !errors.Is(err, ErrInvalid) {
		t.Errorf("below the least: %v", err)
	}
}

func TestNextValidated(t *testing.T) {
	good := Rewrite{Key: "k", Nonce: "n", Runs: []Run{{
		Expect: []Ref{{Chain: segment.Chain{Epoch: 1}, First: 1, Last: 2, Key: "s"}},
		New:    Ref{Chain: segment.Chain{Epoch: 1}, First: 1, Last: 2, Key: "k", Kind: RefStream},
	}}}
	for _, next := range []Next{{}, {TailTarget: 1, PackFan: 8}, {TailTarget: -1}, {PackFan: -1}} {
		good.Next = next
		if err := ValidateRewrite(&good); (err == nil) != (next.TailTarget >= 0 && next.PackFan >= 0) {
			t.Errorf("%+v: %v", next, err)
		}
	}
}

// TestSafetyMargins: each margin stands where its name says, and a first value is held to
// its least.
func TestSafetyMargins(t *testing.T) {
	var s Settings
	for _, k := range []SafetyMargin{ReadGraceMargin(), OrphanGraceMargin()} {
		if m := s.MarginOf(k.Name); m == nil || m != k.Of(&s) {
			t.Errorf("%s stands at %p, its own place is %p", k.Name, m, k.Of(&s))
		}
		if err := k.ValidateSeed(k.Least); err != nil {
			t.Errorf("%s: the least: %v", k.Name, err)
		}
		if err := k.ValidateSeed(k.Least - 1); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: below the least: %v", k.Name, err)
		}
		if _, err := k.Change(&s, k.Least-1, t0); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: changed to below the least: %v", k.Name, err)
		}
	}
	if s.MarginOf("other") != nil || s.MarginOf("read-grace") != &s.ReadGrace || s.MarginOf("orphan-grace") != &s.OrphanGrace {
		t.Error("a name that is none, or another's place")
	}
	if err := s.Initialised(); !errors.Is(err, ErrNotFound) {
		t.Errorf("no deployment: %v", err)
	}
}

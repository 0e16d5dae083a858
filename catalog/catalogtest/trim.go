package catalogtest

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func testTrimCheck(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 3 {
		w.Absorb("a:2")
	}
	row, err := w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	Equal(t, "rewritten: all owe", row.Rewritten, 1)
	w.Settle("a")
	_, err = w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers()[:2])
	w.OK(err)
	row, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	Equal(t, "rewritten: up to the one that owes", row.Rewritten, 3)
	m, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	condemn := func(expect, to segment.ID) error {
		_, err := w.C.CondemnSlots(w.Ctx, m.MarkerRef, w.Chain, expect, to)
		return err
	}
	w.Is(condemn(2, 3), catalog.ErrConflict, "condemned")
	w.Is(condemn(1, 4), catalog.ErrConflict, "rewritten")
	w.Is(condemn(1, 1), catalog.ErrInvalid, "")
	_, err = w.C.CondemnSlots(w.Ctx, catalog.MarkerRef{Duty: catalog.DutyGC, ID: m.ID}, w.Chain, 1, 3)
	w.Is(err, catalog.ErrInvalid, "")
	w.OK(w.C.Arm(w.Ctx, catalog.DutyTrimCheck, m.ID, "", 0))
	w.Is(condemn(1, 3), catalog.ErrConflict, "marker trim-check "+m.ID)
	m, _ = w.Marker(catalog.DutyTrimCheck, m.ID)
	w.OK(condemn(1, 3))
	w.Is(condemn(1, 3), catalog.ErrConflict, "condemned")
	after, _ := w.Marker(catalog.DutyTrimCheck, m.ID)
	Equal(t, "next look", after.Due, w.Clock.Now().Add(readGrace))
	row = w.Row()
	Equal(t, "condemned", row.Condemned, 3)
	Equal(t, "condemned at", row.CondemnedAt, w.Clock.Now())
	m = after
	w.Is(condemn(3, 3), catalog.ErrConflict, "trimmed = condemned")

	p, err := w.C.DueSlots(w.Ctx, w.Chain, 10)
	w.OK(err)
	Equal(t, "due", p.Due, false)
	Equal(t, "slots", len(p.Slots), 2)
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 1, 3)
	w.Is(err, catalog.ErrConflict, "grace")
	w.Clock.Advance(readGrace)
	p, err = w.C.DueSlots(w.Ctx, w.Chain, 1)
	w.OK(err)
	Equal(t, "due", p.Due, true)
	Equal(t, "slots at most", len(p.Slots), 1)
	Equal(t, "named", len(p.Named), 0)
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 2, 3)
	w.Is(err, catalog.ErrConflict, "trimmed")
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 1, 4)
	w.Is(err, catalog.ErrConflict, "condemned")
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 1, 1)
	w.Is(err, catalog.ErrInvalid, "")
	row, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 1, 2)
	w.OK(err)
	Equal(t, "trimmed", row.Trimmed, 2)
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 2, 3)
	w.OK(err)
	slots, err := w.C.Slots(w.Ctx, w.Chain, 0, 10)
	w.OK(err)
	Equal(t, "slot rows left: one of the trimmed, and the last", len(slots), 2)
	Equal(t, "ends", slots[0].ID, 2)
	Equal(t, "begins with the first", slots[0].First, 1)
	Equal(t, "bytes of both", slots[0].Bytes, 2000)

	// The chain's last slot row outlives its slot.
	_, err = w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	row, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	Equal(t, "rewritten: all", row.Rewritten, 4)
	m, _ = w.Marker(catalog.DutyTrimCheck, m.ID)
	w.OK(condemn(3, 4))
	w.Clock.Advance(readGrace)
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 3, 4)
	w.OK(err)
	slots, err = w.C.Slots(w.Ctx, w.Chain, 0, 10)
	w.OK(err)
	Equal(t, "last slot row", slots[len(slots)-1].ID, 3)
	Equal(t, "as it was", slots[len(slots)-1].Bytes, 1000)
	w.Absorb("a:1")
	Equal(t, "the chain goes on", w.Row().AbsorbedEnd, 5)
}

// testTrimCheckEarly: arms do not bring the delete nearer (seed 002's collapse).
func testTrimCheckEarly(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:2")
	w.Settle("a")
	_, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	first, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	w.Clock.Advance(readGrace / 2)
	w.Absorb("a:2")
	w.Settle("a")
	_, err = w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	again, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	Equal(t, "keeps its own clock", again.Due, first.Due)
	// The slot that was rewritten just now is condemned with the others, and waits a
	// whole grace from then.
	w.Clock.Advance(readGrace / 2)
	row, err := w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	_, err = w.C.CondemnSlots(w.Ctx, again.MarkerRef, w.Chain, 1, row.Rewritten)
	w.OK(err)
	w.Clock.Advance(readGrace - time.Nanosecond)
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, 1, 3)
	w.Is(err, catalog.ErrConflict, "grace")
}

func testTrimConsumers(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 4 { // rows 1-2, 3-4, 5-6, 7-8, 1,000 bytes each
		a := w.Build("a:2")
		a.Consumers = []segment.Consumer{{Name: "fast", Cursor: 8}, {Name: "slow", Cursor: 3}}
		_, err := w.C.AbsorbSlot(w.Ctx, a)
		w.OK(err)
		w.Continue(a)
	}
	w.Settle("a")
	_, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	row, err := w.C.AdvanceRewritten(w.Ctx, w.Chain, 1<<40)
	w.OK(err)
	Equal(t, "up to the slowest cursor's slot", row.Rewritten, 2)
	row, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	Equal(t, "no bound on the hold", row.Rewritten, 2)
	row, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 2500)
	w.OK(err)
	Equal(t, "held at most 2,500 bytes behind", row.Rewritten, 3)
	row, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 1<<40)
	w.OK(err)
	Equal(t, "never back", row.Rewritten, 3)
	a := w.Build("")
	a.Consumers = []segment.Consumer{{Name: "fast", Cursor: 8}, {Name: "slow", Cursor: 8}}
	_, err = w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	_, err = w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	row, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 1<<40)
	w.OK(err)
	Equal(t, "all acknowledged", row.Rewritten, 6)
}

func testTrimStream(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4 b:1")
	pos := func(s segment.Seq) segment.Pos { return segment.Pos{Epoch: 1, Seq: s} }
	_, err := w.C.TrimStream(w.Ctx, "none", pos(1))
	w.Is(err, catalog.ErrNotFound, "")
	_, err = w.C.TrimStream(w.Ctx, "a", pos(6))
	w.Is(err, catalog.ErrBeyondTip, "")
	_, err = w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 2})
	w.Is(err, catalog.ErrBeyondTip, "")
	s, err := w.C.TrimStream(w.Ctx, "a", pos(3))
	w.OK(err)
	Equal(t, "live_from", s.LiveFrom, pos(3))
	m, ok := w.Marker(catalog.DutyTeardown, catalog.StreamID(s.ID))
	if !ok || m.Due.After(w.Clock.Now()) {
		t.Fatalf("teardown %+v %v", m, ok)
	}
	s, err = w.C.TrimStream(w.Ctx, "a", pos(2))
	w.OK(err)
	Equal(t, "never lowered", s.LiveFrom, pos(3))
	s, err = w.C.TrimStream(w.Ctx, "a", pos(5)) // through the tip
	w.OK(err)
	Equal(t, "listed", s.Deleted, false)
	p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a"})
	w.OK(err)
	Equal(t, "plan", len(p.Refs), 0)
}

func testDeleteStream(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4 b:1")
	_, err := w.C.DeleteStream(w.Ctx, "none")
	w.Is(err, catalog.ErrNotFound, "")
	for range 2 {
		s, err := w.C.DeleteStream(w.Ctx, "a")
		w.OK(err)
		Equal(t, "deleted", s.Deleted, true)
		Equal(t, "live_from", s.LiveFrom, segment.Pos{Epoch: 1, Seq: 5})
	}
	Equal(t, "b is another", len(w.Refs("b")), 1)
}

func testWalk(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 5 {
		w.Absorb("a:4")
	}
	id := mustStream(w, "a").ID
	_, err := w.C.WalkStream(w.Ctx, 77, 2)
	w.Is(err, catalog.ErrNotFound, "")
	_, err = w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 14}) // 3 dead, the fourth straddles
	w.OK(err)
	p, err := w.C.WalkStream(w.Ctx, id, 2)
	w.OK(err)
	Equal(t, "page", len(p.Dead), 2)
	Equal(t, "more", p.More, true)
	Equal(t, "no straddle yet", p.Straddle == nil, true)
	w.OK(w.C.ArmWatchers(w.Ctx, p.Dead))
	_, err = w.C.RetireRefs(w.Ctx, p.Dead)
	w.OK(err)
	p, err = w.C.WalkStream(w.Ctx, id, 2)
	w.OK(err)
	Equal(t, "rest", len(p.Dead), 1)
	Equal(t, "more", p.More, false)
	Equal(t, "straddle", p.Straddle.First, 13)
	Equal(t, "live_from", p.LiveFrom, segment.Pos{Epoch: 1, Seq: 14})
}

func testRetire(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4 b:1")
	w.Absorb("a:4")
	w.Absorb("c:4")
	w.Settle("c")
	c := w.Refs("c")
	a := w.Refs("a")
	for _, m := range w.SettleMarkers() {
		w.OK(w.C.Postpone(w.Ctx, m, time.Hour, ""))
	}
	_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 7}) // the second straddles
	w.OK(err)
	_, err = w.C.DeleteStream(w.Ctx, "c")
	w.OK(err)
	moved := a[0]
	moved.Revision = 4
	n, err := w.C.RetireRefs(w.Ctx, []catalog.Ref{moved, a[1]})
	w.OK(err)
	Equal(t, "changed or alive: left", n, 0)
	odd := c[0]
	odd.Kind = "newer"
	w.Is(w.C.ArmWatchers(w.Ctx, []catalog.Ref{odd}), catalog.ErrCorrupt, "")
	w.OK(w.C.ArmWatchers(w.Ctx, append(c, a...)))
	m, ok := w.Marker(catalog.DutyReapCheck, c[0].Key)
	if !ok || !m.Due.Equal(w.Clock.Now().Add(readGrace)) {
		t.Fatalf("reap-check of the settled object: %+v %v", m, ok)
	}
	for i, want := range []bool{true, true, false} {
		m, _ := w.Marker(catalog.DutySettle, catalog.SettleID(w.Chain, segment.ID(i+1)))
		Equal(t, "settle marker is due", !m.Due.After(w.Clock.Now()), want)
	}
	for _, m := range w.SettleMarkers() {
		w.OK(w.C.Postpone(w.Ctx, m, time.Hour, ""))
	}
	n, err = w.C.RetireRefs(w.Ctx, []catalog.Ref{a[0], a[0], c[0]})
	w.OK(err)
	Equal(t, "retired", n, 2)
	m, _ = w.Marker(catalog.DutySettle, catalog.SettleID(w.Chain, 1))
	Equal(t, "b still names the slot", m.Due.After(w.Clock.Now()), true)
	_, err = w.C.DeleteStream(w.Ctx, "b")
	w.OK(err)
	n, err = w.C.RetireRefs(w.Ctx, []catalog.Ref{{StreamID: mustStream(w, "b").ID, Chain: w.Chain, First: 5, Last: 5, Key: a[0].Key, Revision: -1, Kind: catalog.RefSlot}})
	w.OK(err)
	Equal(t, "retired", n, 1)
	m, _ = w.Marker(catalog.DutySettle, catalog.SettleID(w.Chain, 1))
	Equal(t, "the slot lost its last ref", m.Due.After(w.Clock.Now()), false)
}

func testJournal(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.OK(w.C.AdvanceJournal(w.Ctx, w.Chain, 1))
	w.Is(w.C.AdvanceJournal(w.Ctx, w.Chain, 1), catalog.ErrConflict, "trim journal of chain "+w.Chain.String())
	w.OK(w.C.AdvanceJournal(w.Ctx, w.Chain, 2))
	Equal(t, "journal", w.Row().TrimJournal, 3)
}

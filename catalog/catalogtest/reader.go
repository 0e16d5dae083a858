package catalogtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func testPlan(t *testing.T, open Open) {
	w := NewWorld(t, open)
	_, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a"})
	w.Is(err, catalog.ErrNotFound, "")
	for range 5 {
		w.Absorb("a:4 b:1") // a: 1-4, 6-9, 11-14, 16-19, 21-24
	}
	pos := func(s segment.Seq) segment.Pos { return segment.Pos{Epoch: 1, Seq: s} }
	for _, c := range []struct {
		name        string
		from, to    segment.Seq
		limit       int
		first, refs int
		more        bool
	}{
		{"all", 0, 0, 0, 1, 5, false},
		{"inside a ref", 7, 0, 0, 6, 4, false},
		{"first row of one", 11, 0, 0, 11, 3, false},
		{"last row of one", 9, 0, 0, 6, 4, false},
		{"between two", 10, 0, 0, 11, 3, false},
		{"up to inside", 1, 12, 0, 1, 3, false},
		{"up to between", 1, 10, 0, 1, 2, false},
		{"one row", 8, 8, 0, 6, 1, false},
		{"beyond the tip", 30, 0, 0, 0, 0, false},
		{"a page", 0, 0, 2, 1, 2, true},
		{"a page that is all", 16, 0, 2, 16, 2, false},
	} {
		r := catalog.PlanRequest{Stream: "a", Limit: c.limit}
		if c.from > 0 {
			r.From = pos(c.from)
		}
		if c.to > 0 {
			r.To = pos(c.to)
		}
		p, err := w.C.Plan(w.Ctx, r)
		w.OK(err)
		Equal(t, c.name+": refs", len(p.Refs), c.refs)
		Equal(t, c.name+": more", p.More, c.more)
		if c.refs > 0 {
			Equal(t, c.name+": first", int(p.Refs[0].First), c.first)
		}
		Equal(t, c.name+": ttl", p.TTL, readGrace/2)
	}
	_, err = w.C.TrimStream(w.Ctx, "a", pos(12))
	w.OK(err)
	p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: "a", From: pos(1)})
	w.OK(err)
	Equal(t, "live_from", p.LiveFrom, pos(12))
	Equal(t, "first ref at or above", p.Refs[0].First, 11)
	Equal(t, "tip", p.Stream.Last, pos(24))
}

func testPages(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for range 3 {
		w.Absorb("a:1 b:1 c:1")
	}
	w.Settle("b")
	streams, err := w.C.Streams(w.Ctx, "a", 1)
	w.OK(err)
	Equal(t, "streams", len(streams), 1)
	Equal(t, "after a", streams[0].Name, "b")
	refs, err := w.C.ChainRefs(w.Ctx, w.Chain, 5, 2)
	w.OK(err)
	Equal(t, "chain refs", len(refs), 2)
	Equal(t, "first by last", refs[0].Last, 6)
	var all []catalog.LiveRef
	var after *catalog.Ref
	for {
		page, err := w.C.RefsByKey(w.Ctx, after, 2)
		w.OK(err)
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
		after = &page[len(page)-1].Ref
	}
	Equal(t, "refs by key", len(all), 7)
	for i := 1; i < len(all); i++ {
		a, b := &all[i-1], &all[i]
		if a.Key > b.Key || a.Key == b.Key && (a.StreamID > b.StreamID || a.StreamID == b.StreamID && !a.FirstPos().Less(b.FirstPos())) {
			t.Fatalf("order: %s %d %s then %s %d %s", a.Key, a.StreamID, a.FirstPos(), b.Key, b.StreamID, b.FirstPos())
		}
	}
	w.Announce("obj/1", "n")
	w.Announce("obj/2", "n")
	ins, err := w.C.Intents(w.Ctx, "obj/1", 10)
	w.OK(err)
	Equal(t, "intents", len(ins), 1)
	ms, err := w.C.MarkersOf(w.Ctx, catalog.DutySettle, catalog.SettleID(w.Chain, 1), 1)
	w.OK(err)
	Equal(t, "markers", ms[0].ID, catalog.SettleID(w.Chain, 2))
}

func testStatus(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:1 b:1")
	w.Absorb("a:1")
	w.Settle("b")
	_, err := w.C.DeleteStream(w.Ctx, "b")
	w.OK(err)
	_, err = w.C.RegisterAuditor(w.Ctx, "x", time.Minute)
	w.OK(err)
	w.Announce("obj/1", "n")
	w.OK(w.C.Postpone(w.Ctx, w.SettleMarkers()[0], time.Hour, "away"))
	s, err := w.C.Status(w.Ctx)
	w.OK(err)
	Equal(t, "streams", s.Streams, 2)
	Equal(t, "deleted", s.Deleted, 1)
	Equal(t, "slot refs", s.Refs[catalog.RefSlot], 2)
	Equal(t, "stream refs", s.Refs[catalog.RefStream], 1)
	Equal(t, "auditors", s.Auditors, 1)
	Equal(t, "intents", s.Intents[catalog.IntentStanding], 1)
	m := s.Markers[catalog.DutySettle]
	Equal(t, "standing", m.Standing, 2)
	Equal(t, "due", m.Due, 1)
	Equal(t, "attempts", m.Attempts, 1)
	Equal(t, "last error", m.LastError, "away")
	Equal(t, "deployment", s.Settings.Deployment, UUID(99))
	d, err := w.C.Debts(w.Ctx)
	w.OK(err)
	Equal(t, "now", d.Now, s.Now)
	Equal(t, "duties that owe", len(d.Markers), len(s.Markers))
	for duty, m := range s.Markers {
		Equal(t, "debts of "+string(duty), d.Markers[duty], m)
	}
}

func testCancelled(t *testing.T, open Open) {
	w := NewWorld(t, open)
	ctx, cancel := context.WithCancel(w.Ctx)
	cancel()
	_, err := w.C.AbsorbSlot(ctx, w.Build("a:1"))
	if !errors.Is(err, catalog.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled mutation: %v", err)
	}
	Equal(t, "absorbed_end", w.Row().AbsorbedEnd, 1)
	_, err = w.C.Chains(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled read: %v", err)
	}
	w.Absorb("a:1") // the connections are as good as before
	Equal(t, "refs", len(w.Refs("a")), 1)
}

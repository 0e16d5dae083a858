package memory

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/segment"
)

// TestSkip: each guard holds where it is asked, and lets the same act pass where it is
// skipped. So a planted fault is one.
func TestSkip(t *testing.T) {
	for _, c := range []struct {
		guard Guard
		act   func(*world) bool // whether the wrong act happened
	}{
		{ReadGrace, actTrimEarly},
		{CondemnedAt, actTrimEarly},
		{OrphanGrace, func(w *world) bool {
			w.Announce("obj/x", "n")
			v, _, err := w.C.CondemnIntent(w.Ctx, w.marker(catalog.DutyOrphan, "obj/x"))
			return err == nil && v == catalog.Condemned
		}},
		{Condemned, func(w *world) bool {
			w.Announce("obj/x", "n")
			return w.C.BurnIntent(w.Ctx, "obj/x") == nil
		}},
		{CommitIntent, func(w *world) bool {
			w.Absorb("a:4")
			run := output("obj/x", w.Refs("a")...)
			_, err := w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: "obj/x", Nonce: "n", Runs: []catalog.Run{run}})
			return err == nil
		}},
		{CommitRefs, func(w *world) bool {
			w.Absorb("a:4")
			seen := w.Refs("a")
			w.Settle("a")
			w.Announce("obj/x", "n")
			run := output("obj/x", seen...)
			_, err := w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: "obj/x", Nonce: "n", Runs: []catalog.Run{run}})
			return err == nil
		}},
		{BurnedKey, func(w *world) bool {
			w.burnt("obj/x")
			_, err := w.C.Announce(w.Ctx, catalog.Announce{Key: "obj/x", Class: segment.ClassStandard, Holder: w.Holder(), Nonce: "n2", Deadline: time.Minute})
			return err == nil
		}},
		{Confirmed, func(w *world) bool {
			w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, "obj/x", "", 0))
			return w.C.CondemnKey(w.Ctx, w.marker(catalog.DutyReapCheck, "obj/x")) == nil
		}},
		{Named, func(w *world) bool {
			w.Absorb("a:4")
			key := w.Settle("a")
			w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, key, "", 0))
			w.OK(w.C.Confirm(w.Ctx, w.marker(catalog.DutyReapCheck, key)))
			w.Clock.Advance(time.Hour)
			return w.C.CondemnKey(w.Ctx, w.marker(catalog.DutyReapCheck, key)) == nil
		}},
		{Version, func(w *world) bool {
			w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, "obj/x", "", 0))
			m := w.marker(catalog.DutyReapCheck, "obj/x")
			w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, "obj/x", "", 0))
			w.OK(w.C.Resolve(w.Ctx, m))
			_, stands := w.World.Marker(catalog.DutyReapCheck, "obj/x")
			return !stands
		}},
		{Watch, func(w *world) bool {
			w.Absorb("a:4")
			key := w.Settle("a")
			w.Announce("obj/x", "n")
			run := output("obj/x", w.Refs("a")...)
			run.New.Revision = 1
			_, err := w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: "obj/x", Nonce: "n", Runs: []catalog.Run{run}})
			w.OK(err)
			_, watched := w.World.Marker(catalog.DutyReapCheck, key)
			return !watched
		}},
		{Retire, func(w *world) bool {
			w.Absorb("a:4")
			n, err := w.C.RetireRefs(w.Ctx, w.Refs("a"))
			return err == nil && n == 1
		}},
		{FirstSeq, func(w *world) bool {
			w.Absorb("a:4")
			refs := w.Refs("a")
			_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 3})
			w.OK(err)
			n, err := w.C.RetireRefs(w.Ctx, refs)
			return err == nil && n == 1
		}},
		{DeadRefs, func(w *world) bool {
			a := w.Build("a:4")
			w.Absorb("a:4")
			refs := w.Refs("a")
			_, err := w.C.DeleteStream(w.Ctx, "a")
			w.OK(err)
			_, err = w.C.RetireRefs(w.Ctx, refs)
			w.OK(err)
			got, err := w.C.AbsorbSlot(w.Ctx, a)
			w.OK(err)
			n, _, _, _ := w.mem.Snapshot().View().Count()
			return got.Already && n == 1
		}},
		{Position, func(w *world) bool {
			a := w.Build("a:4")
			a.Slot.ID = 2
			a.Key = segment.SlotKey(w.Chain, 2)
			_, err := w.C.AbsorbSlot(w.Ctx, a)
			return err == nil
		}},
		{Stood, func(w *world) bool {
			a := w.Build("a:4")
			w.Absorb("a:4")
			a.Slot.UUID = uuidOf(7)
			got, err := w.C.AbsorbSlot(w.Ctx, a)
			return err == nil && got.Already
		}},
		{Continues, func(w *world) bool {
			w.Next = 9
			_, err := w.C.AbsorbSlot(w.Ctx, w.Build("a:4"))
			return err == nil
		}},
		{Consumer, func(w *world) bool {
			for range 2 {
				a := w.Build("a:4")
				a.Consumers = []segment.Consumer{{Name: "c", Cursor: 1}}
				_, err := w.C.AbsorbSlot(w.Ctx, a)
				w.OK(err)
				w.Continue(a)
			}
			_, err := w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: w.Chain, Seq: 4, Segment: 1, Term: w.Term})
			return err == nil
		}},
		{LiveFrom, func(w *world) bool {
			w.Absorb("a:4")
			for _, s := range []segment.Seq{4, 2} {
				_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: s})
				w.OK(err)
			}
			s, err := w.C.Stream(w.Ctx, "a")
			w.OK(err)
			return s.LiveFrom.Seq == 2
		}},
	} {
		t.Run(string(c.guard), func(t *testing.T) {
			if c.act(newWorld(t)) {
				t.Error("happened, though the guard is asked")
			}
			if !c.act(newWorld(t, c.guard)) {
				t.Error("did not happen, though the guard is skipped")
			}
		})
	}
}

// output is a run over refs of one stream, into a stream object.
func output(key string, refs ...catalog.Ref) catalog.Run {
	return catalogtest.Output(key, 0, catalog.RefStream, refs...)
}

// actTrimEarly trims a slot at once after it was condemned.
func actTrimEarly(w *world) bool {
	w.Absorb("a:4")
	w.Settle("a")
	_, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	row, err := w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	_, err = w.C.CondemnSlots(w.Ctx, w.marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain)), w.Chain, row.Condemned, row.Rewritten)
	w.OK(err)
	p, err := w.C.DueSlots(w.Ctx, w.Chain, 0)
	w.OK(err)
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, row.Trimmed, row.Rewritten)
	if p.Due != (err == nil) {
		w.T.Errorf("due %v, %v", p.Due, err)
	}
	return err == nil
}

// marker is a standing one, which must stand.
func (w *world) marker(d catalog.Duty, id string) catalog.MarkerRef {
	w.T.Helper()
	m, ok := w.World.Marker(d, id)
	if !ok {
		w.T.Fatalf("no marker %s %s", d, id)
	}
	return m.MarkerRef
}

// burnt leaves a key behind that was judged and burned.
func (w *world) burnt(key string) {
	w.T.Helper()
	w.Announce(key, "n")
	w.Clock.Advance(time.Hour)
	_, _, err := w.C.CondemnIntent(w.Ctx, w.marker(catalog.DutyOrphan, key))
	w.OK(err)
	w.OK(w.C.BurnIntent(w.Ctx, key))
}

package settle

import (
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// rewrites are the duties that RunMarker serves.
var rewrites = []catalog.Duty{catalog.DutyGC, catalog.DutyTailFill, catalog.DutyPackMerge}

// scene is a tier on which one marker is due, and what is so when it was served.
type scene struct {
	name  string
	duty  catalog.Duty
	reads string // the verb that its policy plans by
	// rows of "s" that trims and winners are about: it moves in every scene.
	build func(x *tier)
	then  func(t *testing.T, x *tier)
}

// few is a configuration of small things: a stream object from 64 KiB, three packs to a
// merge.
func few() Config {
	cfg := serial()
	cfg.PackFan = 3
	return cfg
}

// settleNow settles what stands, into multipart uploads.
func (x *tier) settleNow() {
	x.t.Helper()
	x.settle(x.settlerOn(x.multipart(x.mem), x.db, few()))
}

// keyOf is the key that serves a stream's tip.
func (x *tier) keyOf(stream string) string {
	x.t.Helper()
	refs := x.refsOf(stream)
	if len(refs) == 0 {
		x.t.Fatalf("no ref of %q", stream)
	}
	return refs[len(refs)-1].Key
}

// refsOf are a stream's live refs, in order.
func (x *tier) refsOf(stream string) []catalog.Ref {
	x.t.Helper()
	plan, err := x.db.Plan(x.t.Context(), catalog.PlanRequest{Stream: stream, Limit: 1000})
	must(x.t, err)
	return plan.Refs
}

func scenes() []scene {
	return []scene{
		{"gc of a stream object", catalog.DutyGC, "Liveness", func(x *tier) {
			x.slot(write{stream: "s", rows: 90, size: 2000, noise: true})
			x.settleNow()
			x.trim("s", 41)
			must(x.t, x.db.Arm(x.t.Context(), catalog.DutyGC, x.keyOf("s"), segment.ClassStandard, 0))
		}, gcDone},
		{"gc of a pack", catalog.DutyGC, "Liveness", func(x *tier) {
			x.slot(
				write{stream: "a", rows: 4, size: 4000, noise: true}, write{stream: "dead", rows: 9, size: 4000, noise: true},
				write{stream: "s", rows: 15, size: 4000, noise: true},
			)
			x.settleNow()
			x.remove("dead")
			x.trim("s", x.rows["s"][3].Seq)
			must(x.t, x.db.Arm(x.t.Context(), catalog.DutyGC, x.keyOf("s"), segment.ClassStandard, 0))
		}, gcDone},
		{"tail-fill", catalog.DutyTailFill, "Plan", func(x *tier) {
			for _, rows := range []int{60, 40} {
				x.slot(write{stream: "s", rows: rows, size: 2000, noise: true}, write{stream: "a", rows: 3, size: 100})
				x.settleNow()
			}
		}, func(t *testing.T, x *tier) {
			if refs := x.refsOf("s"); len(refs) != 1 || refs[0].Kind != catalog.RefStream || refs[0].Revision == 0 {
				t.Errorf("refs of s: %+v", refs)
			}
		}},
		{"pack-merge", catalog.DutyPackMerge, "PackWindow", func(x *tier) {
			for range 3 {
				x.slot(write{stream: "a", rows: 3, size: 4000, noise: true}, write{stream: "grown", rows: 8, size: 4000, noise: true}, write{stream: "s", rows: 4, size: 4000, noise: true})
				x.settleNow()
			}
		}, func(t *testing.T, x *tier) {
			for _, stream := range []string{"a", "s"} {
				refs := x.refsOf(stream)
				if len(refs) != 1 || refs[0].Kind != catalog.RefPack || refs[0].Generation != 1 {
					t.Errorf("refs of %s: %+v", stream, refs)
				}
			}
			if refs := x.refsOf("grown"); len(refs) != 1 || refs[0].Kind != catalog.RefStream || refs[0].Generation != 0 {
				t.Errorf("refs of grown: %+v", refs)
			}
		}},
	}
}

// gcDone: the live rows of s stand in an object of a higher revision alone.
func gcDone(t *testing.T, x *tier) {
	refs := x.refsOf("s")
	if len(refs) != 1 || refs[0].Revision == 0 || refs[0].Generation != 0 {
		t.Errorf("refs of s: %+v", refs)
	}
	for _, r := range x.refs() {
		if r.Dead(r.LiveFrom) {
			continue
		}
		if k, err := segment.ParseKey(r.Key); err != nil || k.Revision == 0 {
			t.Errorf("ref %s of %q still names %s", r.FirstPos(), r.Stream, r.Key)
		}
	}
	f, _, err := readTail(t.Context(), x.store, refs[0].Key)
	must(t, err)
	for _, c := range f.Chunks {
		if c.Stream == "dead" || c.Stream == "s" && c.First < x.liveFrom("s") {
			t.Errorf("dead rows of %q from seq %d on were copied", c.Stream, c.First)
		}
	}
}

// trim raises a stream's live_from, and walks.
func (x *tier) trim(stream string, seq segment.Seq) {
	x.t.Helper()
	_, err := x.db.TrimStream(x.t.Context(), stream, segment.Pos{Epoch: 1, Seq: seq})
	must(x.t, err)
	x.walk(stream)
}

// remove deletes a stream, and walks.
func (x *tier) remove(stream string) {
	x.t.Helper()
	_, err := x.db.DeleteStream(x.t.Context(), stream)
	must(x.t, err)
	x.walk(stream)
}

// retain gives the chain up to the end of a slot, as retention and its reclaim do.
func (x *tier) retain(id segment.ID) {
	x.t.Helper()
	ctx := x.t.Context()
	slots, err := x.db.Slots(ctx, x.chain, id, 1)
	must(x.t, err)
	_, err = x.db.RaiseWatermark(ctx, catalog.Watermark{Chain: x.chain, Seq: slots[0].Next - 1, Segment: id, Term: x.term})
	must(x.t, err)
	straddle, _, err := x.db.StraddlingRefs(ctx, x.chain, nil, 1000)
	must(x.t, err)
	dead, _, err := x.db.DeadRefs(ctx, x.chain, 1000)
	must(x.t, err)
	must(x.t, x.db.ArmWatchers(ctx, slices.Concat(dead, straddle)))
	if len(dead) > 0 {
		_, err = x.db.RetireRefs(ctx, dead)
		must(x.t, err)
	}
}

// debts are the standing markers of some duties; none: of all rewrites.
func (x *tier) debts(duties ...catalog.Duty) (out []catalog.Marker) {
	x.t.Helper()
	if len(duties) == 0 {
		duties = rewrites
	}
	for _, d := range duties {
		ms, err := x.db.MarkersOf(x.t.Context(), d, "", 1000)
		must(x.t, err)
		out = append(out, ms...)
	}
	return out
}

// taken is the one due marker of a duty, leased to settler-1.
func (x *tier) taken(d catalog.Duty) catalog.Marker {
	x.t.Helper()
	ms, err := x.db.TakeDue(x.t.Context(), catalog.Take{Duties: []catalog.Duty{d}, Owner: "settler-1", Lease: time.Minute, Limit: 100})
	must(x.t, err)
	if len(ms) != 1 {
		x.t.Fatalf("%d markers of %s are due: %+v", len(ms), d, ms)
	}
	return ms[0]
}

// pays serves markers of the rewrites as settler-2 until none is left, putting those
// back whose run failed; it fails the test if that does not end.
func (x *tier) pays(s *Settler) {
	x.t.Helper()
	ctx := x.t.Context()
	for range 50 {
		if len(x.debts()) == 0 {
			return
		}
		x.clock.advance(2 * DefaultLease)
		ms, err := x.db.TakeDue(ctx, catalog.Take{Duties: rewrites, Owner: "settler-2", Lease: time.Minute, Limit: 100})
		must(x.t, err)
		for _, m := range ms {
			rep, err := s.RunMarker(ctx, m, "settler-2")
			if err != nil || len(rep.Failures) > 0 {
				must(x.t, x.db.Postpone(ctx, m.MarkerRef, time.Second, "failed"))
			}
		}
	}
	x.t.Fatalf("markers never end: %+v", x.debts())
}

// convergeDebts is another settler, after the first one's lease is over; all of its
// calls work.
func (x *tier) convergeDebts() {
	x.t.Helper()
	x.pays(x.settlerOn(x.multipart(x.mem), x.db, few()))
}

// through is a settler whose every call goes through w.
func (x *tier) through(w *world) *Settler {
	return x.settlerOn(x.multipart(w.driver(x.mem)), &faulty{x.db, w}, few())
}

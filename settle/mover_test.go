package settle

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// rewrite runs one job over settled refs of a stream, as a policy other than settle
// would make it.
func (x *tier) rewrite(stream string, revision uint32, change func([]catalog.Ref)) *outcome {
	x.t.Helper()
	plan, err := x.db.Plan(x.t.Context(), catalog.PlanRequest{Stream: stream, Limit: 100})
	must(x.t, err)
	if change != nil {
		change(plan.Refs)
	}
	first := plan.Refs[0]
	mem := &member{stream: stream, liveFrom: plan.LiveFrom, runs: runsOf(plan.Refs, plan.LiveFrom)}
	h := catalog.Holder{Duty: catalog.DutyGC, ID: first.Key, Owner: "auditor-1"}
	must(x.t, x.db.LeaseDuty(x.t.Context(), h, time.Hour))
	l := &lease{cat: x.db, holder: h, length: time.Hour, clock: x.clock.Now, at: x.clock.Now()}
	j := &job{holder: h, kind: segment.ObjStream, revision: revision, members: []*member{mem}, key: func(rev uint32) string {
		return segment.StreamKey(stream, first.Epoch, first.First, rev)
	}}
	outs, err := x.settler(now()).move(x.t.Context(), batch{jobs: []*job{j}}, 30*time.Minute, l)
	must(x.t, err)
	return outs[0]
}

// settled publishes and settles 120 rows of stream "s": 60 in an object of four
// chunks, of which the ref spans two and a part of the third, and 60 in another.
func (x *tier) settled() (key string) {
	x.slot(write{stream: "s", rows: 60, size: 2000})
	x.slot(write{stream: "s", rows: 60, size: 2000})
	rows := x.rows["s"]
	key = segment.StreamKey("s", 1, 1, 0)
	x.craft(key, segment.ObjStream, "s", rows[:20], rows[20:40], rows[40:90], rows[90:])
	cfg := now()
	cfg.BatchMax = 1
	x.settle(x.settler(cfg))
	return key
}

// The mover takes settled objects as sources, whose refs span several chunks, some
// in part: the footer is read once, dead rows stay behind, and the source gets its
// reap-check with the commit.
func TestMoverRewritesSettledObjects(t *testing.T) {
	for name, live := range map[string]segment.Seq{"all live": 1, "head of a chunk dead": 10, "a whole chunk dead": 45} {
		t.Run(name, func(t *testing.T) {
			x := newTier(t)
			old := x.settled()
			_, err := x.db.TrimStream(t.Context(), "s", segment.Pos{Epoch: 1, Seq: live})
			must(t, err)
			before := x.store.Counters()
			o := x.rewrite("s", 1, nil)
			if len(o.failed) != 0 || len(o.moved) != 1 || o.moved[0].Rows != uint64(120-live+1) {
				t.Fatalf("outcome %+v", o)
			}
			if got, want := o.moved[0].Key, segment.StreamKey("s", 1, 1, 1); got != want {
				t.Errorf("key %s, want %s", got, want)
			}
			// One tail and one range of the old object, one of the second window's.
			if n := x.store.Counters().Sub(before).Requests[objstore.OpGet]; n != 3 {
				t.Errorf("%d GETs", n)
			}
			ms, err := x.db.MarkersOf(t.Context(), catalog.DutyReapCheck, "", 10)
			must(t, err)
			if len(ms) != 2 || ms[0].ID != old {
				t.Errorf("reap-checks %+v", ms)
			}
		})
	}
}

func TestMoverRefusesAnObjectThatLacksRowsOfItsRef(t *testing.T) {
	x := newTier(t)
	x.settled()
	o := x.rewrite("s", 1, func(refs []catalog.Ref) { refs[0].RowSum++ })
	if len(o.moved) != 0 || len(o.failed) != 1 || !segment.IsStructural(o.failed[0].err) {
		t.Fatalf("outcome %+v", o)
	}
}

// A winner that ends between two chunks of one ref is of no use to a run whose head
// is cut: the catalog swaps whole refs of it. The next revision is derived.
func TestMoverPassesOverAWinnerThatEndsWithinARefOfACutRun(t *testing.T) {
	x := newTier(t)
	x.settled()
	_, err := x.db.TrimStream(t.Context(), "s", segment.Pos{Epoch: 1, Seq: 10})
	must(t, err)
	x.craft(segment.StreamKey("s", 1, 1, 1), segment.ObjStream, "s", x.rows["s"][9:40])
	o := x.rewrite("s", 1, nil)
	if len(o.failed) != 0 || len(o.moved) != 1 || o.moved[0].Revision != 2 || o.moved[0].Rows != 111 {
		t.Fatalf("outcome %+v", o)
	}
}

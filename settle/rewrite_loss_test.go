package settle

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// K6: a job that stalls past its deadline completes nothing, and its sources stand.
func TestK6StalledRewriteNeverCompletes(t *testing.T) {
	for _, sc := range scenes() {
		for _, at := range []string{"Announce", "get", "create-upload", "AddUpload"} {
			t.Run(sc.name+" "+at, func(t *testing.T) {
				x := quickParts(t)
				sc.build(x)
				m := x.taken(sc.duty)
				before := x.refsOf("s")
				w, stalled := stall(at, true, func() { x.clock.advance(31 * time.Minute) })
				_, err := x.through(w).RunMarker(t.Context(), m, "settler-1")
				// A merge's second job announces itself later, and has a deadline of its own.
				if sent := w.calls("complete") + w.calls("put"); !*stalled || sent != w.calls("Announce")-1 || sent != w.calls("CommitRewrite") {
					t.Fatalf("stalled %t, error %v, then %v", *stalled, err, w.log)
				}
				if err != nil && !errors.Is(err, errLeaseLost) {
					t.Fatal(err)
				}
				if after := x.refsOf("s"); !slices.Equal(after, before) || len(x.debts(sc.duty)) != 1 {
					t.Errorf("refs %+v, %+v before; markers %+v", after, before, x.debts())
				}
				w.heal()
				x.clock.advance(time.Hour)
				x.convergeDebts()
				sc.then(t, x)
			})
		}
	}
}

// K9: a slow upload is judged by the intent's last sign of life: not before its deadline.
func TestK9SlowRewriteIsNotJudged(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := smallParts(t)
			sc.build(x)
			m := x.taken(sc.duty)
			w, stalled := stall("CommitRewrite", false, func() {
				x.clock.advance(29 * time.Minute)
				for _, in := range x.debts(catalog.DutyOrphan) {
					if v, _, err := x.db.CondemnIntent(t.Context(), in.MarkerRef); err != nil || v != catalog.NotYet {
						t.Errorf("the judge says %q of %s, error %v", v, in.ID, err)
					}
				}
			})
			rep, err := x.through(w).RunMarker(t.Context(), m, "settler-1")
			if err != nil || !*stalled || rep.Outputs == 0 {
				t.Fatalf("stalled %t, report %+v, error %v", *stalled, rep, err)
			}
			x.convergeDebts()
			sc.then(t, x)
		})
	}
}

// K10: a reader in flight at the swap finishes: what was swapped away stands, and is
// looked at no sooner than one read grace from the commit.
func TestK10SourcesOutliveTheSwap(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := smallParts(t)
			sc.build(x)
			plan := x.refsOf("s")
			x.convergeDebts()
			sc.then(t, x)
			due := make(map[string]time.Time)
			for _, m := range x.debts(catalog.DutyReapCheck) {
				due[m.ID] = m.Due
			}
			for i := range plan {
				r := &plan[i]
				if _, _, err := x.store.ReadRange(t.Context(), r.Key, r.Offset, r.Stored); err != nil {
					t.Errorf("ref %s: %v", r.FirstPos(), err)
				}
				if at := due[r.Key]; at.Before(x.clock.Now().Add(10 * time.Minute)) {
					t.Errorf("%s is looked at %v, less than one read grace from the swap", r.Key, at)
				}
			}
			if w := x.store.Counters().Requests[objstore.OpDelete]; w != 0 {
				t.Errorf("%d deletes", w)
			}
		})
	}
}

// K8: a source chunk that rotted is left out with its reason and an audit row; its refs
// stay as they are, whatever else commits.
func TestK8RottenSourceIsLeftOut(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := smallParts(t)
			sc.build(x)
			x.lax = true
			before := x.refsOf("s")
			x.damage(before[0].Key, "s")
			m := x.taken(sc.duty)
			rep, err := x.settlerOn(x.multipart(x.mem), x.db, few()).RunMarker(t.Context(), m, "settler-1")
			must(t, err)
			if len(rep.Failures) != 1 || rep.Failures[0].Stream != "s" || !segment.IsStructural(rep.Failures[0].Err) || rep.Resolved != 0 {
				t.Fatalf("report %+v", rep)
			}
			x.unmoved(t, before)
			x.corruptionIsAudited(t)
			if left := x.debts(sc.duty); len(left) != 1 || left[0].Version != m.Version {
				t.Errorf("markers %+v", left)
			}
			if others := sc.name == "gc of a pack" || sc.duty == catalog.DutyPackMerge; others == (rep.Outputs == 0) {
				t.Errorf("outputs %d", rep.Outputs)
			}
		})
	}
}

// unmoved: the refs of s stand as before.
func (x *tier) unmoved(t *testing.T, before []catalog.Ref) {
	t.Helper()
	after := x.refsOf("s")
	for i := range before {
		if len(after) != len(before) || after[i] != before[i] {
			t.Fatalf("refs %+v, %+v before", after, before)
		}
	}
}

func (x *tier) corruptionIsAudited(t *testing.T) {
	t.Helper()
	rows, err := x.db.AuditRows(t.Context(), 0, 100)
	must(t, err)
	if len(rows) == 0 || rows[len(rows)-1].Kind != "corruption" {
		t.Errorf("audit rows %+v", rows)
	}
}

// K8: a source whose footer rotted, of several chunks: its member is left out alone.
func TestK8RottenFooterIsLeftOut(t *testing.T) {
	x := newTier(t)
	key := x.settled() // an object of four chunks
	x.slot(write{stream: "s", rows: 60, size: 2000})
	x.settle(x.settler(now()))
	x.lax = true
	before := x.refsOf("s")
	body, _, err := x.store.ReadAll(t.Context(), key, 1<<30)
	must(t, err)
	body[len(body)-60] ^= 1
	x.replace(key, body)
	for _, d := range []catalog.Duty{catalog.DutyGC, catalog.DutyTailFill} {
		must(t, x.db.Arm(t.Context(), d, key, segment.ClassStandard, 0))
		m, err := x.db.Marker(t.Context(), d, key)
		must(t, err)
		rep, err := x.settler(now()).RunMarker(t.Context(), m, "settler-1")
		if err != nil || len(rep.Failures) != 1 || !segment.IsStructural(rep.Failures[0].Err) || rep.Outputs != 0 || rep.Resolved != 0 {
			t.Fatalf("%s: report %+v, error %v, markers %+v", d, rep, err, x.debts(d))
		}
		x.unmoved(t, before)
		x.corruptionIsAudited(t)
	}
}

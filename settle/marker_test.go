package settle

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Each policy serves its marker, resolves it, leaves a reap-check on what it emptied, and
// finds nothing owed the second time.
func TestRunMarker(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := smallParts(t)
			sc.build(x)
			m := x.taken(sc.duty)
			old := x.keyOf("s")
			s := x.settlerOn(x.multipart(x.mem), x.db, few())
			rep, err := s.RunMarker(t.Context(), m, "settler-1")
			must(t, err)
			if rep.Idle != "" || rep.Outputs == 0 || rep.Resolved != 1 || rep.Rows == 0 || len(rep.Failures) != 0 || rep.Requests.Total() == 0 {
				t.Fatalf("report %+v", rep)
			}
			sc.then(t, x)
			if left := x.debts(); len(left) != 0 {
				t.Errorf("markers stand: %+v", left)
			}
			if in := x.intents(); len(in) != 0 {
				t.Errorf("intents stand: %+v", in)
			}
			watched := false
			for _, r := range x.debts(catalog.DutyReapCheck) {
				watched = watched || r.ID == old && r.Due.Equal(x.clock.Now().Add(10*time.Minute))
			}
			if !watched {
				t.Errorf("no reap-check of %s one read grace out: %+v", old, x.debts(catalog.DutyReapCheck))
			}
			must(t, x.db.Arm(t.Context(), m.Duty, m.ID, m.Class, 0))
			rep, err = s.RunMarker(t.Context(), x.taken(sc.duty), "settler-1")
			if err != nil || rep.Idle == "" || rep.Outputs != 0 || len(x.debts()) != 0 {
				t.Errorf("the second time: %+v, error %v, markers %+v", rep, err, x.debts())
			}
		})
	}
}

// A marker that is armed during the run stays due.
func TestArmDuringTheRunStaysDue(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := quickParts(t)
			sc.build(x)
			m := x.taken(sc.duty)
			w := &world{}
			armed := false
			w.hook = func(call string, after bool) {
				if call == "CommitRewrite" && after && !armed {
					armed = true
					must(t, x.db.Arm(t.Context(), m.Duty, m.ID, m.Class, 0))
				}
			}
			_, err := x.through(w).RunMarker(t.Context(), m, "settler-1")
			must(t, err)
			if left := x.debts(sc.duty); !armed || len(left) != 1 || left[0].Version == m.Version {
				t.Fatalf("armed %t, markers %+v", armed, left)
			}
			x.convergeDebts()
		})
	}
}

func TestMarkerOfAnotherIsLeftAlone(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := quickParts(t)
			sc.build(x)
			m := x.taken(sc.duty)
			must(t, x.db.LeaseDuty(t.Context(), catalog.Holder{Duty: m.Duty, ID: m.ID, Owner: "settler-2"}, time.Minute))
			w := &world{}
			rep, err := x.through(w).RunMarker(t.Context(), m, "settler-1")
			if err != nil || rep.Idle != IdleLease || len(x.debts(sc.duty)) != 1 || w.calls("Resolve")+w.calls("Announce") != 0 {
				t.Fatalf("report %+v, error %v, calls %v", rep, err, w.log)
			}
		})
	}
}

func TestMarkersThatNoPolicyServes(t *testing.T) {
	x := newTier(t)
	s := x.settler(now())
	for _, c := range []struct {
		duty catalog.Duty
		id   string
		want error
	}{
		{catalog.DutyReapCheck, "k", catalog.ErrInvalid},
		{catalog.DutyGC, "rw/00000001.00000000", catalog.ErrCorrupt},
		{catalog.DutyGC, "junk", catalog.ErrCorrupt},
		{catalog.DutyPackMerge, "junk", catalog.ErrCorrupt},
	} {
		m := catalog.Marker{MarkerRef: catalog.MarkerRef{Duty: c.duty, ID: c.id, Version: 1}}
		if _, err := s.RunMarker(t.Context(), m, "settler-1"); !errors.Is(err, c.want) {
			t.Errorf("%s %s: %v", c.duty, c.id, err)
		}
	}
}

// Nothing of the object is live: its reap-check is armed one read grace out, whoever
// looked last, and the marker resolves.
func TestGCOfADeadObjectArmsItsReapCheck(t *testing.T) {
	x := smallParts(t)
	x.slot(write{stream: "s", rows: 90, size: 2000, noise: true})
	x.settleNow()
	key := x.keyOf("s")
	must(t, x.db.Arm(t.Context(), catalog.DutyGC, key, segment.ClassStandard, 0))
	_, err := x.db.DeleteStream(t.Context(), "s") // its walk has still to come
	must(t, err)
	w := &world{}
	rep, err := x.through(w).RunMarker(t.Context(), x.taken(catalog.DutyGC), "settler-1")
	if err != nil || rep.Idle != IdleDead || w.calls("Announce") != 0 {
		t.Fatalf("report %+v, error %v", rep, err)
	}
	ms := x.debts(catalog.DutyReapCheck)
	if len(ms) != 1 || ms[0].ID != key || ms[0].Class != segment.ClassStandard || !ms[0].Due.Equal(x.clock.Now().Add(10*time.Minute)) || len(x.debts()) != 0 {
		t.Fatalf("reap-checks %+v, markers %+v", ms, x.debts())
	}
}

// A trim that takes all of it meanwhile leaves nothing to resolve for: the run says so.
func TestRunWhoseRowsAreAllTrimmed(t *testing.T) {
	x := smallParts(t)
	sc := scenes()[0]
	sc.build(x)
	w, trimmed := stall("CommitRewrite", false, func() { x.remove("s") })
	rep, err := x.through(w).RunMarker(t.Context(), x.taken(sc.duty), "settler-1")
	if err != nil || !*trimmed || rep.Idle != IdleTrimmed || rep.Outputs != 0 || len(x.debts()) != 0 {
		t.Fatalf("trimmed %t, report %+v, error %v, markers %+v", *trimmed, rep, err, x.debts())
	}
	x.buries()
}

func TestExplainChangesNothing(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := smallParts(t)
			sc.build(x)
			m := x.taken(sc.duty)
			w := &world{}
			why, err := x.through(w).Explain(t.Context(), m)
			if err != nil || why == "" {
				t.Fatalf("%q, %v", why, err)
			}
			for _, c := range w.log {
				if c != sc.reads && c != "Liveness" && c != "Settings" && c != "Now" {
					t.Errorf("call %s", c)
				}
			}
			x.convergeDebts()
			if why, err := x.through(&world{}).Explain(t.Context(), m); err != nil || (why != IdleDead && why != IdleTail && why != IdlePacks) {
				t.Errorf("afterwards: %q, %v", why, err)
			}
		})
	}
}

// TestSweepRewrites fails every call of each policy once, in every form. Each time
// another settler converges, and the cleanup finds nothing lost and nothing unwatched.
func TestSweepRewrites(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			sweep(t, []form{notApplied, answerLost, crash, crashAfter}, func(t *testing.T, w *world) {
				x := quickParts(t)
				sc.build(x)
				m := x.taken(sc.duty)
				_, err := x.through(w).RunMarker(t.Context(), m, "settler-1")
				if err != nil && w.hit == "" {
					t.Fatalf("nothing failed, yet: %v", err)
				}
				w.heal()
				x.strays(w)
				x.convergeDebts()
				sc.then(t, x)
				x.buries()
			})
		})
	}
}

// Two settlers at one marker: the first stalls in every step in turn, until its lease
// is over and the second one is done; then it goes on.
func TestTwoSettlersAtOneMarker(t *testing.T) {
	for _, sc := range scenes() {
		for _, at := range steps(sc) {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s after=%t", sc.name, at, after), func(t *testing.T) {
					x := quickParts(t)
					sc.build(x)
					m := x.taken(sc.duty)
					w, stalled := stall(at, after, x.convergeDebts)
					if _, err := x.through(w).RunMarker(t.Context(), m, "settler-1"); !*stalled {
						t.Fatalf("it never came by %s; error %v", at, err)
					}
					x.convergeDebts()
					sc.then(t, x)
					x.buries()
				})
			}
		}
	}
}

// steps are the calls at which each step of a policy may be cut.
func steps(sc scene) []string {
	out := []string{sc.reads, "Announce", "get", "CommitRewrite", "Resolve", "ReleaseDuty"}
	if sc.duty == catalog.DutyGC || sc.duty == catalog.DutyTailFill {
		if sc.name != "gc of a pack" {
			return append(out, "create-upload", "AddUpload", "upload-part", "complete")
		}
	}
	return append(out, "create-upload", "complete")
}

// stall is a world in which do runs once, at the first call of that name.
func stall(at string, after bool, do func()) (*world, *bool) {
	w, done := &world{}, false
	var once sync.Once
	announced := make(chan struct{}) // sources are fetched beside the announce
	var first sync.Once
	w.hook = func(call string, a bool) {
		if call == "Announce" && a {
			first.Do(func() { close(announced) })
		}
		if call == at && a == after {
			once.Do(func() {
				if at == "get" {
					<-announced
				}
				done = true
				do()
			})
		}
	}
	return w, &done
}

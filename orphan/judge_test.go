package orphan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/segment"
)

func newTier(t *testing.T) *audittest.Tier { return audittest.New(t, memstore.Options{}) }

func judgeOn(x *audittest.Tier, store *objstore.Store, cat orphan.Catalog) *orphan.Judge {
	classes := objstore.Classes{string(segment.ClassStandard): {store}}
	return orphan.NewJudge(cat, classes, orphan.NewDeleter(classes))
}

func judge(x *audittest.Tier) *orphan.Judge { return judgeOn(x, x.Store, x.DB) }

// job announces key as a settle would, and is then never heard of again.
func job(x *audittest.Tier, key string, deadline time.Duration) catalog.Intent {
	x.T.Helper()
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(x.Chain), Owner: "job"}
	x.Must(x.DB.LeaseDuty(x.Ctx(), h, time.Minute))
	in, err := x.DB.Announce(x.Ctx(), catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: h, Nonce: "nonce of " + key, Deadline: deadline})
	x.Must(err)
	x.Must(x.DB.ReleaseDuty(x.Ctx(), h))
	return in
}

// one judges the one due marker.
func one(x *audittest.Tier, j *orphan.Judge) (orphan.Report, error) {
	x.T.Helper()
	ms := x.Take(catalog.DutyOrphan)
	if len(ms) != 1 {
		x.T.Fatalf("%d orphan markers are due, want 1", len(ms))
	}
	return j.RunOnce(x.Ctx(), ms[0])
}

func put(x *audittest.Tier, key string, body string) {
	x.T.Helper()
	_, err := x.Store.PutOnce(x.Ctx(), key, []byte(body), nil)
	x.Must(err)
}

// whole is a valid object under key: the settled object of a stream of its own.
func whole(x *audittest.Tier) []byte {
	x.T.Helper()
	x.Slot(audittest.Write{Stream: "source", Rows: 20, Size: 400})
	x.RunDry()
	return x.Mem.Dump()[x.Settled()[0]]
}

var key = segment.StreamKey("s", 1, 1000, 0)

// Crash table: "the intent, before the PUT".
func TestIntentBeforeItsPut(t *testing.T) {
	x := newTier(t)
	job(x, key, time.Minute)
	x.Clock.Advance(audittest.OrphanGrace - time.Second)
	if ms := x.Take(catalog.DutyOrphan); len(ms) != 0 {
		t.Fatalf("due before the orphan grace: %+v", ms)
	}
	x.Clock.Advance(time.Second)
	rep, err := one(x, judge(x))
	x.Must(err)
	if rep.Outcome != orphan.Judged || rep.Finding != orphan.Absent {
		t.Fatalf("%+v, want nothing at the key", rep)
	}
	x.RunDry()
	x.MustBeClean()
	if in := x.Intents(); len(in) != 0 {
		t.Fatalf("%+v stands although its key can no longer be derived", in)
	}
}

// Crash table: "the PUT, before the commit"; and an upload that never completed.
func TestPutBeforeItsCommit(t *testing.T) {
	for name, want := range map[string]orphan.Finding{"": orphan.Partial, "half an object": orphan.Partial, "whole": orphan.Intact} {
		t.Run(name, func(t *testing.T) {
			x := newTier(t)
			body := name
			if name == "whole" {
				body = string(whole(x))
			}
			job(x, key, time.Minute)
			put(x, key, body)
			sibling := key + "~00000001"
			job(x, sibling, 3*time.Hour)
			put(x, sibling, "a later revision, still at work")
			x.Clock.Advance(audittest.OrphanGrace)
			rep, err := one(x, judge(x))
			x.Must(err)
			if rep.Outcome != orphan.Judged || rep.Finding != want {
				t.Fatalf("%+v, want %s deleted", rep, want)
			}
			if keys := x.Keys(); slices.Contains(keys, key) || !slices.Contains(keys, sibling) {
				t.Fatalf("%v stand: want the orphan gone, its sibling kept (K38)", keys)
			}
			x.Clock.Advance(2 * time.Hour)
			x.RunDry()
			x.MustBeClean()
		})
	}
}

// K2: a live job's output is never judged before its deadline.
func TestK2NotBeforeItsDeadline(t *testing.T) {
	x := newTier(t)
	job(x, key, 5*time.Hour)
	put(x, key, "uploaded, not yet committed")
	m := x.Markers(catalog.DutyOrphan)[0]
	for x.Clock.Advance(time.Hour); x.Clock.Now().Before(m.Due); x.Clock.Advance(time.Hour) {
		rep, err := judge(x).RunOnce(t.Context(), m) // whoever comes early
		x.Must(err)
		if rep.Outcome != orphan.TooYoung || !slices.Contains(x.Keys(), key) {
			t.Fatalf("%+v: judged before its deadline", rep)
		}
	}
	rep, err := one(x, judge(x))
	x.Must(err)
	if rep.Outcome != orphan.Judged {
		t.Fatalf("%+v", rep)
	}
	x.RunDry()
	x.MustBeClean()
}

// A takeover makes the intent young again; the old marker's run changes nothing.
func TestTakenOverMeanwhile(t *testing.T) {
	x := newTier(t)
	job(x, key, time.Minute)
	x.Clock.Advance(audittest.OrphanGrace)
	ms := x.Take(catalog.DutyOrphan)
	job(x, key, time.Minute) // the same holder takes it over
	rep, err := judge(x).RunOnce(t.Context(), ms[0])
	if err == nil && rep.Outcome == orphan.Judged {
		t.Fatal("judged under the feet of the job that took it over")
	}
	if in := x.Intents(); len(in) != 1 || in[0].State != catalog.IntentStanding {
		t.Fatalf("%+v, want it standing", in)
	}
	x.RunDry()
	x.MustBeClean()
}

// Crash table: "the catalog commit, before the intent resolves".
func TestNamedObjectUnderAnIntentStays(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	f := &audittest.Faults{}
	f.Hook = func(call string, after bool) {
		if call == "CommitRewrite" && !after {
			in := x.Intents()[0] // an upload is left: the commit leaves the intent to the judge
			x.Must(x.DB.AddUpload(x.Ctx(), in.Key, in.Nonce, "left"))
		}
	}
	f.Start()
	if _, err := x.Settler(x.Store, f.Catalog(x)).RunOnce(x.Ctx(), x.Chain, "settler"); err != nil {
		t.Fatal(err)
	}
	f.Heal()
	if len(x.Intents()) != 1 {
		t.Fatalf("intents %+v, want the one with its upload", x.Intents())
	}
	x.Clock.Advance(2 * audittest.OrphanGrace)
	rep, err := one(x, judge(x))
	x.Must(err)
	if rep.Outcome != orphan.IsNamed || len(x.Settled()) != 1 || len(x.Intents()) != 0 {
		t.Fatalf("%+v, settled %v, intents %+v: want the intent resolved and the object kept", rep, x.Settled(), x.Intents())
	}
	x.RunDry()
	x.MustBeClean()
}

// The judge never deletes on a read that it could not complete.
func TestK16TransientFaultLeavesItCondemned(t *testing.T) {
	for _, op := range []string{"store head", "store get", "store list-uploads", "store abort"} {
		t.Run(op, func(t *testing.T) {
			x := newTier(t)
			body := whole(x)
			job(x, key, time.Minute)
			put(x, key, string(body))
			id, err := x.Mem.CreateUpload(t.Context(), key, nil)
			x.Must(err)
			x.Must(x.DB.AddUpload(t.Context(), key, "nonce of "+key, id))
			x.Clock.Advance(audittest.OrphanGrace)
			f := &audittest.Faults{Pick: func(_ int, c string) audittest.Form {
				if strings.HasPrefix(c, op) {
					return audittest.NotApplied
				}
				return audittest.Fine
			}}
			f.Start()
			rep, err := one(x, judgeOn(x, f.Store(x), x.DB))
			if err == nil || !errors.Is(err, objstore.ErrUnavailable) || f.Hit() == "" {
				t.Fatalf("%+v (%v), want the fault", rep, err)
			}
			if in := x.Intents(); len(in) != 1 || in[0].State != catalog.IntentCondemned || !slices.Contains(x.Keys(), key) {
				t.Fatalf("%+v, keys %v: want it condemned and kept", in, x.Keys())
			}
			f.Heal()
			x.Clock.Advance(time.Minute)
			x.RunDry()
			x.MustBeClean()
		})
	}
}

// K36: all uploads of a judged key are aborted, none of another key.
func TestK36UploadsOfAJudgedKey(t *testing.T) {
	x := newTier(t)
	job(x, key, time.Minute)
	for _, k := range []string{key, key, key + "~00000001"} {
		_, err := x.Mem.CreateUpload(t.Context(), k, nil)
		x.Must(err)
	}
	x.Clock.Advance(audittest.OrphanGrace)
	rep, err := one(x, judge(x))
	x.Must(err)
	ups, err := x.Store.ListUploads(t.Context(), "")
	x.Must(err)
	if rep.Aborts.Aborted < 2 || len(ups) != 1 || ups[0].Key == key {
		t.Fatalf("%+v, uploads %+v", rep, ups)
	}
	x.RunDry() // the sweep sees to the other
	x.MustBeClean()
}

// A request that was sent before the delete lands after it: the last look.
func TestLateLandingIsSeenByTheLastLook(t *testing.T) {
	x := newTier(t)
	job(x, key, time.Minute)
	x.Clock.Advance(audittest.OrphanGrace)
	_, err := one(x, judge(x))
	x.Must(err)
	x.Clock.Advance(time.Hour)
	put(x, key, "late")
	m := x.Markers(catalog.DutyOrphan)[0]
	if rep, err := judge(x).RunOnce(t.Context(), m); err != nil || rep.Outcome != orphan.TooYoung {
		t.Fatalf("%+v (%v): the last look is not due", rep, err)
	}
	x.Clock.Advance(catalog.BurnDelay)
	rep, err := one(x, judge(x))
	x.Must(err)
	if rep.Outcome != orphan.LookedAt || rep.Finding != orphan.Partial || slices.Contains(x.Keys(), key) {
		t.Fatalf("%+v, keys %v: want the late object gone", rep, x.Keys())
	}
	x.MustBeClean()
}

// A burned key stays burned while a job could still derive it.
func TestBurnedKeyStaysWhileItCanBeDerived(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	derived := segment.StreamKey("s", 1, 1, 0)
	job(x, derived, time.Minute)
	x.Clock.Advance(audittest.OrphanGrace)
	_, err := one(x, judge(x))
	x.Must(err)
	x.Clock.Advance(catalog.BurnDelay)
	rep, err := one(x, judge(x))
	x.Must(err)
	if rep.Outcome != orphan.StillSeen || len(x.Intents()) != 1 {
		t.Fatalf("%+v, intents %+v: want the row kept", rep, x.Intents())
	}
	x.RunDry()
	x.MustBeClean()
	if got := x.Settled(); len(got) != 1 || got[0] == derived {
		t.Fatalf("%v: the settle used the burned key", got)
	}
}

func TestJudgeDryRun(t *testing.T) {
	x := newTier(t)
	job(x, key, time.Minute)
	put(x, key, "orphan")
	x.Clock.Advance(audittest.OrphanGrace)
	del := orphan.NewDryRun(x.Classes)
	rep, err := one(x, orphan.NewJudge(x.DB, x.Classes, del))
	x.Must(err)
	if lines := del.Lines(); rep.Outcome != orphan.WouldJudge || len(lines) != 1 || !lines[0].Goes || lines[0].Key != key {
		t.Fatalf("%+v, lines %+v", rep, lines)
	}
	if in := x.Intents(); in[0].State != catalog.IntentStanding || !slices.Contains(x.Keys(), key) {
		t.Fatal("a dry run changed something")
	}
	if _, err := del.Slots(t.Context(), segment.ClassStandard, []string{segment.SlotKey(x.Chain, 1)}); err == nil {
		t.Fatal("a dry Deleter deleted")
	}
	x.Clock.Advance(time.Minute)
	x.RunDry()
}

// A settled key has one way to die: no Deleter takes it without a Right.
func TestDeleterTakesSettledKeysByRightOnly(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.RunDry()
	before := x.Keys()
	for _, k := range append(before, "no/key/of/ours") {
		if _, err := orphan.NewDeleter(x.Classes).Slots(t.Context(), segment.ClassStandard, []string{segment.SlotKey(x.Chain, 1), k}); !errors.Is(err, objstore.ErrInvalid) {
			t.Errorf("%s: %v, want a refusal", k, err)
		}
	}
	dead, failed := orphan.Delete(t.Context(), orphan.NewDeleter(x.Classes), []orphan.Right{{}})
	if len(dead) != 0 || len(failed) != 1 || !slices.Equal(before, x.Keys()) {
		t.Errorf("the zero Right: %v dead, %v failed", dead, failed)
	}
}

// K17: killed at each point; no leak after the grace.
func TestK17SweepJudgeEveryCallFails(t *testing.T) {
	audittest.Sweep(t, audittest.AllForms(), func(t *testing.T, f *audittest.Faults) {
		x := newTier(t)
		job(x, key, time.Minute)
		put(x, key, "an object that nobody commits, longer than a trailer of an object")
		id, err := x.Mem.CreateUpload(t.Context(), key, nil)
		x.Must(err)
		x.Must(x.DB.AddUpload(t.Context(), key, "nonce of "+key, id))
		x.Clock.Advance(audittest.OrphanGrace)
		f.Start()
		_, err = one(x, judgeOn(x, f.Store(x), f.Catalog(x)))
		if f.Hit() == "" && err != nil {
			t.Fatal(err)
		}
		f.Heal()
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
	})
}

func TestSweepLastLookEveryCallFails(t *testing.T) {
	audittest.Sweep(t, audittest.AllForms(), func(t *testing.T, f *audittest.Faults) {
		x := newTier(t)
		job(x, key, time.Minute)
		x.Clock.Advance(audittest.OrphanGrace)
		_, err := one(x, judge(x))
		x.Must(err)
		put(x, key, "late")
		x.Clock.Advance(catalog.BurnDelay)
		f.Start()
		_, err = one(x, judgeOn(x, f.Store(x), f.Catalog(x)))
		if f.Hit() == "" && err != nil {
			t.Fatal(err)
		}
		f.Heal()
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
		if len(x.Intents()) != 0 {
			t.Fatalf("%+v", x.Intents())
		}
	})
}

// A job announces its key again after the judge took the marker, and before it judges.
func TestAnnouncedAgainDuringTheRun(t *testing.T) {
	x := newTier(t)
	job(x, key, time.Minute)
	x.Clock.Advance(audittest.OrphanGrace)
	ms := x.Take(catalog.DutyOrphan)
	if len(ms) != 1 {
		t.Fatalf("%d orphan markers are due, want 1", len(ms))
	}
	job(x, key, time.Minute)
	rep, err := judge(x).RunOnce(t.Context(), ms[0])
	if err != nil || rep.Outcome != orphan.ArmedSince || !rep.Outcome.Kept() {
		t.Fatalf("%+v, %v, want %q: no failure", rep, err, orphan.ArmedSince)
	}
	x.Clock.Advance(audittest.OrphanGrace)
	if rep, err = one(x, judge(x)); err != nil || rep.Outcome != orphan.Judged {
		t.Fatalf("%+v, %v, want it judged at its new age: the lease of the first run is over", rep, err)
	}
}

package catalogtest

import (
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// settledAndDead makes a settled object that no ref names, with its reap-check.
func (w *World) settledAndDead() string {
	w.T.Helper()
	w.Absorb("a:4")
	key := w.Settle("a")
	w.Settle("a") // a second revision: the first is dead
	return key
}

func testReap(t *testing.T, open Open) {
	w := NewWorld(t, open)
	key := w.settledAndDead()
	live, err := w.C.Liveness(w.Ctx, key)
	w.OK(err)
	Equal(t, "refs", len(live), 0)
	_, err = w.C.Liveness(w.Ctx, "")
	w.Is(err, catalog.ErrInvalid, "")
	m, _ := w.Marker(catalog.DutyReapCheck, key)
	w.Is(w.C.CondemnKey(w.Ctx, m.MarkerRef), catalog.ErrConflict, "marker")
	w.Is(w.C.Confirm(w.Ctx, catalog.MarkerRef{Duty: catalog.DutyGC, ID: key}), catalog.ErrInvalid, "")
	w.OK(w.C.Confirm(w.Ctx, m.MarkerRef))
	w.Is(w.C.Confirm(w.Ctx, m.MarkerRef), catalog.ErrConflict, "marker reap-check "+key)
	confirmed, _ := w.Marker(catalog.DutyReapCheck, key)
	Equal(t, "confirmed", confirmed.Confirmed, true)
	Equal(t, "due a grace later", confirmed.Due, w.Clock.Now().Add(readGrace))
	w.Is(w.C.CondemnKey(w.Ctx, m.MarkerRef), catalog.ErrConflict, "marker")
	w.Is(w.C.CondemnKey(w.Ctx, confirmed.MarkerRef), catalog.ErrConflict, "grace")
	// Even if it was made due early.
	w.OK(w.C.Postpone(w.Ctx, confirmed.MarkerRef, 0, ""))
	w.Is(w.C.CondemnKey(w.Ctx, confirmed.MarkerRef), catalog.ErrConflict, "grace")
	w.Is(w.C.BurnKey(w.Ctx, []string{key}), catalog.ErrConflict, "state of "+key)
	w.Clock.Advance(readGrace)
	w.OK(w.C.CondemnKey(w.Ctx, confirmed.MarkerRef))
	w.OK(w.C.CondemnKey(w.Ctx, confirmed.MarkerRef)) // a lost answer
	in, err := w.C.Intent(w.Ctx, key)
	w.OK(err)
	Equal(t, "state", in.State, catalog.IntentCondemned)
	Equal(t, "class", in.Class, segment.ClassStandard)
	ask := catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: w.Holder(), Nonce: "n", Deadline: time.Second}
	_, err = w.C.Announce(w.Ctx, ask)
	w.Is(err, catalog.ErrConflict, "state")
	w.Is(w.C.BurnKey(w.Ctx, []string{key, "obj/other"}), catalog.ErrConflict, "state of obj/other")
	w.OK(w.C.BurnKey(w.Ctx, []string{key}))
	w.OK(w.C.BurnKey(w.Ctx, []string{key})) // a lost answer
	in, err = w.C.Intent(w.Ctx, key)
	w.OK(err)
	Equal(t, "state", in.State, catalog.IntentBurned)
	look, _ := w.Marker(catalog.DutyOrphan, key)
	Equal(t, "last look", look.Due, w.Clock.Now().Add(catalog.BurnDelay))
	if _, ok := w.Marker(catalog.DutyReapCheck, key); ok {
		t.Fatal("reap-check outlives the object")
	}
	_, err = w.C.Announce(w.Ctx, ask)
	w.Is(err, catalog.ErrConflict, "state")
}

// testReapGrace: an arm takes a confirmation back; the grace begins again.
func testReapGrace(t *testing.T, open Open) {
	w := NewWorld(t, open)
	key := w.settledAndDead()
	m, _ := w.Marker(catalog.DutyReapCheck, key)
	w.OK(w.C.Confirm(w.Ctx, m.MarkerRef))
	w.Clock.Advance(readGrace)
	w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, key, "", 0))
	m, _ = w.Marker(catalog.DutyReapCheck, key)
	Equal(t, "confirmed", m.Confirmed, false)
	Equal(t, "class kept", m.Class, segment.ClassStandard)
	w.Is(w.C.CondemnKey(w.Ctx, m.MarkerRef), catalog.ErrConflict, "marker")
	w.Is(w.C.CondemnKey(w.Ctx, catalog.MarkerRef{Duty: catalog.DutyReapCheck, ID: "none", Version: 1}), catalog.ErrConflict, "marker")
	w.Is(w.C.CondemnKey(w.Ctx, catalog.MarkerRef{Duty: catalog.DutyOrphan, ID: key}), catalog.ErrInvalid, "")
}

// testK4: a live key on the delete list is dropped from it.
func testK4(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4")
	key := w.Settle("a")
	w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, key, segment.ClassStandard, 0))
	m, _ := w.Marker(catalog.DutyReapCheck, key)
	w.OK(w.C.Confirm(w.Ctx, m.MarkerRef)) // somebody's wrong verdict
	w.Clock.Advance(readGrace)
	m, _ = w.Marker(catalog.DutyReapCheck, key)
	w.Is(w.C.CondemnKey(w.Ctx, m.MarkerRef), catalog.ErrConflict, "refs")
	w.Is(w.C.BurnKey(w.Ctx, []string{key}), catalog.ErrConflict, "state of "+key)
	// Nor one that a job is about to make.
	w.Announce("obj/next", "n")
	w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, "obj/next", "", 0))
	m, _ = w.Marker(catalog.DutyReapCheck, "obj/next")
	w.OK(w.C.Confirm(w.Ctx, m.MarkerRef))
	w.Clock.Advance(readGrace)
	m, _ = w.Marker(catalog.DutyReapCheck, "obj/next")
	w.Is(w.C.CondemnKey(w.Ctx, m.MarkerRef), catalog.ErrConflict, "intent")
}

func (w *World) condemnIntent(key string) (catalog.Verdict, catalog.Intent) {
	w.T.Helper()
	m, _ := w.Marker(catalog.DutyOrphan, key)
	v, in, err := w.C.CondemnIntent(w.Ctx, catalog.MarkerRef{Duty: catalog.DutyOrphan, ID: key, Version: m.Version})
	w.OK(err)
	return v, in
}

func testJudge(t *testing.T, open Open) {
	w := NewWorld(t, open)
	_, _, err := w.C.CondemnIntent(w.Ctx, catalog.MarkerRef{Duty: catalog.DutyGC, ID: "k"})
	w.Is(err, catalog.ErrInvalid, "")
	v, _ := w.condemnIntent("none")
	Equal(t, "no intent", v, catalog.Gone)
	w.Announce("obj/k", "n1")
	w.OK(w.C.AddUpload(w.Ctx, "obj/k", "n1", "u1"))
	v, _ = w.condemnIntent("obj/k")
	Equal(t, "young", v, catalog.NotYet)
	m, _ := w.Marker(catalog.DutyOrphan, "obj/k")
	Equal(t, "left due then", m.Due, w.Clock.Now().Add(orphanGrace))
	w.Is(w.C.BurnIntent(w.Ctx, "obj/k"), catalog.ErrConflict, "state of obj/k")
	w.Is(w.C.BurnIntent(w.Ctx, "obj/none"), catalog.ErrConflict, "state of obj/none")
	w.Clock.Advance(orphanGrace)
	v, in := w.condemnIntent("obj/k")
	Equal(t, "old", v, catalog.Condemned)
	Equal(t, "uploads to abort", len(in.Uploads), 1)
	// Condemned: no commit, no announcement, no upload.
	w.Absorb("a:2")
	_, err = w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: "obj/k", Nonce: "n1", Runs: []catalog.Run{Output("obj/k", 0, catalog.RefStream, w.Refs("a")...)}})
	w.Is(err, catalog.ErrConflict, "intent")
	w.Is(w.C.AddUpload(w.Ctx, "obj/k", "n1", "u2"), catalog.ErrConflict, "intent")
	v, _ = w.condemnIntent("obj/k")
	Equal(t, "again", v, catalog.Condemned)
	w.OK(w.C.BurnIntent(w.Ctx, "obj/k"))
	w.OK(w.C.BurnIntent(w.Ctx, "obj/k"))
	v, in = w.condemnIntent("obj/k")
	Equal(t, "burned stays what it is", v, catalog.Condemned)
	Equal(t, "state", in.State, catalog.IntentBurned)
	Equal(t, "uploads", len(in.Uploads), 0)

	// A ref names it: the intent goes, the object stays.
	key := segment.StreamKey("a", 1, 1, 0)
	w.Announce(key, "n1")
	w.OK(w.C.AddUpload(w.Ctx, key, "n1", "u1"))
	_, err = w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: key, Nonce: "n1", Runs: []catalog.Run{Output(key, 0, catalog.RefStream, w.Refs("a")...)}})
	w.OK(err)
	v, in = w.condemnIntent(key)
	Equal(t, "named", v, catalog.Named)
	Equal(t, "uploads to abort", len(in.Uploads), 1)
	_, err = w.C.Intent(w.Ctx, key)
	w.Is(err, catalog.ErrNotFound, "")
	// A reap-check stands for it.
	w.Announce("obj/w", "n1")
	w.OK(w.C.Arm(w.Ctx, catalog.DutyReapCheck, "obj/w", "", 0))
	w.Clock.Advance(orphanGrace)
	v, _ = w.condemnIntent("obj/w")
	Equal(t, "watched", v, catalog.Named)
}

// testJudgeTakeover: who took the marker before a takeover judges nothing.
func testJudgeTakeover(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Announce("obj/k", "n1")
	w.Clock.Advance(orphanGrace)
	m := w.takeOne(catalog.DutyOrphan)
	w.Announce("obj/k", "n2")
	_, _, err := w.C.CondemnIntent(w.Ctx, m.MarkerRef)
	w.Is(err, catalog.ErrConflict, "marker orphan obj/k")
	in, err := w.C.Intent(w.Ctx, "obj/k")
	w.OK(err)
	Equal(t, "state", in.State, catalog.IntentStanding)
	// A deadline past the orphan grace is waited for.
	_, err = w.C.Announce(w.Ctx, catalog.Announce{Key: "obj/k", Class: segment.ClassStandard, Holder: w.Holder(), Nonce: "n3", Deadline: 3 * orphanGrace})
	w.OK(err)
	w.Clock.Advance(2 * orphanGrace)
	v, _ := w.condemnIntent("obj/k")
	Equal(t, "before the deadline", v, catalog.NotYet)
	w.Clock.Advance(orphanGrace)
	v, _ = w.condemnIntent("obj/k")
	Equal(t, "past it", v, catalog.Condemned)
}

// burn makes an intent for key and burns it.
func (w *World) burn(key string) {
	w.T.Helper()
	w.Announce(key, "n")
	w.Clock.Advance(orphanGrace)
	v, _ := w.condemnIntent(key)
	Equal(w.T, "verdict", v, catalog.Condemned)
	w.OK(w.C.BurnIntent(w.Ctx, key))
}

func (w *World) remove(key string, want bool) {
	w.T.Helper()
	removed, err := w.C.RemoveIntent(w.Ctx, key)
	w.OK(err)
	Equal(w.T, "removed "+key, removed, want)
	if _, ok := w.Marker(catalog.DutyOrphan, key); ok == want {
		w.T.Fatalf("look of %s stands: %v", key, ok)
	}
}

// testRemoveIntent: a burned key stays until nobody can derive it.
func testRemoveIntent(t *testing.T, open Open) {
	w := NewWorld(t, open)
	long := strings.Repeat("x", 201)
	a := w.Build("a:4")
	a.Refs = append(a.Refs, a.Refs[0])
	a.Refs[1].Stream, a.Refs[1].First, a.Refs[1].Last = long, 5, 8
	a.Slot.Next = 9
	_, err := w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	w.Continue(a)
	w.remove("obj/none", true)
	w.Announce("obj/standing", "n")
	_, err = w.C.RemoveIntent(w.Ctx, "obj/standing")
	w.Is(err, catalog.ErrConflict, "state of obj/standing")

	key := segment.StreamKey("a", 1, 1, 0)
	hashed := segment.StreamKey(long, 1, 5, 0)
	behind := segment.StreamKey("a", 1, 2, 0) // no ref begins there
	pack := segment.PackKey(w.Chain, 1, 1, 0)
	odd := "odd/key"
	for _, k := range []string{key, hashed, behind, pack, odd} {
		w.burn(k)
	}
	w.remove(behind, false) // before its last look
	w.Clock.Advance(catalog.BurnDelay)
	w.remove(behind, true)
	w.remove(key, false)
	w.remove(hashed, false)
	w.remove(pack, false)
	w.remove(odd, false)
	// The ref at its first row has that revision or more.
	next := segment.StreamKey("a", 1, 1, 1)
	_, err = w.rewrite(next, Output(next, 1, catalog.RefStream, w.Refs("a")...))
	w.OK(err)
	w.remove(key, true)
	// Nothing at or above live_from begins there.
	_, err = w.C.DeleteStream(w.Ctx, long)
	w.OK(err)
	w.remove(hashed, true)
	// Its slots are trimmed.
	w.walk(mustStream(w, long).ID)
	w.Absorb("b:1")
	w.trimAll()
	w.remove(pack, true)
	w.remove(odd, false)
}

// testRemovePackIntent: a merge of packs inside a burned key's range may come to it, as
// long as they have lower revisions, whatever their own ranges.
func testRemovePackIntent(t *testing.T, open Open) {
	w := NewWorld(t, open)
	one, two := w.pack("a:1", 0, catalog.Next{}), w.pack("a:1", 0, catalog.Next{})
	behind := w.pack("a:1", 0, catalog.Next{})
	n, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 3)
	w.Absorb("b:1") // a chain's last slot row stays
	w.trimSettled()
	merged := segment.PackKey(w.Chain, 1, 2, 1)
	w.burn(merged)
	w.Clock.Advance(catalog.BurnDelay)
	w.remove(merged, false)
	live, err := w.C.Liveness(w.Ctx, one)
	w.OK(err)
	w.commitNext(catalog.Next{}, streamRun("a", live[0].Ref)) // its rows leave the pack
	w.remove(merged, false)
	w.lose(two, "a")
	w.remove(merged, true)
	live, err = w.C.Liveness(w.Ctx, behind)
	w.OK(err)
	Equal(t, "a pack of another range stands", len(live), 1)
}

func mustStream(w *World, name string) catalog.Stream {
	w.T.Helper()
	s, err := w.C.Stream(w.Ctx, name)
	w.OK(err)
	return s
}

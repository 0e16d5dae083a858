package crashpoints_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// The rows of seed 002's table that concern the rewrite.

var (
	packKey  = segment.PackKey(segment.Chain{Epoch: 1}, 1, 1, 0)
	largeKey = segment.StreamKey("large", 1, 1, 0)
)

// The intent, before the PUT: an intent and no object. The retry takes it over; if
// nobody retries, the orphan judge finds nothing at the key and relieves it.
func TestAfterTheIntentBeforeThePut(t *testing.T) {
	for _, retry := range []bool{true, false} {
		t.Run(map[bool]string{true: "retried", false: "nobody retries"}[retry], func(t *testing.T) {
			w := newWorld(t)
			w.slot(small)
			w.cutAfter("Announce", 1)

			if got := w.standing(); !slices.Equal(got, []string{packKey}) || len(w.Settled()) != 0 {
				t.Fatalf("intents %v, objects %v: want the intent alone", got, w.Settled())
			}
			if !retry {
				w.drop("small") // no job needs the key any more
			}
			w.converges()
			if want := map[bool]int{true: 1, false: 0}[retry]; len(w.Settled()) != want || len(w.Intents()) != 0 {
				t.Errorf("objects %v, intents %+v", w.Settled(), w.Intents())
			}
		})
	}
}

// The PUT, before the commit: an intent and an unreferenced object. The retry derives
// the same key, meets the object and describes it; or the judge deletes it.
func TestAfterThePutBeforeTheCommit(t *testing.T) {
	for _, retry := range []bool{true, false} {
		t.Run(map[bool]string{true: "retried", false: "nobody retries"}[retry], func(t *testing.T) {
			w := newWorld(t)
			w.slot(small)
			w.cutAfter("store put settled", 1)

			if !slices.Equal(w.standing(), []string{packKey}) || !slices.Equal(w.Settled(), []string{packKey}) || len(w.named()) != 1 {
				t.Fatalf("intents %v, objects %v, refs name %v: want the object unreferenced under its intent", w.standing(), w.Settled(), w.named())
			}
			before := w.Mem.Dump()[packKey]
			if !retry {
				w.drop("small")
				w.Clock.Advance(audittest.OrphanGrace - 5*time.Minute)
				w.reruns()
				if !slices.Equal(w.Settled(), []string{packKey}) || !slices.Equal(w.standing(), []string{packKey}) {
					t.Errorf("judged before its grace: objects %v, intents %v", w.Settled(), w.standing())
				}
				w.converges()
				if len(w.Settled()) != 0 {
					t.Errorf("%v stand", w.Settled())
				}
				return
			}
			w.reruns()
			if !slices.Equal(w.named(), []string{packKey}) || string(w.Mem.Dump()[packKey]) != string(before) {
				t.Errorf("refs name %v: want the standing object described", w.named())
			}
			w.converges()
		})
	}
}

// A lost create-once race: a standing object that covers less than the walk. The commit
// truncates at the standing coverage; the remainder stays in transit for the next pass.
func TestALostCreateOnceRace(t *testing.T) {
	w := newWorld(t)
	w.slot(large)
	w.cutAfter("store put settled", 1) // it saw the first slot alone
	w.slot(large)

	w.Clock.Advance(2 * settle.DefaultLease)
	rep, err := w.Settler(w.Store, w.DB).RunOnce(t.Context(), w.Chain, "second")
	w.Must(err)
	if slots, settled := w.refsIn(); rep.Lost != 1 || slots != 1 || settled != 1 {
		t.Fatalf("%+v, %d refs in transit, %d settled: want the prefix settled, the rest in transit", rep, slots, settled)
	}
	w.converges()
	if !slices.Contains(w.Settled(), largeKey) || len(w.Settled()) != 2 {
		t.Errorf("%v stand", w.Settled())
	}
}

// The catalog commit, before the intent resolves: a referenced object under an intent.
// Commit and resolve are one transaction, but for an intent that still carries an upload
// of an attempt before: that one stays for the judge, which aborts the upload, finds a ref
// that names the key, and resolves the intent. The object stands.
func TestAfterTheCommitBeforeTheIntentResolves(t *testing.T) {
	w := newWorld(t)
	w.slot(large)
	w.smallPartsCutAfter("AddUpload")
	w.Clock.Advance(2 * settle.DefaultLease)
	w.smallPartsCutAfter("CommitRewrite")

	if !slices.Equal(w.standing(), []string{largeKey}) || !slices.Equal(w.named(), []string{largeKey}) {
		t.Fatalf("intents %v, refs name %v: want a referenced object under an intent", w.standing(), w.named())
	}
	ups, err := w.Store.ListUploads(t.Context(), "")
	w.Must(err)
	if len(ups) != 1 {
		t.Fatalf("uploads %+v: want the first attempt's", ups)
	}
	w.reruns()
	if !slices.Equal(w.standing(), []string{largeKey}) {
		t.Errorf("intents %v: the re-run has nothing to do with it", w.standing())
	}
	w.converges()
	if !slices.Equal(w.Settled(), []string{largeKey}) || len(w.Intents()) != 0 {
		t.Errorf("objects %v, intents %+v", w.Settled(), w.Intents())
	}
}

// smallPartsCutAfter runs a settler whose outputs are uploads in parts, and cuts it
// right after that call.
func (w *world) smallPartsCutAfter(call string) {
	w.T.Helper()
	f := &audittest.Faults{Pick: audittest.Cut(1, isCall(call))}
	store, err := objstore.New(f.Driver(w.Mem), objstore.Config{PartSize: 4 << 10, Sleep: func(context.Context, time.Duration) error { return nil }})
	w.Must(err)
	f.Start()
	defer f.Heal()
	_, err = w.Settler(store, f.Catalog(w.Tier)).RunOnce(w.Ctx(), w.Chain, "cut at "+call)
	if f.Hit() == "" {
		w.T.Fatalf("no cut after %s (%v); calls %v", call, err, f.Calls())
	}
}

// The commit, before the source's watcher is armed: the duty's marker still stands. It
// runs again, finds the source covered, moves nothing, and arms the source's watcher.
// (A settled source's watcher is armed by the commit itself.)
func TestAfterTheCommitBeforeTheSourcesWatcherIsArmed(t *testing.T) {
	t.Run("settle", func(t *testing.T) {
		w := newWorld(t)
		w.slot(small)
		w.cutAfter("CommitRewrite", 1)

		if slots, _ := w.refsIn(); slots != 0 || w.marked(catalog.DutySettle) != 1 || w.marked(catalog.DutyTrimCheck) != 0 {
			t.Fatalf("%d refs in transit, settle markers %v, trim-checks %v", slots, w.Markers(catalog.DutySettle), w.Markers(catalog.DutyTrimCheck))
		}
		calls := w.reruns()
		if n := count(calls, "store put settled") + count(calls, "Announce"); n != 0 {
			t.Errorf("the re-run moved what was covered: %v", calls)
		}
		if w.marked(catalog.DutySettle) != 0 || w.marked(catalog.DutyTrimCheck) != 1 {
			t.Errorf("settle markers %v, trim-checks %v", w.Markers(catalog.DutySettle), w.Markers(catalog.DutyTrimCheck))
		}
		w.converges()
	})
	t.Run("gc", func(t *testing.T) {
		w := newWorld(t)
		w.GCLeast = 1
		w.slot(small, bulky)
		w.RunDry()
		w.drop("bulky")
		w.cutAfter("CommitRewrite", 1)

		source, now := packKey, w.named()
		if w.marked(catalog.DutyGC) != 1 || len(now) != 1 || now[0] == source {
			t.Fatalf("gc markers %v, refs name %v", w.Markers(catalog.DutyGC), now)
		}
		if ms := w.Markers(catalog.DutyReapCheck); !slices.ContainsFunc(ms, func(m catalog.Marker) bool { return m.ID == source }) {
			t.Fatalf("reap-checks %v: the source has no watcher", ms)
		}
		calls := w.reruns()
		if n := count(calls, "store put settled") + count(calls, "Announce"); n != 0 || w.marked(catalog.DutyGC) != 0 {
			t.Errorf("gc markers %v, the re-run's calls %v", w.Markers(catalog.DutyGC), calls)
		}
		w.converges()
		if !slices.Equal(w.Settled(), now) {
			t.Errorf("%v stand, want %v", w.Settled(), now)
		}
	})
}

// A settle-rewrite member: its marker stands, other members' outputs are referenced.
// Completed members judge as covered; only the one that did not commit moves.
func TestASettleRewriteMember(t *testing.T) {
	for _, cut := range []bool{true, false} {
		t.Run(map[bool]string{true: "cut", false: "failed"}[cut], func(t *testing.T) {
			w := newWorld(t)
			w.slot(large, small, other)
			if cut {
				w.cutAfter("CommitRewrite", 1)
			} else {
				w.failing("store put " + largeKey)
			}

			slots, settled := w.refsIn()
			if slots == 0 || settled == 0 || w.marked(catalog.DutySettle) != 1 {
				t.Fatalf("%d refs in transit, %d settled, markers %v: want one member committed", slots, settled, w.Markers(catalog.DutySettle))
			}
			done := slices.DeleteFunc(w.named(), func(key string) bool { return !isSettled(key) })
			w.Clock.Advance(settle.DefaultBackoffMax)
			calls := w.reruns()
			if n := count(calls, "CommitRewrite"); n != 1 || slices.Contains(calls, "store put "+done[0]) {
				t.Errorf("%d members moved: %v", n, calls)
			}
			w.converges()
			if got := w.Settled(); len(got) != 2 || !slices.Contains(got, done[0]) {
				t.Errorf("%v stand", got)
			}
		})
	}
}

// failing runs an auditor for which one call always fails.
func (w *world) failing(call string) {
	w.T.Helper()
	f := &audittest.Faults{Pick: func(_ int, c string) audittest.Form {
		if c == call {
			return audittest.NotApplied
		}
		return audittest.Fine
	}}
	f.Start()
	defer f.Heal()
	_, err := w.AuditorOn("failing", auditor.Config{}, f.Store(w.Tier), f.Catalog(w.Tier)).Once(w.Ctx(), auditor.OnceOptions{})
	if err == nil || f.Hit() == "" {
		w.T.Fatalf("%s was to fail: %v", call, err)
	}
}

package reap_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

func trims(x *audittest.Tier) (out []*segment.TrimRecord) {
	x.T.Helper()
	for _, key := range x.Keys(segment.KeyTrim) {
		body, _, err := x.Store.ReadAll(x.Ctx(), key, 1<<20)
		x.Must(err)
		rec, err := segment.DecodeTrim(body)
		x.Must(err)
		out = append(out, rec)
	}
	return out
}

func plan(x *audittest.Tier, stream string) catalog.Plan {
	x.T.Helper()
	p, err := x.DB.Plan(x.Ctx(), catalog.PlanRequest{Stream: stream, Limit: 1000})
	x.Must(err)
	return p
}

// K38: names that are prefixes of each other, or of each other's keys.
func TestK38TearOneDownTheOthersStand(t *testing.T) {
	names := []string{"x", "x1", "x~1", "x/", "x%"}
	for _, victim := range names {
		t.Run(victim, func(t *testing.T) {
			x := settled(t, names...)
			before := map[string]string{}
			for _, n := range names {
				before[n] = plan(x, n).Refs[0].Key
			}
			_, err := x.DB.DeleteStream(t.Context(), victim)
			x.Must(err)
			x.RunDry()
			x.MustBeClean()
			want := []string{}
			for _, n := range names {
				if n != victim {
					want = append(want, before[n])
				}
			}
			slices.Sort(want)
			if got := x.Settled(); !slices.Equal(got, want) {
				t.Fatalf("%v stand, want %v", got, want)
			}
			for _, n := range names {
				p, err := x.DB.Plan(x.Ctx(), catalog.PlanRequest{Stream: n, Limit: 10})
				if n == victim {
					if err == nil && len(p.Refs) > 0 {
						t.Errorf("%q still has refs", n)
					}
					continue
				}
				if err != nil || len(p.Refs) != 1 || p.Refs[0].Rows != 20 {
					t.Errorf("%q: %d refs (%v), want its 20 rows", n, len(p.Refs), err)
				}
			}
		})
	}
}

// A trim into the middle of an object: what is above stands, what is wholly below
// goes, the object that straddles has a watcher.
func TestTrimInTheMiddle(t *testing.T) {
	x := newTier(t)
	var ends []segment.Seq
	for range 3 {
		x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
		ends = append(ends, x.Next()-1)
		x.RunDry()
	}
	pos := segment.Pos{Epoch: 1, Seq: ends[1] - 5} // inside the second object
	_, err := x.DB.TrimStream(t.Context(), "s", pos)
	x.Must(err)
	results := plain(x).walkOnce()
	if len(results) != 1 || results[0].Err != nil || results[0].Retired != 1 || results[0].Outcome != reap.WalkDone {
		t.Fatalf("%+v, want one ref retired", results)
	}
	var watched []string
	for _, m := range x.Markers(catalog.DutyReapCheck) {
		watched = append(watched, m.ID)
	}
	if want := x.Settled()[:2]; !slices.Equal(watched, want) {
		t.Fatalf("watched %v, want the dead object and the one that straddles: %v", watched, want)
	}
	x.RunDry()
	x.MustBeClean()
	if got := x.Settled(); len(got) != 2 {
		t.Fatalf("%v stand, want two", got)
	}
	if rec := trims(x); len(rec) != 1 || len(rec[0].Streams) != 1 || rec[0].Streams[0].LiveFrom != pos || rec[0].Streams[0].Deleted {
		t.Fatalf("journal %+v", rec)
	}
}

// Trims are journaled before any ref of them is retired, many in one record.
func TestTrimsAreJournaledBeforeTheirWalk(t *testing.T) {
	x := settled(t, "a", "b", "c")
	for _, n := range []string{"a", "b", "c"} {
		_, err := x.DB.DeleteStream(t.Context(), n)
		x.Must(err)
	}
	f := &audittest.Faults{}
	f.Start()
	r := faulty(x, f)
	for _, res := range r.walkOnce() {
		x.Must(res.Err)
	}
	calls := f.Calls()
	put := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, "store put trims/") })
	retire := slices.Index(calls, "RetireRefs")
	arm := slices.Index(calls, "ArmWatchers")
	if put < 0 || arm < put || retire < arm {
		t.Fatalf("calls %v: want journal, arm, retire", calls)
	}
	if n := strings.Count(strings.Join(calls, "\n"), "store put trims/"); n != 1 {
		t.Fatalf("%d records for three trims", n)
	}
	f.Heal()
	if rec := trims(x); len(rec) != 1 || len(rec[0].Streams) != 3 || !rec[0].Streams[0].Deleted {
		t.Fatalf("journal %+v", rec)
	}
	if row := chainRow(x); row.TrimJournal != rec0(x).N+1 {
		t.Fatalf("the row says %d is free, the record is %d", row.TrimJournal, rec0(x).N)
	}
	x.RunDry()
	x.MustBeClean()
}

func rec0(x *audittest.Tier) *segment.TrimRecord { return trims(x)[0] }

// A record that stands under a number which the row calls free: the next writer
// takes the next number, and both records stand.
func TestJournalGoesPastAStandingRecord(t *testing.T) {
	x := settled(t, "a", "b")
	_, err := x.DB.DeleteStream(t.Context(), "a")
	x.Must(err)
	f := &audittest.Faults{Pick: audittest.Cut(1, func(c string) bool { return strings.HasPrefix(c, "store put trims/") })}
	f.Start()
	faulty(x, f).walkOnce()
	f.Heal()
	if len(trims(x)) != 1 || chainRow(x).TrimJournal != rec0(x).N {
		t.Fatal("the cut was not between record and row")
	}
	_, err = x.DB.DeleteStream(t.Context(), "b")
	x.Must(err)
	x.Clock.Advance(time.Minute)
	x.RunDry()
	x.MustBeClean()
	seen := map[string]bool{}
	for _, rec := range trims(x) {
		for _, s := range rec.Streams {
			seen[s.Name] = true
		}
	}
	if !seen["a"] || !seen["b"] || len(trims(x)) < 2 {
		t.Fatalf("journal %+v", trims(x))
	}
}

// A further trim during the walk is journaled before its own refs go.
func TestTrimDuringTheWalk(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	mid := x.Next()
	x.RunDry()
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.RunDry()
	_, err := x.DB.TrimStream(t.Context(), "s", segment.Pos{Epoch: 1, Seq: mid})
	x.Must(err)
	f := &audittest.Faults{}
	once := false
	f.Hook = func(call string, after bool) {
		if after && call == "AdvanceJournal" && !once {
			once = true
			_, err := x.DB.DeleteStream(x.Ctx(), "s")
			x.Must(err)
		}
	}
	f.Start()
	results := faulty(x, f).walkOnce()
	f.Heal()
	if !once || results[0].Outcome != reap.WalkArmed || results[0].Err != nil || results[0].Retired != 0 {
		t.Fatalf("%+v, want armed since and nothing retired", results)
	}
	if ms := x.Markers(catalog.DutyTeardown); len(ms) != 1 {
		t.Fatalf("%d teardowns stand, want the one armed meanwhile", len(ms))
	}
	x.RunDry()
	x.MustBeClean()
	if got := x.Settled(); len(got) != 0 {
		t.Fatalf("%v stand", got)
	}
}

// Crash table: "a teardown walk mid-kill".
func TestCutInTheMiddleOfAWalk(t *testing.T) {
	for _, verb := range []string{"ArmWatchers", "RetireRefs"} {
		t.Run(verb, func(t *testing.T) {
			x := settled(t, "s")
			_, err := x.DB.DeleteStream(t.Context(), "s")
			x.Must(err)
			f := &audittest.Faults{Pick: audittest.Cut(1, func(c string) bool { return c == verb })}
			f.Start()
			faulty(x, f).walkOnce()
			if f.Hit() == "" {
				t.Fatal("no cut")
			}
			f.Heal()
			if len(x.Markers(catalog.DutyReapCheck)) != 1 || len(x.Markers(catalog.DutyTeardown)) != 1 {
				t.Fatal("a watcher or the walk's own marker is missing")
			}
			x.Must(x.Fsck(false)) // nothing is without a watcher
			x.Clock.Advance(time.Minute)
			x.RunDry()
			x.MustBeClean()
		})
	}
}

// K7 in part: streams that were torn down while their rows were still in transit.
func TestK7TeardownBeforeTheSettle(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "gone", Rows: 20, Size: 400}, audittest.Write{Stream: "stays", Rows: 5, Size: 40})
	_, err := x.DB.DeleteStream(t.Context(), "gone")
	x.Must(err)
	x.RunDry()
	x.MustBeClean()
	if got := x.Keys(segment.KeyStream); len(got) != 0 {
		t.Fatalf("%v: dead rows were settled", got)
	}
	if p := plan(x, "stays"); len(p.Refs) != 1 || p.Refs[0].Rows != 5 {
		t.Fatalf("%+v", p)
	}
}

func TestSweepTeardownEveryCallFails(t *testing.T) {
	audittest.Sweep(t, audittest.AllForms(), func(t *testing.T, f *audittest.Faults) {
		x := settled(t, "s", "t", "keep")
		for _, n := range []string{"s", "t"} {
			_, err := x.DB.DeleteStream(t.Context(), n)
			x.Must(err)
		}
		f.Start()
		results := faulty(x, f).walkOnce()
		if f.Hit() == "" && (len(results) != 2 || results[0].Outcome != reap.WalkDone) {
			t.Fatalf("no fault, yet %+v", results)
		}
		f.Heal()
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
		if got := x.Settled(); len(got) != 1 {
			t.Fatalf("%v stand, want the living stream's", got)
		}
		for _, n := range []string{"s", "t"} {
			if !slices.ContainsFunc(trims(x), func(r *segment.TrimRecord) bool {
				return slices.ContainsFunc(r.Streams, func(s segment.StreamTrim) bool { return s.Name == n && s.Deleted })
			}) {
				t.Errorf("the trim of %q is not journaled", n)
			}
		}
	})
}

// One stream's fault stops no other's walk (K11).
func TestK11OneFailingWalkStopsNoOther(t *testing.T) {
	x := settled(t, "a", "b", "c")
	for _, n := range []string{"a", "b", "c"} {
		_, err := x.DB.DeleteStream(t.Context(), n)
		x.Must(err)
	}
	seen := 0
	f := &audittest.Faults{Pick: func(_ int, c string) audittest.Form {
		if c == "RetireRefs" {
			if seen++; seen == 2 {
				return audittest.NotApplied
			}
		}
		return audittest.Fine
	}}
	f.Start()
	failed := 0
	for _, res := range faulty(x, f).walkOnce() {
		if res.Err != nil {
			failed++
		} else if res.Outcome != reap.WalkDone {
			t.Errorf("%+v", res)
		}
	}
	if failed != 1 {
		t.Fatalf("%d walks failed, want the one", failed)
	}
	f.Heal()
	x.Clock.Advance(time.Minute)
	x.RunDry()
	x.MustBeClean()
}

// The journal belongs to the first bucket of the chain's class.
func TestTeardownWithoutABucketFails(t *testing.T) {
	x := settled(t, "a")
	_, err := x.DB.DeleteStream(t.Context(), "a")
	x.Must(err)
	w := reap.NewWalker(x.DB, objstore.Classes{"express": {x.Store}}, deleter(x))
	results := w.RunOnce(t.Context(), x.Take(catalog.DutyTeardown))
	if len(results) != 1 || results[0].Err == nil || results[0].Retired != 0 {
		t.Fatalf("%+v, want a refusal", results)
	}
	x.Clock.Advance(time.Minute)
	x.RunDry()
}

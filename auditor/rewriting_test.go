package auditor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

var rewrites = []catalog.Duty{catalog.DutyPackMerge, catalog.DutyTailFill, catalog.DutyGC}

// policing is a settler whose RunMarker and Explain are the test's.
type policing struct {
	auditor.Settler
	run func(ctx context.Context, m catalog.Marker) (settle.Report, error)
}

func (p *policing) RunMarker(ctx context.Context, m catalog.Marker, _ string) (settle.Report, error) {
	return p.run(ctx, m)
}

// policed is an auditor over such a settler.
func policed(x *audittest.Tier, cfg auditor.Config, run func(ctx context.Context, m catalog.Marker) (settle.Report, error)) *auditor.Auditor {
	x.T.Helper()
	a, err := auditor.New(auditor.Deps{
		ID: "a", Catalog: x.DB, Classes: x.Classes, Settler: &policing{x.Settler(x.Store, x.DB), run},
		Logger: audittest.Logger(), Clock: x.Clock.Now, Wait: x.Clock.Wait,
	}, cfg)
	x.Must(err)
	return a
}

// owe arms a marker of each id.
func owe(x *audittest.Tier, d catalog.Duty, ids ...string) {
	x.T.Helper()
	for _, id := range ids {
		x.Must(x.DB.Arm(x.Ctx(), d, id, segment.ClassStandard, 0))
	}
}

// TestK11OneFailingRewriteStallsNoOther: of no duty; it backs off, and its error is told.
func TestK11OneFailingRewriteStallsNoOther(t *testing.T) {
	x := newTier(t)
	for _, d := range rewrites {
		owe(x, d, "bad", "good", "well")
	}
	var mu sync.Mutex
	served := map[catalog.Duty][]string{}
	a := policed(x, auditor.Config{Concurrency: 2}, func(ctx context.Context, m catalog.Marker) (settle.Report, error) {
		mu.Lock()
		served[m.Duty] = append(served[m.Duty], m.ID)
		mu.Unlock()
		if m.ID == "bad" {
			return settle.Report{Through: 7}, errBad
		}
		return settle.Report{Outputs: 1, StoredBytes: 100, Through: 30, ServerSide: 80, Resolved: 1}, x.DB.Resolve(ctx, m.MarkerRef)
	})
	var dues []time.Duration
	for range 4 {
		if _, err := a.Once(x.Ctx(), auditor.OnceOptions{}); !errors.Is(err, errBad) {
			t.Fatalf("%v, want the error told", err)
		}
		dues = append(dues, x.Markers(catalog.DutyGC)[0].Due.Sub(x.Clock.Now()))
		x.Clock.Advance(10 * time.Second)
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}; !slices.Equal(dues, want) {
		t.Errorf("pauses %v, want %v", dues, want)
	}
	for _, d := range rewrites {
		ms := x.Markers(d)
		if len(ms) != 1 || ms[0].ID != "bad" || ms[0].Attempts != 4 || !strings.Contains(ms[0].LastError, "bad settler") {
			t.Errorf("%s: %+v", d, ms)
		}
		if n := len(served[d]); n != 4+2 {
			t.Errorf("%s: served %v", d, served[d])
		}
		sum := a.Summary().Duties[string(d)]
		if sum.Outcomes["rewritten"] != 2 || sum.Outcomes["outputs"] != 2 || sum.Failed != 4 || sum.Bytes != 200 ||
			sum.Through != 2*30+4*7 || sum.ServerSide != 160 || sum.LastSuccess.IsZero() || sum.LastError == "" {
			t.Errorf("%s: %+v", d, sum)
		}
		if sum.OldestDebt != ms[0].Due || sum.DebtAge != 0 {
			t.Errorf("%s: oldest debt %v, age %v; it is due at %v", d, sum.OldestDebt, sum.DebtAge, ms[0].Due)
		}
	}
}

// TestRewriteThatIsAnothers: a marker whose lease another holds is left to it, as no
// failure; and looked at again, should the other have died.
func TestRewriteThatIsAnothers(t *testing.T) {
	x := newTier(t)
	owe(x, catalog.DutyTailFill, "theirs")
	calls := 0
	a := policed(x, auditor.Config{}, func(ctx context.Context, m catalog.Marker) (settle.Report, error) {
		if calls++; calls == 1 {
			return settle.Report{Idle: settle.IdleLease}, nil
		}
		return settle.Report{Idle: settle.IdleTail}, x.DB.Resolve(ctx, m.MarkerRef)
	})
	once(x, a)
	m := x.Markers(catalog.DutyTailFill)[0]
	if calls != 1 || m.Attempts != 0 || m.Due.Sub(x.Clock.Now()) != auditor.DefaultLease {
		t.Fatalf("%d calls, %+v", calls, m)
	}
	x.Clock.Advance(auditor.DefaultLease)
	once(x, a)
	sum := a.Summary().Duties[string(catalog.DutyTailFill)]
	if sum.Failed != 0 || sum.Kept[settle.IdleLease] != 1 || sum.Kept[settle.IdleTail] != 1 || sum.Outcomes["idle"] != 1 {
		t.Fatalf("%+v", sum)
	}
	if !sum.OldestDebt.IsZero() {
		t.Fatalf("a debt that was paid is told of: %v", sum.OldestDebt)
	}
}

// TestRewriteThatLostARace is run anew at once; and when it loses again, it waits a short
// constant time, and nothing is called failed, however often that happens.
func TestRewriteThatLostARace(t *testing.T) {
	x := newTier(t)
	for _, d := range rewrites {
		owe(x, d, "once", "often", "also")
	}
	lost := settle.Failure{Stream: "s", Err: fmt.Errorf("commit obj/k: %w", catalog.Conflict("CommitRewrite", "ref unchanged", "that", "this"))}
	other := settle.Failure{Stream: "t", Err: errBad}
	var mu sync.Mutex // calls
	calls := map[string]int{}
	a := policed(x, auditor.Config{Backoff: 3 * time.Second}, func(ctx context.Context, m catalog.Marker) (settle.Report, error) {
		mu.Lock()
		defer mu.Unlock()
		id := string(m.Duty) + " " + m.ID
		switch calls[id]++; {
		case m.ID == "once" && calls[id] == 1, m.ID == "often" && calls[id] <= 12:
			return settle.Report{Failures: []settle.Failure{lost, lost}}, nil
		case m.ID == "also" && calls[id] == 1: // a race and a failure are a failure
			return settle.Report{Failures: []settle.Failure{lost, other}}, nil
		}
		return settle.Report{Outputs: 1}, x.DB.Resolve(ctx, m.MarkerRef)
	})
	if _, err := a.Once(x.Ctx(), auditor.OnceOptions{}); !errors.Is(err, catalog.ErrConflict) {
		t.Fatalf("%v, want the one failure told", err)
	}
	for _, d := range rewrites {
		ms := x.Markers(d)
		if len(ms) != 2 || ms[0].ID != "also" || ms[0].Attempts != 1 || ms[1].ID != "often" || ms[1].Attempts != 0 || ms[1].LastError != "" ||
			ms[1].Due.Sub(x.Clock.Now()) != 3*time.Second || calls[string(d)+" once"] != 2 || calls[string(d)+" often"] != 2 {
			t.Fatalf("%s: %+v, %v", d, ms, calls)
		}
	}
	// One run that outlasts five more lost races, and sees the marker through.
	sum, err := a.Once(x.Ctx(), auditor.OnceOptions{Linger: time.Minute})
	x.Must(err)
	for _, d := range rewrites {
		got := sum.Duties[string(d)]
		if len(x.Markers(d)) != 0 || got.Failed != 1 || got.Kept["raced"] != 6 || got.Outcomes["rewritten"] != 3 || calls[string(d)+" often"] != 13 {
			t.Errorf("%s: %+v stand, %+v, %v", d, x.Markers(d), got, calls)
		}
	}
}

// TestRewriteThatLosesRacesOfABusyRun: it comes up again and again at one version, while
// other markers keep the run from ever waiting. That is explained, and is no failure.
func TestRewriteThatLosesRacesOfABusyRun(t *testing.T) {
	x := newTier(t)
	owe(x, catalog.DutyGC, "busy", "often")
	calls := map[string]int{}
	lost := settle.Failure{Err: catalog.Conflict("CommitRewrite", "ref unchanged", "that", "this")}
	a := policed(x, auditor.Config{Concurrency: 1, Backoff: time.Second, Duties: []string{"gc"}}, func(ctx context.Context, m catalog.Marker) (settle.Report, error) {
		switch calls[m.ID]++; {
		case m.ID == "often" && calls[m.ID] <= 10:
			return settle.Report{Failures: []settle.Failure{lost}}, nil
		case m.ID == "busy" && calls[m.ID] < 20:
			owe(x, catalog.DutyGC, "busy")
			x.Clock.Advance(2 * time.Second)
		}
		return settle.Report{Outputs: 1}, x.DB.Resolve(ctx, m.MarkerRef)
	})
	sum := once(x, a)
	if got := sum.Duties["gc"]; got.Failed != 0 || got.Kept["raced"] != 5 || len(x.Markers(catalog.DutyGC)) != 0 {
		t.Fatalf("%+v, %v, %+v", got, calls, x.Markers(catalog.DutyGC))
	}
}

// TestRewriteThatArmsItselfAgain: the next step of a cascade comes up within the same run.
func TestRewriteThatArmsItselfAgain(t *testing.T) {
	x := newTier(t)
	owe(x, catalog.DutyPackMerge, "chain")
	calls := 0
	a := policed(x, auditor.Config{}, func(ctx context.Context, m catalog.Marker) (settle.Report, error) {
		if calls++; calls < 10 {
			owe(x, catalog.DutyPackMerge, "chain") // by the commit
		}
		return settle.Report{Outputs: 1}, x.DB.Resolve(ctx, m.MarkerRef)
	})
	once(x, a)
	if calls != 10 || len(x.Markers(catalog.DutyPackMerge)) != 0 {
		t.Fatalf("%d calls, %v", calls, x.Markers(catalog.DutyPackMerge))
	}
}

// TestRewritesAreTakenFewAtATime: what an auditor does not work on is another's to take.
func TestRewritesAreTakenFewAtATime(t *testing.T) {
	x := newTier(t)
	owe(x, catalog.DutyGC, "a", "b", "c", "d", "e")
	var mu sync.Mutex // least
	least := 5
	a := policed(x, auditor.Config{Concurrency: 2, Duties: []string{"gc"}}, func(ctx context.Context, m catalog.Marker) (settle.Report, error) {
		free := 0
		for _, other := range x.Markers(catalog.DutyGC) {
			if !other.LeaseEnd.After(x.Clock.Now()) {
				free++
			}
		}
		mu.Lock()
		least = min(least, free)
		mu.Unlock()
		if m.ID == "a" && free != 3 {
			t.Errorf("%d of 5 are free to take while two are worked on", free)
		}
		return settle.Report{Outputs: 1}, x.DB.Resolve(ctx, m.MarkerRef)
	})
	once(x, a)
	if len(x.Markers(catalog.DutyGC)) != 0 || least == 5 {
		t.Fatalf("%v stand", x.Markers(catalog.DutyGC))
	}
}

// TestPoliciesRunDry: with the real mover. Packs merge, tails fill, what is half dead is
// rewritten; what that leaves dead is reaped, and nothing waits.
func TestPoliciesRunDry(t *testing.T) {
	x := newTier(t)
	x.Policies()
	a := x.Auditor("a", auditor.Config{})
	for range 6 {
		x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400}, audittest.Write{Stream: "tiny", Rows: 1, Size: 40}, audittest.Write{Stream: "small", Rows: 2, Size: 40})
		once(x, a)
		x.Clock.Advance(time.Minute)
	}
	x.Slot(audittest.Write{Stream: "fat", Rows: 7, Size: 400}, audittest.Write{Stream: "tiny", Rows: 1, Size: 40})
	once(x, a)
	drop(x, "fat") // most of its pack
	for range 4 {
		once(x, a)
		x.Clock.Advance(audittest.ReadGrace)
	}
	for _, d := range rewrites {
		sum := a.Summary().Duties[string(d)]
		if sum.Outcomes["rewritten"] == 0 || sum.Through == 0 || sum.Bytes == 0 || sum.Failed != 0 || sum.LastSuccess.IsZero() || sum.Requests["put"] == 0 {
			t.Errorf("%s: %+v", d, sum)
		}
	}
	x.RunDry()
	x.MustBeClean()
	if streams, packs := x.Keys(segment.KeyStream), x.Keys(segment.KeyPack); len(streams) != 2 || len(packs) != 3 {
		t.Errorf("%v and %v stand, want the full tail and the one after, the packs of four slots, of two, and the rewritten one", streams, packs)
	}
}

// TestDryRunSaysWhatWouldBeRewritten, and why the rest is not, and changes nothing.
func TestDryRunSaysWhatWouldBeRewritten(t *testing.T) {
	x := newTier(t)
	x.Policies()
	for range 2 {
		x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400}, audittest.Write{Stream: "tiny", Rows: 1, Size: 40})
		x.SettleAll()
	}
	object := segment.StreamKey("big", 1, 1, 0)
	owe(x, catalog.DutyGC, object)
	owe(x, catalog.DutyGC, segment.StreamKey("nobody", 1, 1, 0))
	keys := x.Keys()
	sum := once(x, x.Auditor("dry", auditor.Config{DryRun: true, Duties: []string{"gc", "tail-fill", "pack-merge"}}))
	want := map[string]string{
		"tail-fill: ":  "would move into",
		"pack-merge: ": "would move into",
		"gc: ":         "no ref names the object alive",
	}
	for prefix, text := range want {
		if !slices.ContainsFunc(sum.DryRun, func(l orphan.Line) bool {
			return !l.Goes && strings.HasPrefix(l.Reason, prefix) && strings.Contains(l.Reason, text)
		}) {
			t.Errorf("%q … %q is not said: %+v", prefix, text, sum.DryRun)
		}
	}
	if len(sum.DryRun) != 4 || !slices.Equal(keys, x.Keys()) || len(x.Markers(catalog.DutyGC)) != 2 {
		t.Errorf("%+v; %v", sum.DryRun, x.Keys())
	}
	x.RunDry()
	x.MustBeClean()
}

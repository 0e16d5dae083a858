package auditor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/internal/verbs"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

func newTier(t *testing.T) *audittest.Tier { return audittest.New(t, memstore.Options{}) }

func once(x *audittest.Tier, a *auditor.Auditor) auditor.Summary {
	x.T.Helper()
	sum, err := a.Once(x.Ctx(), auditor.OnceOptions{})
	x.Must(err)
	return sum
}

func drop(x *audittest.Tier, streams ...string) {
	x.T.Helper()
	for _, s := range streams {
		_, err := x.DB.DeleteStream(x.Ctx(), s)
		x.Must(err)
	}
}

// K18: markers stand in the catalog; the auditor's host is lost at any moment.
func TestK18KilledAuditorLosesNothing(t *testing.T) {
	for cut := 1; ; cut++ {
		x := newTier(t)
		x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400}, audittest.Write{Stream: "t", Rows: 2, Size: 8})
		f := &audittest.Faults{Pick: func(n int, _ string) audittest.Form {
			if n == cut*7 {
				return audittest.CrashAfter
			}
			return audittest.Fine
		}}
		f.Start()
		a := x.AuditorOn("killed", auditor.Config{}, f.Store(x), f.Catalog(x))
		_, _ = a.Once(x.Ctx(), auditor.OnceOptions{Linger: 3 * audittest.ReadGrace}) // its errors are the kill's
		f.Heal()
		drop(x, "s")
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
		if got := x.Settled(); len(got) != 1 {
			t.Fatalf("cut %d (%s): %v stand, want the pack", cut, f.Hit(), got)
		}
		if f.Hit() == "" {
			if cut < 5 {
				t.Fatalf("only %d cuts", cut)
			}
			return
		}
	}
}

// K19: several auditors, each deleting; trimmed rows never re-appear.
func TestK19TwoAuditorsAtOnce(t *testing.T) {
	x := newTier(t)
	x.Policies()
	names := []string{"a", "b", "c", "d", "e"}
	for range 4 {
		for _, n := range names {
			x.Slot(audittest.Write{Stream: n, Rows: 20, Size: 400}, audittest.Write{Stream: "tiny-" + n, Rows: 1, Size: 8})
		}
		drop(x, "a", "tiny-b")
		_, err := x.DB.TrimStream(t.Context(), "c", segment.Pos{Epoch: 1, Seq: x.Next() - 60})
		x.Must(err)
		for range 8 {
			var wg sync.WaitGroup
			for _, id := range []string{"one", "two"} {
				wg.Go(func() {
					a := x.Auditor(id, auditor.Config{Concurrency: 3})
					if _, err := a.Once(x.Ctx(), auditor.OnceOptions{}); err != nil && !errors.Is(err, catalog.ErrConflict) {
						t.Errorf("%s: %v", id, err)
					}
				})
			}
			wg.Wait()
			x.Clock.Advance(audittest.ReadGrace)
			for _, gone := range []string{"a", "tiny-b"} {
				if p, err := x.DB.Plan(x.Ctx(), catalog.PlanRequest{Stream: gone, Limit: 10}); err == nil && len(p.Refs) > 0 {
					t.Fatalf("rows of %q re-appeared: %+v", gone, p.Refs)
				}
			}
		}
	}
	x.RunDry()
	x.MustBeClean()
}

// K11: one failing delete stalls nothing; it backs off, and its error is counted.
func TestK11OneFailingDeleteStallsNothing(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "bad", Rows: 20, Size: 400}, audittest.Write{Stream: "good", Rows: 20, Size: 400})
	x.RunDry()
	drop(x, "bad", "good")
	broken := true
	driver := faultstore.Wrap(x.Mem, func(faultstore.Call) faultstore.Fault {
		if !broken {
			return faultstore.Fault{}
		}
		return faultstore.Fault{Kind: faultstore.DeleteFails, Err: objstore.ErrDenied, Keys: func(key string) bool { return strings.Contains(key, "/bad/") }}
	})
	a := x.AuditorOn("a", auditor.Config{}, x.Open(driver), x.DB)
	var last error
	var dues []time.Duration
	for range 12 {
		x.Clock.Advance(audittest.ReadGrace)
		x.Slot(audittest.Write{Stream: "more", Rows: 20, Size: 400}) // and life goes on
		_, last = a.Once(x.Ctx(), auditor.OnceOptions{})
		for _, m := range x.Markers(catalog.DutyReapCheck) {
			if m.Attempts > 0 {
				dues = append(dues, m.Due.Sub(x.Clock.Now()))
			}
		}
	}
	if last == nil || !errors.Is(last, objstore.ErrDenied) {
		t.Fatalf("%v, want the error told", last)
	}
	sum := a.Summary().Duties[string(catalog.DutyReapCheck)]
	if sum.Failed < 5 || sum.LastError == "" || sum.Outcomes["reaped"] != 1 {
		t.Fatalf("%+v", sum)
	}
	if len(dues) < 5 || dues[0] != auditor.DefaultBackoff || dues[4] != 16*auditor.DefaultBackoff {
		t.Fatalf("pauses %v, want them doubled", dues)
	}
	if slots := x.Slots(); len(slots) > 3 {
		t.Fatalf("%d slots stand: the trim-check was stalled", len(slots))
	}
	if slices.ContainsFunc(x.Settled(), func(k string) bool { return strings.Contains(k, "/good/") }) {
		t.Fatal("the other object stands")
	}
	broken = false
	x.RunDry()
	x.MustBeClean()
}

// A clock that stepped stops deletes for one grace, and says so.
func TestSteppedClockStopsDeletesForOneGrace(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	process := audittest.NewClock()
	both := func(d time.Duration) { x.Clock.Advance(d); process.Advance(d) }
	a, err := auditor.New(auditor.Deps{
		ID: "a", Catalog: x.DB, Classes: x.Classes, Settler: x.Settler(x.Store, x.DB), Logger: audittest.Logger(),
		Clock: process.Now, Wait: process.Wait,
	}, auditor.Config{})
	x.Must(err)
	once(x, a)
	both(audittest.ReadGrace)
	once(x, a) // condemns
	x.Clock.Advance(2 * audittest.ReadGrace)
	sum := once(x, a) // the database's clock alone says that the grace is over
	if sum.Held == "" || len(x.Slots()) != 1 || sum.Duties[string(catalog.DutyTrimCheck)].Kept["clock"] == 0 {
		t.Fatalf("held %q, slots %v: deleted on a stepped clock", sum.Held, x.Slots())
	}
	rows, err := x.DB.AuditRows(t.Context(), 0, 100)
	x.Must(err)
	if !slices.ContainsFunc(rows, func(r catalog.AuditRow) bool { return r.Kind == "clock" }) {
		t.Fatal("it was not said")
	}
	both(audittest.ReadGrace - time.Second)
	if sum = once(x, a); sum.Held == "" || len(x.Slots()) != 1 {
		t.Fatalf("held %q: the grace is not over", sum.Held)
	}
	both(time.Second)
	if sum = once(x, a); sum.Held != "" || len(x.Slots()) != 0 {
		t.Fatalf("held %q, slots %v: the grace is over", sum.Held, x.Slots())
	}
	x.RunDry()
	x.MustBeClean()
}

// TestClockThatStepsDuringAPass: what a pass reads as due after a step is not deleted by
// it, though the clocks were right when it began (I4).
func TestClockThatStepsDuringAPass(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	process := audittest.NewClock()
	both := func(d time.Duration) { x.Clock.Advance(d); process.Advance(d) }
	steps := false
	cat := verbs.Around(x.DB, func(ctx context.Context, v verbs.Verb, do func(context.Context) error) error {
		if v.Name == "DueSlots" && steps {
			steps = false
			x.Clock.Advance(2 * audittest.ReadGrace)
		}
		return do(ctx)
	})
	a, err := auditor.New(auditor.Deps{
		ID: "a", Catalog: cat, Classes: x.Classes, Settler: x.Settler(x.Store, x.DB), Logger: audittest.Logger(),
		Clock: process.Now, Wait: process.Wait,
	}, auditor.Config{})
	x.Must(err)
	once(x, a)
	both(audittest.ReadGrace)
	once(x, a) // condemns
	x.Must(x.DB.Arm(x.Ctx(), catalog.DutyTrimCheck, catalog.ChainID(x.Chain), "", 0))
	both(audittest.ReadGrace / 2)
	steps = true
	x.Must(x.DB.Postpone(x.Ctx(), x.Markers(catalog.DutyTrimCheck)[0].MarkerRef, 0, ""))
	sum, err := a.Once(x.Ctx(), auditor.OnceOptions{})
	if steps || err == nil || sum.Held == "" || len(x.Slots()) != 1 {
		t.Fatalf("stepped %t, %v, held %q, slots %v", !steps, err, sum.Held, x.Slots())
	}
	both(audittest.ReadGrace + time.Minute)
	if sum = once(x, a); sum.Held != "" || len(x.Slots()) != 0 {
		t.Fatalf("held %q, slots %v: the grace is over", sum.Held, x.Slots())
	}
	x.RunDry()
	x.MustBeClean()
}

// The store's clock is held against the database's wherever a write shows it.
func TestSkewedStoreStopsDeletes(t *testing.T) {
	var skew time.Duration
	x := newTier(t)
	driver := memstore.New(memstore.Options{Clock: func() time.Time { return x.Clock.Now().Add(skew) }})
	skew = time.Hour
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	for key, body := range x.Mem.Dump() { // the same bucket, with another clock
		_, err := x.Open(driver).PutOnce(t.Context(), key, body, nil)
		x.Must(err)
	}
	a := x.AuditorOn("a", auditor.Config{}, x.Open(driver), x.DB)
	once(x, a)
	x.Clock.Advance(audittest.ReadGrace)
	once(x, a) // condemns, writes the head
	if sum := once(x, a); !strings.Contains(sum.Held, "store's clock") {
		t.Fatalf("held %q", sum.Held)
	}
	x.Damaged = true // two buckets
}

// A catalog that was rolled back: no delete of settled objects either.
func TestRolledBackCatalogStopsTheReap(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.RunDry()
	drop(x, "s")
	once(x, x.Auditor("a", auditor.Config{}))
	headKey := segment.HeadKey(x.Chain)
	body, info, err := x.Store.ReadAll(t.Context(), headKey, 1<<20)
	x.Must(err)
	h, err := segment.DecodeHead(body)
	x.Must(err)
	h.Term += 3
	ahead, err := segment.EncodeHead(h)
	x.Must(err)
	info, err = x.Store.PutIfMatch(t.Context(), headKey, ahead, info.ETag)
	x.Must(err)
	a := x.Auditor("a", auditor.Config{})
	for range 4 {
		x.Clock.Advance(audittest.ReadGrace)
		sum, err := a.Once(x.Ctx(), auditor.OnceOptions{})
		if !errors.Is(err, catalog.ErrRolledBack) || sum.Duties[string(catalog.DutyReapCheck)].Kept["rolled back"] == 0 || !slices.Contains(sum.Holds, auditor.HoldRolledBack) {
			t.Fatalf("%v, %+v", err, sum.Duties[string(catalog.DutyReapCheck)])
		}
	}
	if len(x.Settled()) != 1 {
		t.Fatal("deleted on a catalog that was rolled back")
	}
	if told := x.Audited("rolled-back"); len(told) != 1 || !strings.Contains(told[0].Detail, "no delete") || !strings.Contains(told[0].Detail, x.Chain.String()) {
		t.Errorf("told %d times: %+v", len(told), told)
	}
	_, err = x.Store.PutIfMatch(t.Context(), headKey, body, info.ETag) // the newer catalog is back
	x.Must(err)
	x.RunDry()
	x.MustBeClean()
}

func TestDryRunChangesNothingAndTellsWhy(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400}, audittest.Write{Stream: "t", Rows: 20, Size: 400})
	x.RunDry()
	drop(x, "s")
	once(x, x.Auditor("a", auditor.Config{}))
	x.Clock.Advance(audittest.ReadGrace)
	once(x, x.Auditor("a", auditor.Config{})) // confirmed
	x.Slot(audittest.Write{Stream: "t", Rows: 20, Size: 400})
	x.SettleAll()
	x.Clock.Advance(audittest.ReadGrace)
	f := &audittest.Faults{}
	f.Start()
	keys, calls := x.Keys(), []string{}
	sum, err := x.AuditorOn("dry", auditor.Config{DryRun: true}, f.Store(x), f.Catalog(x)).Once(x.Ctx(), auditor.OnceOptions{})
	x.Must(err)
	for _, c := range f.Calls() {
		name, _, _ := strings.Cut(strings.TrimPrefix(c, "store "), " ")
		if !slices.Contains([]string{"Now", "Session", "Settings", "Topologies", "Chains", "Chain", "MarkersOf", "Liveness", "Intent", "DueSlots", "get", "head", "list", "list-uploads"}, name) {
			calls = append(calls, c)
		}
	}
	if len(calls) > 0 || !slices.Equal(keys, x.Keys()) {
		t.Fatalf("a dry run made the calls %v", calls)
	}
	goes := map[string]bool{}
	for _, l := range sum.DryRun {
		if l.Reason == "" {
			t.Errorf("%+v has no reason", l)
		}
		if l.Goes {
			goes[l.Key] = true
		}
	}
	if len(goes) != 1 || !goes[segment.StreamKey("s", 1, 1, 0)] {
		t.Fatalf("would go: %v", goes)
	}
	f.Heal()
	x.RunDry()
	x.MustBeClean()
}

// A settle that fails pauses its chain only for a while, and is told.
func TestFailingSettleIsPausedAndTold(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	bad := &failing{Settler: x.Settler(x.Store, x.DB), left: 3}
	a, err := auditor.New(auditor.Deps{
		ID: "a", Catalog: x.DB, Classes: x.Classes, Settler: bad, Logger: audittest.Logger(), Clock: x.Clock.Now, Wait: x.Clock.Wait,
	}, auditor.Config{Concurrency: 1})
	x.Must(err)
	for range 3 {
		if _, err := a.Once(x.Ctx(), auditor.OnceOptions{}); !errors.Is(err, errBad) {
			t.Fatalf("%v, want the settle's error", err)
		}
		if _, err := a.Once(x.Ctx(), auditor.OnceOptions{}); !errors.Is(err, errBad) {
			t.Fatalf("%v: the error was forgotten during the pause", err)
		}
		x.Clock.Advance(time.Minute)
	}
	if bad.calls != 3 {
		t.Fatalf("%d calls, want the pauses kept", bad.calls)
	}
	once(x, a)
	if len(x.Settled()) != 1 {
		t.Fatal("not settled after the pause")
	}
	x.RunDry()
	x.MustBeClean()
}

var errBad = errors.New("bad settler")

type failing struct {
	auditor.Settler
	left, calls int
}

func (f *failing) RunOnce(ctx context.Context, c segment.Chain, owner string) (settle.Report, error) {
	f.calls++
	if f.left > 0 {
		f.left--
		return settle.Report{}, errBad
	}
	return f.Settler.RunOnce(ctx, c, owner)
}

// TestSweepThatIsAskedFor: --sweep reclaims at once all that fsck calls leaked.
func TestSweepThatIsAskedFor(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	late := x.Mem.Dump()[segment.SlotKey(x.Chain, 1)]
	x.RunDry() // the daily looks were a moment ago
	_, err := x.Store.PutOnce(t.Context(), segment.SlotKey(x.Chain, 1), late, nil)
	x.Must(err)
	x.Clock.Advance(audittest.ReadGrace)
	once(x, x.Auditor("a", auditor.Config{}))
	if len(x.Slots()) != 1 {
		t.Fatalf("%v stand: nobody asked, and no day has passed", x.Slots())
	}
	sum := once(x, x.Auditor("a", auditor.Config{Sweep: true}))
	if len(x.Slots()) != 0 || sum.Duties[string(catalog.DutySweep)].Outcomes["strays deleted"] != 1 {
		t.Fatalf("%v stand: %+v", x.Slots(), sum.Duties[string(catalog.DutySweep)])
	}
	x.MustBeClean()
}

// Strays and sweeps stand always, and run daily.
func TestSweepsRunDaily(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	late := x.Mem.Dump()[segment.SlotKey(x.Chain, 1)]
	x.RunDry()
	_, err := x.Store.PutOnce(t.Context(), segment.SlotKey(x.Chain, 1), late, nil)
	x.Must(err)
	a := x.Auditor("a", auditor.Config{})
	ms := x.Markers(catalog.DutySweep)
	if len(ms) != 2 {
		t.Fatalf("markers %+v, want the buckets' and the chain's", ms)
	}
	x.Clock.Advance(auditor.DefaultSweepEvery)
	sum := once(x, a)
	if len(x.Slots()) != 0 || sum.Duties[string(catalog.DutySweep)].Outcomes["strays deleted"] != 1 {
		t.Fatalf("%v stand: %+v", x.Slots(), sum.Duties[string(catalog.DutySweep)])
	}
	before := x.Store.Counters()
	once(x, a)
	if n := x.Store.Counters().Sub(before).Requests[objstore.OpList]; n != 0 {
		t.Fatalf("%d lists within the day", n)
	}
	x.RunDry()
	x.MustBeClean()
}

// Absorb-check: what a dead owner published and did not absorb.
func TestAbsorbCheckAfterTheLeaseEnds(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.PublishOnly(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	once(x, x.Auditor("a", auditor.Config{}))
	if row, err := x.DB.Chain(t.Context(), x.Chain); err != nil || row.AbsorbedEnd != 2 {
		t.Fatalf("absorbed_end %d under a living lease (%v)", row.AbsorbedEnd, err)
	}
	x.Clock.Advance(audittest.OwnerLease + time.Second)
	sum := once(x, x.Auditor("a", auditor.Config{}))
	if sum.Duties[string(catalog.DutyAbsorbCheck)].Outcomes["absorbed"] != 1 {
		t.Fatalf("%+v", sum.Duties)
	}
	x.RunDry()
	x.MustBeClean()
}

// A bucket of the set that missed a slot gets its copy, and the auditor says so.
func TestAbsorbCheckMakesCopies(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	second := memstore.New(memstore.Options{Clock: x.Clock.Now})
	a, err := auditor.New(auditor.Deps{
		ID: "a", Catalog: x.DB, Classes: objstore.Classes{string(segment.ClassStandard): {x.Store, x.Open(second)}},
		Settler: x.Settler(x.Store, x.DB), Logger: audittest.Logger(), Clock: x.Clock.Now, Wait: x.Clock.Wait,
	}, auditor.Config{Concurrency: 1, Duties: []string{string(catalog.DutyAbsorbCheck)}})
	x.Must(err)
	if sum := once(x, a); sum.Duties[string(catalog.DutyAbsorbCheck)].Outcomes["copies made"] != 1 || len(second.Keys()) != 1 {
		t.Fatalf("%v in the second bucket: %+v", second.Keys(), sum.Duties)
	}
	x.RunDry()
	x.MustBeClean()
}

// Run keeps every duty going until its ctx ends, and leaves no goroutine behind.
func TestRunWorksUntilItsContextEnds(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) }) // after the tier's own cleanup
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	a, err := auditor.New(auditor.Deps{
		ID: "run", Catalog: x.DB, Classes: x.Classes, Settler: x.Settler(x.Store, x.DB), Logger: audittest.Logger(), Clock: x.Clock.Now,
		Wait: x.Clock.Wait,
	}, auditor.Config{})
	x.Must(err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for len(x.Slots()) > 0 {
		select {
		case err := <-done:
			t.Fatalf("Run ended by itself: %v", err)
		default:
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	x.RunDry()
	x.MustBeClean()
}

func TestRunRefusesADryRun(t *testing.T) {
	x := newTier(t)
	if err := x.Auditor("a", auditor.Config{DryRun: true}).Run(t.Context()); err == nil {
		t.Fatal("accepted")
	}
}

func TestNewRefusesMissingDeps(t *testing.T) {
	if _, err := auditor.New(auditor.Deps{}, auditor.Config{}); err == nil {
		t.Error("empty Deps were accepted")
	}
}

func TestSweepWholeAuditorEveryCallFails(t *testing.T) {
	if testing.Short() {
		t.Skip("two hundred tiers")
	}
	audittest.SweepMixed(t, audittest.AllForms(), func(t *testing.T, f *audittest.Faults) {
		x := newTier(t)
		x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400}, audittest.Write{Stream: "t", Rows: 1, Size: 8})
		f.Start()
		a := x.AuditorOn("faulty", auditor.Config{}, f.Store(x), f.Catalog(x))
		_, err := a.Once(x.Ctx(), auditor.OnceOptions{Linger: 3 * audittest.ReadGrace})
		if f.Hit() == "" {
			x.Must(err)
		}
		f.Heal()
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
	})
}

package auditor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

func interest(change func(*catalog.Retention)) catalog.Retention {
	r := catalog.Retention{Mode: catalog.RetentionInterest, MinSegments: 1}
	if change != nil {
		change(&r)
	}
	return r
}

// tenRows is a policy that leaves ten rows behind.
var tenRows = interest(func(r *catalog.Retention) { r.Rows = 10 })

func slots(x *audittest.Tier, n int) {
	x.T.Helper()
	for range n {
		x.Slot(audittest.Write{Stream: "s", Rows: 10, Size: 400})
	}
}

func watermark(x *audittest.Tier) segment.Seq {
	x.T.Helper()
	row, err := x.DB.Chain(x.Ctx(), x.Chain)
	x.Must(err)
	return row.WatermarkSeq
}

// A chain whose lease has ended is retained by the auditor; a living owner's is not.
func TestRetentionOfAChainWithoutAnOwner(t *testing.T) {
	x := newTier(t)
	x.Policy(tenRows)
	slots(x, 4)
	once(x, x.Auditor("a", auditor.Config{}))
	if w := watermark(x); w != 0 {
		t.Fatalf("watermark %d: its owner lives", w)
	}
	x.Release()
	sum := once(x, x.Auditor("a", auditor.Config{}))
	d := sum.Duties[string(catalog.DutyReclaim)]
	if w := watermark(x); w != 30 || d.Outcomes["watermarks raised"] != 1 || d.Outcomes["done"] != 1 || d.LastSuccess.IsZero() {
		t.Fatalf("watermark %d, %+v", w, d)
	}
	x.RunDry()
	x.MustBeClean()
	p, err := x.DB.Plan(x.Ctx(), catalog.PlanRequest{Stream: "s"})
	x.Must(err)
	if p.LiveFrom.Seq != 31 || len(x.Slots()) != 0 {
		t.Errorf("%+v, slots %v", p, x.Slots())
	}
}

// Without a policy, and with one that keeps, nothing is even looked at.
func TestRetentionKeeps(t *testing.T) {
	x := newTier(t)
	slots(x, 4)
	x.Release()
	for _, r := range []catalog.Retention{{}, {Mode: catalog.RetentionKeep, Rows: 1}} {
		x.Policy(r)
		f := &audittest.Faults{}
		f.Start()
		once(x, x.AuditorOn("a", auditor.Config{Duties: []string{"reclaim"}}, f.Store(x), f.Catalog(x)))
		if w := watermark(x); w != 0 || slices.Contains(f.Calls(), "Chains") {
			t.Errorf("%+v: watermark %d by %v", r, w, f.Calls())
		}
	}
}

func TestRetentionIsPaced(t *testing.T) {
	x := newTier(t)
	x.Policy(tenRows)
	slots(x, 2)
	x.Release()
	a := x.Auditor("a", auditor.Config{RetentionEvery: time.Minute})
	once(x, a)
	slots(x, 1)
	x.Clock.Advance(59 * time.Second)
	if once(x, a); watermark(x) != 10 {
		t.Fatalf("watermark %d within a minute", watermark(x))
	}
	x.Clock.Advance(time.Second)
	if once(x, a); watermark(x) != 20 {
		t.Fatalf("watermark %d after a minute", watermark(x))
	}
}

// The consumers of a closed chain, and those that a removed owner left, hold it.
func TestRetentionHeldByConsumers(t *testing.T) {
	x := newTier(t)
	x.Policy(tenRows)
	x.Consumers = []segment.Consumer{{Name: "fast", Cursor: 40}, {Name: "slow", Cursor: 0}}
	slots(x, 4)
	x.Release()
	x.RunDry()
	if w := watermark(x); w != 0 {
		t.Fatalf("watermark %d: a consumer that acknowledged nothing holds it", w)
	}
	x.Fence(true)
	// Nobody owns it any more: its row takes the acknowledgements.
	for _, step := range []struct{ ack, want segment.Seq }{{9, 0}, {25, 20}, {40, 30}} {
		_, err := x.DB.AckClosed(x.Ctx(), x.Chain, "slow", step.ack)
		x.Must(err)
		x.RunDry()
		if w := watermark(x); w != step.want {
			t.Fatalf("acknowledged %d: watermark %d, want %d", step.ack, w, step.want)
		}
	}
	x.MustBeClean() // until the last acknowledgement slots waited for the consumer
}

// K25: an owner gone for good left a slot that nobody absorbed. The auditor alone
// absorbs, settles, reaps and retains it.
func TestK25OwnerGoneForGood(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *audittest.Tier{
		"settled": newTier,
		"plain":   func(t *testing.T) *audittest.Tier { return audittest.NewPlain(t, memstore.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t)
			x.Policy(interest(func(r *catalog.Retention) { r.Rows, r.Age = 10, 24*time.Hour }))
			slots(x, 2)
			x.PublishOnly(audittest.Write{Stream: "s", Rows: 10, Size: 400})
			x.PublishOnly(audittest.Write{Stream: "t", Rows: 10, Size: 400})
			x.RunDry()
			if row, err := x.DB.Chain(x.Ctx(), x.Chain); err != nil || row.AbsorbedEnd != 3 {
				t.Fatalf("%+v, %v: its owner lives", row, err)
			}
			x.Clock.Advance(audittest.OwnerLease)
			for range 3 { // a day or two, and some graces
				x.RunDry()
				x.Clock.Advance(25 * time.Hour)
			}
			x.MustBeClean()
			row, err := x.DB.Chain(x.Ctx(), x.Chain)
			x.Must(err)
			// The last slot alone is the floor, and the ten rows that are kept.
			if row.AbsorbedEnd != 5 || row.WatermarkSeq != 30 || row.WatermarkSegment != 3 {
				t.Errorf("%+v", row)
			}
			if n := len(x.Slots()) + len(x.Settled()); n != 1 {
				t.Errorf("slots %v, settled %v, want the last one's", x.Slots(), x.Settled())
			}
		})
	}
}

// An owner that comes in between is no error: it plans by itself.
func TestRetentionMeetsAnOwner(t *testing.T) {
	x := newTier(t)
	x.Policy(tenRows)
	slots(x, 4)
	x.Release()
	f := &audittest.Faults{}
	f.Hook = func(call string, after bool) {
		if call == "Slots" && after {
			row, err := x.DB.Chain(x.Ctx(), x.Chain)
			x.Must(err)
			_, err = x.DB.AcquireChain(x.Ctx(), catalog.Acquire{Chain: x.Chain, Owner: row.Owner, Lease: time.Hour, Expect: row.Term, Resume: true})
			x.Must(err)
		}
	}
	f.Start()
	once(x, x.AuditorOn("a", auditor.Config{Duties: []string{"reclaim"}}, f.Store(x), f.Catalog(x)))
	if w := watermark(x); w != 0 || !slices.Contains(f.Calls(), "RaiseWatermark") {
		t.Errorf("watermark %d, calls %v", w, f.Calls())
	}
}

// A fault of one chain's retention is told, tried again, and holds up no marker.
func TestRetentionFailureIsTold(t *testing.T) {
	x := newTier(t)
	x.Policy(tenRows)
	slots(x, 4)
	x.Raise(1)
	x.Release()
	f := &audittest.Faults{Pick: func(_ int, call string) audittest.Form {
		if call == "Slots" {
			return audittest.NotApplied
		}
		return audittest.Fine
	}}
	f.Start()
	a := x.AuditorOn("a", auditor.Config{Duties: []string{"reclaim"}}, f.Store(x), f.Catalog(x))
	sum, err := a.Once(x.Ctx(), auditor.OnceOptions{})
	if !errors.Is(err, catalog.ErrUnavailable) || sum.Duties["reclaim"].Outcomes["done"] != 1 {
		t.Fatalf("%v, %+v", err, sum.Duties["reclaim"])
	}
	f.Heal()
	if once(x, a); watermark(x) != 30 {
		t.Errorf("watermark %d: it was not tried again", watermark(x))
	}
}

func TestSweepRetentionEveryCallFails(t *testing.T) {
	audittest.SweepMixed(t, audittest.AllForms(), func(t *testing.T, f *audittest.Faults) {
		x := newTier(t)
		x.Policy(tenRows)
		slots(x, 2)
		x.RunDry()
		slots(x, 2)
		x.Release()
		f.Start()
		a := x.AuditorOn("a", auditor.Config{Duties: []string{"reclaim"}}, f.Store(x), f.Catalog(x))
		_, _ = a.Once(x.Ctx(), auditor.OnceOptions{}) // its fault is this test's
		f.Heal()
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
		if w := watermark(x); w != 30 {
			t.Fatalf("watermark %d", w)
		}
	})
}

// A dry run says what would be given up, and whose refs would go; nothing changes.
func TestDryRunOfRetention(t *testing.T) {
	x := newTier(t)
	x.Policy(tenRows)
	slots(x, 2)
	x.RunDry()
	slots(x, 2)
	x.Raise(2)
	x.Release()
	f := &audittest.Faults{}
	f.Start()
	sum := once(x, x.AuditorOn("dry", auditor.Config{DryRun: true}, f.Store(x), f.Catalog(x)))
	for _, c := range f.Calls() {
		if slices.Contains([]string{"RaiseWatermark", "ArmWatchers", "RetireRefs", "Arm", "Resolve", "TakeDue"}, c) || strings.HasPrefix(c, "store put") {
			t.Errorf("a dry run called %s", c)
		}
	}
	var told []string
	for _, l := range sum.DryRun {
		if strings.Contains(l.Reason, "rise from seq 20 to 30") || strings.Contains(l.Reason, "up to seq 20 are retired first") {
			told = append(told, l.Key)
		}
	}
	if len(told) != 2 || watermark(x) != 20 {
		t.Errorf("told of %q in %+v", told, sum.DryRun)
	}
	f.Heal()
	x.RunDry()
	x.MustBeClean()
}

// absorb-check asks the store nothing about a closed chain.
func TestClosedChainsNeedNoAbsorbCheck(t *testing.T) {
	x := newTier(t)
	slots(x, 1)
	x.Fence(true)
	x.Clock.Advance(2 * audittest.OwnerLease)
	f := &audittest.Faults{}
	f.Start()
	once(x, x.AuditorOn("a", auditor.Config{Duties: []string{"absorb-check"}}, f.Store(x), f.Catalog(x)))
	for _, c := range f.Calls() {
		if strings.HasPrefix(c, "store ") {
			t.Errorf("asked %s", c)
		}
	}
	f.Heal()
	x.RunDry()
	x.MustBeClean()
}

// Two auditors plan one chain: one raises, both are content.
func TestRetentionByTwo(t *testing.T) {
	x := newTier(t)
	x.Policy(tenRows)
	slots(x, 4)
	x.Release()
	other := x.Auditor("b", auditor.Config{Duties: []string{"reclaim"}})
	f, ran := &audittest.Faults{}, false
	f.Hook = func(call string, after bool) {
		if call == "RaiseWatermark" && !after && !ran {
			ran = true
			if _, err := other.Once(context.WithoutCancel(t.Context()), auditor.OnceOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	f.Start()
	once(x, x.AuditorOn("a", auditor.Config{Duties: []string{"reclaim"}}, f.Store(x), f.Catalog(x)))
	if w := watermark(x); w != 30 || !ran {
		t.Errorf("watermark %d", w)
	}
}

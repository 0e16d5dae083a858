package auditor_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// hiding is the bucket without the objects that gone names, for some calls.
func hiding(x *audittest.Tier, gone func(c faultstore.Call) bool) (*objstore.Store, *faultstore.Driver) {
	d := faultstore.Wrap(x.Mem, func(c faultstore.Call) faultstore.Fault {
		if (c.Op == objstore.OpGet || c.Op == objstore.OpHead) && gone(c) {
			return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrNotFound}
		}
		return faultstore.Fault{}
	})
	return x.Open(d), d
}

// passes lets an auditor meet a missing object again and again.
func passes(x *audittest.Tier, a *auditor.Auditor) (failed int) {
	for range 5 {
		if _, err := a.Once(x.Ctx(), auditor.OnceOptions{}); err != nil {
			failed++
		}
		x.Clock.Advance(time.Hour)
	}
	return failed
}

// TestK29MissingObjectOfARefIsToldOnce: whichever duty meets it, an object that is gone
// above live_from is an alarm of its own, once per key, with the rows and what to do.
func TestK29MissingObjectOfARefIsToldOnce(t *testing.T) {
	for duty, prepare := range map[catalog.Duty]func(x *audittest.Tier) string{
		catalog.DutyReapCheck: func(x *audittest.Tier) string {
			x.RunDry()
			key := segment.StreamKey("s", 1, 1, 0)
			x.Must(x.DB.Arm(x.Ctx(), catalog.DutyReapCheck, key, segment.ClassStandard, 0))
			return key
		},
		catalog.DutySettle: func(x *audittest.Tier) string { return segment.SlotKey(x.Chain, 1) },
		catalog.DutyTailFill: func(x *audittest.Tier) string {
			x.Policies()
			x.SettleAll()
			x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
			x.SettleAll()
			return segment.StreamKey("s", 1, 1, 0)
		},
	} {
		t.Run(string(duty), func(t *testing.T) {
			x := newTier(t)
			x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
			key := prepare(x)
			store, driver := hiding(x, func(c faultstore.Call) bool { return c.Key == key })
			a := x.AuditorOn("a", auditor.Config{}, store, x.DB)
			if failed := passes(x, a); failed != 5 || driver.Hits() < 5 {
				t.Fatalf("%d passes failed, %d looks at nothing", failed, driver.Hits())
			}
			rows := x.Audited("lost")
			if len(rows) != 1 || rows[0].Subject != key {
				t.Fatalf("told %d times: %+v", len(rows), rows)
			}
			for _, want := range []string{`stream "s"`, "accept-loss '" + key + "' 's'"} {
				if !strings.Contains(rows[0].Detail, want) {
					t.Errorf("%q does not say %q", rows[0].Detail, want)
				}
			}
			if n := a.Summary().Duties[string(duty)].Outcomes["lost objects told"]; n != 1 {
				t.Errorf("counted %d times", n)
			}
			if n := a.Summary().Lost; n != 1 {
				t.Errorf("%d are lost, want 1", n)
			}
			x.RunDry() // it is back
			x.MustBeClean()
		})
	}
}

// TestLossEnds: an object that is back, or whose rows were given up, is lost no more; one that
// nobody could look at is.
func TestLossEnds(t *testing.T) {
	for name, end := range map[string]func(x *audittest.Tier, back func()){
		"back":     func(_ *audittest.Tier, back func()) { back() },
		"given up": func(x *audittest.Tier, _ func()) { drop(x, "s") },
	} {
		t.Run(name, func(t *testing.T) {
			x := newTier(t)
			x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
			x.RunDry()
			key := segment.StreamKey("s", 1, 1, 0)
			x.Must(x.DB.Arm(x.Ctx(), catalog.DutyReapCheck, key, segment.ClassStandard, 0))
			cause := objstore.ErrNotFound
			d := faultstore.Wrap(x.Mem, func(c faultstore.Call) faultstore.Fault { // cause changes between runs only
				if cause == nil || c.Key != key || c.Op != objstore.OpGet && c.Op != objstore.OpHead {
					return faultstore.Fault{}
				}
				return faultstore.Fault{Kind: faultstore.NotApplied, Err: cause}
			})
			a := x.AuditorOn("a", auditor.Config{}, x.Open(d), x.DB)
			lost := func(when string, want int) {
				t.Helper()
				sum, _ := a.Once(x.Ctx(), auditor.OnceOptions{}) // the marker's failure stands
				if sum.Lost != want {
					t.Fatalf("%s: %d objects are lost, want %d", when, sum.Lost, want)
				}
				x.Clock.Advance(time.Hour)
			}
			lost("met", 1)
			cause = objstore.ErrDenied
			lost("nobody can look", 1)
			cause = objstore.ErrNotFound
			lost("it is still gone", 1)
			end(x, func() { cause = nil })
			lost(name, 0)
			if d.Hits() == 0 {
				t.Fatal("no look met a fault")
			}
			x.RunDry()
			x.MustBeClean()
		})
	}
}

// TestLossEndsWhileItRuns: Run looks again, too.
func TestLossEndsWhileItRuns(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.RunDry()
	key := segment.StreamKey("s", 1, 1, 0)
	x.Must(x.DB.Arm(x.Ctx(), catalog.DutyReapCheck, key, segment.ClassStandard, 0))
	var back atomic.Bool
	store, driver := hiding(x, func(c faultstore.Call) bool { return c.Key == key && !back.Load() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var a *auditor.Auditor
	var ended atomic.Bool
	a, err := auditor.New(auditor.Deps{
		ID: "run", Catalog: x.DB, Classes: objstore.Classes{string(segment.ClassStandard): {store}}, Settler: x.Settler(store, x.DB), Logger: audittest.Logger(), Clock: x.Clock.Now,
		Wait: func(ctx context.Context, d time.Duration) error {
			switch lost := a.Summary().Lost; {
			case lost > 0:
				back.Store(true)
			case back.Load():
				ended.Store(true)
				cancel()
			}
			return x.Clock.Wait(ctx, d)
		},
	}, auditor.Config{})
	x.Must(err)
	x.Must(a.Run(ctx))
	if !ended.Load() || driver.Hits() == 0 {
		t.Errorf("met %d times, back %v: %d are lost still", driver.Hits(), back.Load(), a.Summary().Lost)
	}
	x.RunDry()
	x.MustBeClean()
}

// TestNoAlarmOnARolledBackCatalog: what it names may have been rewritten since. Nobody is
// told to give up rows that another object has.
func TestNoAlarmOnARolledBackCatalog(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.RunDry()
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
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	key := segment.SlotKey(x.Chain, 2)
	store, driver := hiding(x, func(c faultstore.Call) bool { return c.Key == key })
	if failed := passes(x, x.AuditorOn("a", auditor.Config{}, store, x.DB)); failed != 5 || driver.Hits() == 0 {
		t.Fatalf("%d passes failed, %d looks at nothing", failed, driver.Hits())
	}
	if rows := x.Audited("lost"); len(rows) != 0 {
		t.Fatalf("told of a loss: %+v", rows)
	}
	_, err = x.Store.PutIfMatch(t.Context(), headKey, body, info.ETag) // the newer catalog is back
	x.Must(err)
	x.RunDry()
	x.MustBeClean()
}

// TestNoAlarmOverWhatIsThere: an object that a second look finds was never lost.
func TestNoAlarmOverWhatIsThere(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.RunDry()
	key := segment.StreamKey("s", 1, 1, 0)
	store, driver := hiding(x, func(c faultstore.Call) bool { return c.Key == key && c.Op == objstore.OpGet })
	x.Must(x.DB.Arm(x.Ctx(), catalog.DutyReapCheck, key, segment.ClassStandard, 0))
	if failed := passes(x, x.AuditorOn("a", auditor.Config{}, store, x.DB)); failed != 5 || driver.Hits() == 0 {
		t.Fatalf("%d passes failed, %d looks", failed, driver.Hits())
	}
	if rows := x.Audited("lost"); len(rows) != 0 {
		t.Fatalf("an alarm over nothing: %+v", rows)
	}
	x.RunDry()
	x.MustBeClean()
}

// TestNoAlarmOverWhatIsTrimmed: gone below live_from is what a trim does. The settle that
// met it had planned before.
func TestNoAlarmOverWhatIsTrimmed(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	key := segment.SlotKey(x.Chain, 1)
	trimmed := false
	store, driver := hiding(x, func(c faultstore.Call) bool {
		if c.Key != key {
			return false
		}
		if !trimmed {
			trimmed = true
			drop(x, "s")
		}
		return true
	})
	a := x.AuditorOn("a", auditor.Config{Duties: []string{string(catalog.DutySettle)}}, store, x.DB)
	if _, err := a.Once(x.Ctx(), auditor.OnceOptions{}); err == nil || driver.Hits() == 0 {
		t.Fatalf("%v after %d looks: the settle did not meet it", err, driver.Hits())
	}
	if rows := x.Audited("lost"); len(rows) != 0 {
		t.Fatalf("an alarm over nothing: %+v", rows)
	}
	x.RunDry()
	x.MustBeClean()
}

package auditor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
)

// watcher is what telemetry hangs around the passes.
type watcher struct{ passes map[string]int }

func (w *watcher) around(ctx context.Context, duty string, run func(context.Context) (int, error)) (int, error) {
	w.passes[duty]++
	return run(ctx)
}

// TestWatched: known garbage from the condemn to the delete, its slots and its objects; who
// lives; what is owed; and every pass goes through Around.
func TestWatched(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	w := &watcher{passes: map[string]int{}}
	a, err := auditor.New(auditor.Deps{
		ID: "a", Catalog: x.DB, Classes: x.Classes, Settler: x.Settler(x.Store, x.DB), Logger: audittest.Logger(),
		Clock: x.Clock.Now, Wait: x.Clock.Wait, Around: w.around,
	}, auditor.Config{Concurrency: 1})
	x.Must(err)
	once(x, a)
	x.Clock.Advance(audittest.ReadGrace)
	sum := once(x, a) // condemns the slot
	if sum.Garbage[auditor.GarbageGrace] == 0 || sum.Auditors != 1 || sum.Duties[string(catalog.DutyTrimCheck)].Standing != 1 {
		t.Errorf("a condemned slot: garbage %v, %d auditors, %+v", sum.Garbage, sum.Auditors, sum.Duties[string(catalog.DutyTrimCheck)])
	}
	x.Clock.Advance(audittest.ReadGrace)
	if sum = once(x, a); sum.Garbage[auditor.GarbageGrace] != 0 || len(x.Slots()) != 0 {
		t.Errorf("the slot is gone: garbage %v", sum.Garbage)
	}
	drop(x, "s")
	for range 2 {
		once(x, a)
		x.Clock.Advance(audittest.ReadGrace)
	}
	if sum = a.Summary(); sum.Garbage[auditor.GarbageGrace] == 0 {
		t.Errorf("a confirmed object: garbage %v", sum.Garbage)
	}
	if sum = once(x, a); sum.Garbage[auditor.GarbageGrace] != 0 || len(x.Settled()) != 0 {
		t.Errorf("the object is gone: garbage %v, %v", sum.Garbage, x.Settled())
	}
	for _, d := range []catalog.Duty{catalog.DutySettle, catalog.DutyTrimCheck, catalog.DutyReapCheck} {
		if w.passes[string(d)] == 0 {
			t.Errorf("no pass of %s went through Around: %v", d, w.passes)
		}
	}
	x.RunDry()
	x.MustBeClean()
}

// TestHolds: each reason for which deletes are held has its word, and ends.
func TestHolds(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	other := newTier(t)
	other.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	other.RunDry()
	wrong := x.AuditorOn("wrong", auditor.Config{}, other.Store, x.DB)
	sum, err := wrong.Once(x.Ctx(), auditor.OnceOptions{})
	if !errors.Is(err, auditor.ErrNotOurs) || !slices.Equal(sum.Holds, []string{auditor.HoldNotOurs}) {
		t.Errorf("another's bucket: %v, %v", sum.Holds, err)
	}
	process := audittest.NewClock()
	a, err := auditor.New(auditor.Deps{
		ID: "a", Catalog: x.DB, Classes: x.Classes, Settler: x.Settler(x.Store, x.DB), Logger: audittest.Logger(),
		Clock: process.Now, Wait: process.Wait,
	}, auditor.Config{})
	x.Must(err)
	if sum := once(x, a); len(sum.Holds) != 0 {
		t.Errorf("nothing is wrong: %v", sum.Holds)
	}
	x.Clock.Advance(2 * audittest.ReadGrace)
	if sum := once(x, a); !slices.Equal(sum.Holds, []string{auditor.HoldClock}) {
		t.Errorf("a clock stepped: %v", sum.Holds)
	}
	x.Clock.Advance(audittest.ReadGrace + time.Second)
	process.Advance(audittest.ReadGrace + time.Second)
	if sum := once(x, a); len(sum.Holds) != 0 {
		t.Errorf("the grace is over: %v", sum.Holds)
	}
	x.RunDry()
	x.MustBeClean()
}

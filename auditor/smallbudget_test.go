package auditor_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/settle"
)

// TestSmallBudgetMakesSmallBatches, not jobs that give up: what stands takes longer than a
// job may, and is moved all the same, at the budget's pace.
func TestSmallBudgetMakesSmallBatches(t *testing.T) {
	const (
		slots  = 30
		size   = 20 * 400 // of a slot, and a little
		budget = 180      // bytes a second
	)
	x := newTier(t)
	for range slots {
		x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	}
	if 2*slots*size/budget < int(audittest.OrphanGrace/2/time.Second) {
		t.Fatal("one batch would be done in time")
	}
	cfg := auditor.Config{Concurrency: 1, Duties: []string{string(catalog.DutySettle)}}
	b, err := auditor.NewBudget(auditor.BudgetDeps{
		ID: "a", Catalog: x.DB, Clock: x.Clock.Now, Wait: x.Clock.Wait, Movers: cfg.Movers(),
	}, auditor.Limits{Bytes: budget})
	x.Must(err)
	// The budget's waits move this clock by minutes at once, beside a batch whose heartbeat
	// goes by the real one: its lease is not to run out between two of its steps.
	settling := x.Settling
	settling.Lease = 24 * time.Hour
	s, err := settle.New(settle.Deps{
		Catalog: x.DB, Classes: x.Classes, Clock: x.Clock.Now, Logger: audittest.Logger(), NewNonce: uuid.NewString, NewUUID: uuid.New, Budget: b,
	}, settling)
	x.Must(err)
	a, err := auditor.New(auditor.Deps{
		ID: "a", Catalog: x.DB, Classes: x.Classes, Settler: s, Budget: b, Logger: audittest.Logger(), Clock: x.Clock.Now, Wait: x.Clock.Wait,
	}, cfg)
	x.Must(err)
	began := x.Clock.Now()
	sum := once(x, a).Duties[string(catalog.DutySettle)]
	if sum.Failed != 0 || sum.Outcomes["slots resolved"] != slots || sum.Outcomes["batch"] < 8 {
		t.Fatalf("%+v", sum)
	}
	took, least := x.Clock.Now().Sub(began), time.Duration(2*slots*size/budget)*time.Second
	if took < least || took > 2*least {
		t.Errorf("it took %v, want the budget's %v and a little", took, least)
	}
	if got := a.Summary().Budget; got == nil || got.WaitedSeconds == 0 || got.Auditors != 1 {
		t.Errorf("%+v", got)
	}
	x.RunDry()
	x.MustBeClean()
}

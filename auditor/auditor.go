package auditor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// Settler settles one batch of a chain; *settle.Settler is one.
type Settler interface {
	RunOnce(ctx context.Context, chain segment.Chain, owner string) (settle.Report, error)
	// RunMarker serves a marker of gc, tail-fill or pack-merge.
	RunMarker(ctx context.Context, m catalog.Marker, owner string) (settle.Report, error)
	// Explain says what RunMarker would do now, or why nothing. It changes nothing.
	Explain(ctx context.Context, m catalog.Marker) (string, error)
}

// Deps are what an auditor works with; none has a default but Budget, Around and Wait.
type Deps struct {
	ID      string // of this process, in leases; never that of another
	Catalog catalog.Catalog
	Classes objstore.Classes
	Settler Settler
	Logger  *slog.Logger
	// Budget is the one that Settler spends from; nil: no bound.
	Budget *Budget
	Clock  func() time.Time // the process's, with its monotonic reading (time.Now)
	// Around runs a duty's pass by run, once: for those who time and trace it. It gives
	// back what run gave. nil: run alone.
	Around func(ctx context.Context, duty string, run func(context.Context) (worked int, err error)) (int, error)
	// Wait returns when d has passed by Clock, or early, with its error, when ctx
	// ends. Default: a timer.
	Wait func(ctx context.Context, d time.Duration) error
}

// Auditor runs the duties. Run and Once may not overlap in one value.
type Auditor struct {
	Deps
	cfg    Config
	duties []duty
	ledger *ledger
	guard  *guard
	gate   *gate
	del    *orphan.Deleter

	absorber absorb.Checker
	trimmer  *reap.Trimmer
	reaper   *reap.Reaper
	walker   *reap.Walker
	reclaim  *reap.Reclaimer
	judge    *orphan.Judge
	sweeper  *orphan.Sweeper

	mu       sync.Mutex // failures, chains, ensured, looked, retained, met, told
	failures map[string]error
	chains   map[segment.Chain]pause
	ensured  time.Time
	looked   time.Time // of the absorb-check
	retained time.Time // of the retention
	met      map[catalog.MarkerRef]int
	told     map[string]bool // keys, and what else was told of; true: an object that is lost
}

// pause is a chain whose settle failed: it is left alone until then.
type pause struct {
	fails int
	until time.Time
}

// New checks and wires all duties.
func New(d Deps, cfg Config) (*Auditor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if d.ID == "" || d.Catalog == nil || d.Settler == nil || d.Logger == nil || d.Clock == nil || len(d.Classes) == 0 {
		return nil, errors.New("auditor: Deps has an empty field: give all but Budget and Wait")
	}
	if d.Budget != nil && d.Budget.deps.ID != d.ID {
		return nil, fmt.Errorf("auditor: the budget is that of auditor %q, not of %q: give each its own", d.Budget.deps.ID, d.ID)
	}
	if d.Wait == nil {
		d.Wait = wait
	}
	cfg = cfg.withDefaults()
	guard := &guard{cat: d.Catalog, classes: d.Classes, clock: d.Clock, log: d.Logger}
	gate := newGate(d.Catalog, d.Classes, d.Clock)
	d.Catalog = gated{d.Catalog, gate.through}
	var a *Auditor
	del := orphan.NewDeleter(d.Classes).Asking(gate.through, func(ctx context.Context) error { return a.still(ctx) })
	if cfg.DryRun {
		del = orphan.NewDryRun(d.Classes)
	}
	a = &Auditor{
		Deps: d, cfg: cfg, ledger: newLedger(), del: del,
		guard: guard, gate: gate,
		absorber: absorb.Checker{Catalog: d.Catalog, Classes: d.Classes},
		trimmer:  reap.NewTrimmer(d.Catalog, d.Classes, del, cfg.ConsumerHoldMax),
		reaper:   reap.New(d.Catalog, d.Classes, del, cfg.GCLeast),
		walker:   reap.NewWalker(d.Catalog, d.Classes, del),
		reclaim:  reap.NewReclaimer(d.Catalog, d.Classes, del),
		judge:    orphan.NewJudge(d.Catalog, d.Classes, del),
		sweeper:  orphan.NewSweeper(d.Catalog, d.Classes, del, cfg.Sweep),
		failures: map[string]error{}, chains: map[segment.Chain]pause{}, met: map[catalog.MarkerRef]int{}, told: map[string]bool{},
	}
	if !cfg.DryRun { // it tells of it in the catalog
		gate.note = a.noteHeads
	}
	a.duties = a.wire()
	return a, nil
}

// Summary is what was done so far.
func (a *Auditor) Summary() Summary {
	s := a.ledger.snapshot(a.Clock(), 2*a.cfg.BackoffMax)
	s.DryRun = a.del.Lines()
	s.Lost = len(a.lostKeys())
	s.Budget = a.Budget.summary()
	return s
}

// register renews the auditor's lease, by which budgets are shared. Safety does not
// rest on it.
func (a *Auditor) register(ctx context.Context) error {
	register := func(ctx context.Context) (int, error) { return a.Catalog.RegisterAuditor(ctx, a.ID, a.cfg.Lease) }
	if a.Budget != nil {
		register = a.Budget.Register
	}
	live, err := register(ctx)
	if err == nil {
		a.ledger.auditors(live)
	}
	return err
}

// wait is the timer behind Deps.Wait.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// duty is one kind of work. run does what is due now, once, and says how many
// items it got done.
type duty struct {
	name    catalog.Duty
	deletes bool // objects: the guard is asked before
	run     func(ctx context.Context) (worked int, err error)
}

// wire lists the duties in the order of the data's way.
func (a *Auditor) wire() []duty {
	all := []duty{
		{catalog.DutyAbsorbCheck, false, a.runAbsorb},
		{catalog.DutySettle, false, a.runSettle},
		{catalog.DutyPackMerge, false, a.runRewrites(catalog.DutyPackMerge)},
		{catalog.DutyTailFill, false, a.runRewrites(catalog.DutyTailFill)},
		{catalog.DutyGC, false, a.runRewrites(catalog.DutyGC)},
		{catalog.DutyTeardown, false, a.runTeardown},
		{catalog.DutyReclaim, false, a.runReclaim},
		{catalog.DutyTrimCheck, true, a.runTrim},
		{catalog.DutyReapCheck, true, a.runReap},
		{catalog.DutyOrphan, true, a.runOrphan},
		{catalog.DutySweep, true, a.runSweep},
	}
	if len(a.cfg.Duties) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(d duty) bool { return !slices.Contains(a.cfg.Duties, string(d.name)) })
}

// DutyNames are those of all duties, in the order of the data's way.
func DutyNames() []string { return dutyNames() }

func dutyNames() []string {
	return []string{
		string(catalog.DutyAbsorbCheck), string(catalog.DutySettle), string(catalog.DutyPackMerge), string(catalog.DutyTailFill),
		string(catalog.DutyGC), string(catalog.DutyTeardown), string(catalog.DutyReclaim),
		string(catalog.DutyTrimCheck), string(catalog.DutyReapCheck), string(catalog.DutyOrphan), string(catalog.DutySweep),
	}
}

func known(duty string) bool { return slices.Contains(dutyNames(), duty) }

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/settings"
	"github.com/strandline/strandline/probe"
	"github.com/strandline/strandline/settle"
)

// auditorFlags are the knobs of the duties.
type auditorFlags struct {
	readGrace   time.Duration
	orphanGrace time.Duration
	settleAge   time.Duration
	settleBytes sizeFlag
	budgetBytes sizeFlag
	budgetReqs  int64
	gcLeast     sizeFlag
	tailTarget  sizeFlag
	objectMin   sizeFlag
	packFan     int
	settleLease time.Duration
	config      auditor.Config
	room        *rewriteRoom // nil: no disk is looked at
	given       func(name string) bool
}

func (f *auditorFlags) register(fs *pflag.FlagSet) {
	f.settleBytes, f.gcLeast, f.tailTarget, f.objectMin = settle.DefaultSettleBytes, probe.DefaultGCLeast, settle.DefaultTailTarget, settle.DefaultStreamObjectMin
	fs.DurationVar(&f.readGrace, "auditor-read-grace", catalog.DefaultReadGrace, "no delete comes sooner after a death; only seeds the catalog's setting")
	fs.DurationVar(&f.orphanGrace, "auditor-orphan-grace", catalog.DefaultOrphanGrace, "age at which an intent is judged; only seeds the catalog's setting")
	fs.DurationVar(&f.settleAge, "settle-age", settle.DefaultSettleAge, "settle a chain when its oldest slot is this old")
	fs.Var(&f.settleBytes, "settle-bytes", "or when so many bytes of slots stand")
	fs.Var(&f.budgetBytes, "budget-bytes", "bytes a second that all auditors together move through their processes, shared by their number; 0: no bound")
	fs.Int64Var(&f.budgetReqs, "budget-requests", 0, "requests a second that all auditors together spend on moving; 0: no bound")
	fs.Var(&f.objectMin, "stream-object-min", "a stream with so many bytes in a batch gets an object of its own, smaller ones share a pack")
	fs.IntVar(&f.packFan, "pack-merge-fan", settle.DefaultPackFan, "so many packs of one generation are merged into one of the next")
	fs.Var(&f.tailTarget, "tail-fill-target", "a stream's last object is filled up to this size")
	fs.Var(&f.gcLeast, "gc-least", "rewrite an object when so many bytes of it, and half of it, are dead")
	fs.DurationVar(&f.config.Lease, "auditor-lease", auditor.DefaultLease, "how long an auditor that was lost keeps its markers, and its share of the budgets; the same for all")
	fs.DurationVar(&f.settleLease, "settle-lease", settle.DefaultLease, "how long a mover that was lost keeps its chain or marker")
	f.given = fs.Changed
}

// leastBudget keeps a batch above a megabyte with usual margins; what a job needs at least
// is asked of settings.Margins.
const leastBudget = 1 << 20

// maxLease bounds how long a lost auditor's work is left alone.
const maxLease = time.Hour

// validate joins every fault.
func (f *auditorFlags) validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(f.settleAge < 0, "--settle-age %v: give 0 or more", f.settleAge)
	refuse(f.budgetReqs < 0, "--budget-requests %d: give 1 or more, or 0 for no bound", f.budgetReqs)
	for _, l := range []struct {
		name string
		d    time.Duration
	}{{"auditor-lease", f.config.Lease}, {"settle-lease", f.settleLease}} {
		refuse(l.d < time.Second || l.d > maxLease, "--%s %v: give 1s to 1h", l.name, l.d)
	}
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"gc-least", int64(f.gcLeast)},
		{"tail-fill-target", int64(f.tailTarget)},
		{"stream-object-min", int64(f.objectMin)},
		{"pack-merge-fan", int64(f.packFan)},
	} {
		refuse(n.n <= 0, "--%s %d: give 1 or more", n.name, n.n) // the packages' word for their defaults
	}
	refuse(f.budgetBytes != 0 && f.budgetBytes < leastBudget, "--budget-bytes %v: give 1MiB or more, or 0 for no bound", &f.budgetBytes)
	errs = append(errs, settings.Margins{ReadGrace: f.readGrace, OrphanGrace: f.orphanGrace}.Validate())
	f.config.GCLeast = int64(f.gcLeast)
	return errors.Join(append(errs, f.settling().Validate(), f.config.Validate())...)
}

// affords says so if jobs cannot live on the budget within the orphan grace that is in force,
// which a flag only seeds. It is no refusal: slots that are sealed young are smaller.
func (f *auditorFlags) affords(ctx context.Context, cat catalog.Deployment, log *slog.Logger) error {
	s, err := cat.Settings(ctx)
	if err != nil {
		return err
	}
	now, err := cat.Now(ctx)
	if err != nil {
		return err
	}
	m := settings.Margins{
		ReadGrace:   s.ReadGrace.Deleting(now, catalog.DefaultReadGrace),
		OrphanGrace: s.OrphanGrace.Reading(now, catalog.DefaultOrphanGrace), // as jobs take it
	}
	if err := m.CheckBudget(int64(f.budgetBytes)); err != nil {
		log.Warn("jobs that move full slots will give up", "error", err)
	}
	return nil
}

func (f *auditorFlags) settling() settle.Config {
	c := settle.Config{
		SettleAge: f.settleAge, SettleBytes: int64(f.settleBytes), StreamObjectMin: int64(f.objectMin),
		TailTarget: int64(f.tailTarget), PackFan: f.packFan, Lease: f.settleLease,
	}
	if c.SettleAge == 0 {
		c.SettleAge = -1 // the package's word for "at once"
	}
	return c
}

// seed sets the margins that nobody has set yet, if they were given. Flags only
// seed: what is in force is the catalog's.
func (f *auditorFlags) seed(ctx context.Context, cat catalog.Deployment, log *slog.Logger) error {
	for _, m := range []struct {
		flag string
		want time.Duration
		set  func(context.Context, time.Duration) (catalog.Margin, error)
	}{
		{"auditor-read-grace", f.readGrace, cat.SeedReadGrace},
		{"auditor-orphan-grace", f.orphanGrace, cat.SeedOrphanGrace},
	} {
		if !f.given(m.flag) {
			continue
		}
		have, err := m.set(ctx, m.want)
		if err != nil {
			return fmt.Errorf("--%s: %w", m.flag, err)
		}
		if have.Value != m.want {
			log.Warn("the catalog's setting stands, the flag only seeds it", "flag", m.flag, "given", m.want, "stands", have.Value)
		}
	}
	return nil
}

// build wires the duties.
func (f *auditorFlags) build(t *tier, log *slog.Logger) (*auditor.Auditor, error) {
	id := uuid.NewString()
	budget, err := auditor.NewBudget(auditor.BudgetDeps{
		ID: id, Catalog: t.catalog, Clock: time.Now, Lease: f.config.Lease, Movers: f.config.Movers(),
	}, auditor.Limits{Bytes: int64(f.budgetBytes), Requests: f.budgetReqs})
	if err != nil {
		return nil, err
	}
	settler, err := settle.New(settle.Deps{
		Catalog: t.catalog, Classes: t.classes, Clock: time.Now, Logger: log,
		NewNonce: uuid.NewString, NewUUID: newUUID, Budget: budget, Trace: t.watch.Jobs(),
	}, f.settling())
	if err != nil {
		return nil, err
	}
	deps := auditor.Deps{
		ID: id, Catalog: t.catalog, Classes: t.classes, Settler: settler, Budget: budget, Logger: log, Clock: time.Now,
	}
	if t.watch != nil {
		deps.Around = t.watch.Duty
	}
	if f.room != nil {
		deps.Around = f.room.around(deps.Around)
	}
	return auditor.New(deps, f.config)
}

package auditor

import (
	"context"
	"errors"
	"time"

	"github.com/strandline/strandline/catalog"
)

// dryRun tells what the duties that delete or rewrite objects would do with what is
// due, and why the rest stays. It takes no marker and changes nothing.
func (a *Auditor) dryRun(ctx context.Context) error {
	now, err := a.Catalog.Now(ctx)
	if err != nil {
		return err
	}
	if err := a.whole(ctx); err != nil {
		return err
	}
	var errs []error
	for _, d := range a.duties {
		switch d.name {
		case catalog.DutyPackMerge, catalog.DutyTailFill, catalog.DutyGC,
			catalog.DutyReclaim, catalog.DutyTrimCheck, catalog.DutyReapCheck, catalog.DutyOrphan, catalog.DutySweep:
			errs = append(errs, a.dryDuty(ctx, d.name, now))
		}
	}
	return errors.Join(errs...)
}

func (a *Auditor) dryDuty(ctx context.Context, d catalog.Duty, now time.Time) error {
	if d == catalog.DutyReclaim {
		if _, err := a.retain(ctx); err != nil {
			return err
		}
	}
	var due []catalog.Marker
	err := a.markersOf(ctx, d, func(m catalog.Marker) {
		switch {
		case m.Due.After(now) && (d == catalog.DutySweep || d == catalog.DutyReclaim): // watches no single object
		case m.Due.After(now):
			a.del.Stays(m.Class, m.ID, string(d)+" looks at it at "+m.Due.UTC().Format(time.RFC3339))
		case len(due) < a.cfg.Batch:
			due = append(due, m)
		default:
			a.del.Stays(m.Class, m.ID, string(d)+" looks at it in a later batch")
		}
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range due {
		errs = append(errs, a.dryStep(ctx, m))
	}
	return errors.Join(errs...)
}

// dryStep is the duty's step in its dry form: the deleter is a dry one.
func (a *Auditor) dryStep(ctx context.Context, m catalog.Marker) error {
	switch m.Duty {
	case catalog.DutyReclaim:
		return a.reclaimOne(ctx, m)
	case catalog.DutyTrimCheck:
		return a.trimOne(ctx, m)
	case catalog.DutyReapCheck:
		return a.dryReap(ctx, m)
	case catalog.DutyOrphan:
		return a.judgeOne(ctx, m)
	case catalog.DutySweep:
		return a.sweepOne(ctx, m)
	}
	return a.explainOne(ctx, m)
}

// explainOne is the dry run of rewriteOne. What is rewritten stays for a grace at least:
// its reap-check deletes it.
func (a *Auditor) explainOne(ctx context.Context, m catalog.Marker) error {
	why, err := a.Settler.Explain(ctx, m)
	if err == nil {
		a.del.Stays(m.Class, m.ID, string(m.Duty)+": "+why)
	}
	return err
}

func (a *Auditor) dryReap(ctx context.Context, m catalog.Marker) error {
	r := a.reaper.RunOnce(ctx, []catalog.Marker{m})[0]
	return r.Err
}

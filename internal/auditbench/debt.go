package auditbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// moreStanding is how many times as many objects stand around the same debt.
const moreStanding = 10

// debtor is a tier with standing objects, and its author.
type debtor struct {
	*tier
	a        *author
	auditor  *auditor.Auditor
	standing int
	debt     int
	paid     int // rounds
	all      []spent
}

// debtPart pays the same debt in two tiers by turns.
func (b *bench) debtPart(ctx context.Context, r *Report) error {
	few, many := newAuthor(time.Now), newAuthor(time.Now)
	return b.within(ctx, "debt-few", few, func(x *tier) error {
		return b.within(ctx, "debt-many", many, func(y *tier) error {
			return b.debts(ctx, r, []*debtor{
				{tier: x, a: few, standing: b.o.Standing, debt: b.o.Debt},
				{tier: y, a: many, standing: moreStanding * b.o.Standing, debt: b.o.Debt},
			})
		})
	})
}

func (b *bench) debts(ctx context.Context, r *Report, ds []*debtor) error {
	for _, d := range ds {
		if err := d.stand(ctx); err != nil {
			return err
		}
	}
	for round := range b.o.Rounds {
		for turn := range ds {
			d := ds[(turn+round)%len(ds)]
			b.step("debt among %d objects", d.standing)
			if err := d.pay(ctx); err != nil {
				return err
			}
		}
	}
	few, many := ds[0], ds[1]
	out := &Debt{NewStreams: b.o.Debt, DeadStreams: b.o.Debt, Few: few.sum(), Many: many.sum()}
	ratio := func(of func(spent) float64) float64 {
		rounds := make([]float64, len(few.all))
		for i := range rounds {
			rounds[i] = over(of(many.all[i]), of(few.all[i]))
		}
		return median(rounds, func(v float64) float64 { return v })
	}
	out.Ratios = DebtRatio{
		Requests: ratio(requestsOf), Verbs: ratio(verbsOf),
		Seconds: ratio(func(s spent) float64 { return s.seconds }), CPUSeconds: ratio(func(s spent) float64 { return s.cpuSeconds }),
	}
	r.Debt = out
	return nil
}

func requestsOf(s spent) float64 { return float64(s.requests.Total()) }
func verbsOf(s spent) float64    { return float64(s.verbs) }

// stand makes what stands, and what dies first, and pays for it.
func (d *debtor) stand(ctx context.Context) error {
	if err := d.objects(ctx, d.a, 0, d.standing+d.debt); err != nil {
		return err
	}
	settler, err := d.settler(settle.Config{StreamObjectMin: 1})
	if err != nil {
		return err
	}
	// All duties of the debt. The sweep and the absorb-check look at all that stands, daily
	// and twice a minute: that is their work. The trim-check runs beside: an auditor holds
	// the store's clock, which is not the moved one, against the catalog's.
	d.auditor, err = auditor.New(auditor.Deps{
		ID: uuid.NewString(), Catalog: d.cat, Classes: d.classes, Settler: settler, Logger: d.log, Clock: d.clock.now,
	}, auditor.Config{Duties: debtDuties()})
	if err != nil {
		return err
	}
	return d.duties(ctx)
}

func debtDuties() []string {
	return []string{
		string(catalog.DutySettle), string(catalog.DutyPackMerge), string(catalog.DutyTailFill), string(catalog.DutyGC),
		string(catalog.DutyTeardown), string(catalog.DutyReclaim), string(catalog.DutyReapCheck), string(catalog.DutyOrphan),
	}
}

// pay makes a debt, some streams to settle and as many objects to reap, and measures what
// the duties take for it.
func (d *debtor) pay(ctx context.Context) error {
	dead := d.standing + d.paid*d.debt
	d.paid++
	if err := d.kill(ctx, dead, dead+d.debt); err != nil {
		return err
	}
	var calls []call
	for i := range d.debt {
		calls = append(calls, call{stream: nameOf(dead + d.debt + i), rows: smallRows})
	}
	s, err := d.a.seal(calls)
	if err != nil {
		return err
	}
	if err := d.publish(ctx, s); err != nil {
		return err
	}
	took, err := d.measure(func() error { return d.duties(ctx) })
	if err != nil {
		return err
	}
	d.all = append(d.all, took)
	return d.settledUp(ctx)
}

// duties runs all of them through both graces: settled and torn down at once, confirmed
// and condemned a grace later, deleted after another.
func (d *debtor) duties(ctx context.Context) error {
	trimmer := reap.NewTrimmer(d.cat, d.classes, orphan.NewDeleter(d.classes), auditor.DefaultConsumerHoldMax)
	for phase := range 3 {
		if phase > 0 {
			d.clock.advance(readGrace)
		}
		if _, err := d.auditor.Once(ctx, auditor.OnceOptions{}); err != nil {
			return err
		}
		due, err := d.take(ctx, catalog.DutyTrimCheck)
		for _, m := range due {
			if err == nil {
				_, err = trimmer.RunOnce(ctx, m)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settledUp holds that the debt was paid: a run that did nothing would look fast.
func (d *debtor) settledUp(ctx context.Context) error {
	var errs []error
	for prefix, want := range map[string]int{segment.ObjPrefix: d.standing + d.debt, segment.SegPrefix: 0} {
		n := 0
		for _, err := range d.store.List(ctx, prefix, "") {
			if err != nil {
				return err
			}
			n++
		}
		if n != want {
			errs = append(errs, fmt.Errorf("%d objects under %s, want %d: the debt was not paid", n, prefix, want))
		}
	}
	return errors.Join(errs...)
}

func (d *debtor) sum() DebtPaid {
	p := DebtPaid{
		StandingObjects: d.standing, Requests: median(d.all, requestsOf), Verbs: median(d.all, verbsOf),
		Seconds:    median(d.all, func(s spent) float64 { return s.seconds }),
		CPUSeconds: median(d.all, func(s spent) float64 { return s.cpuSeconds }),
	}
	for _, s := range d.all {
		p.see(s)
	}
	return p
}

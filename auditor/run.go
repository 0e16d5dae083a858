package auditor

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
)

// Run runs every duty on its schedule until ctx ends, and returns nil then. Each
// duty has its own loop, so that a long one holds up no other; at most
// Config.Concurrency of them work at once.
func (a *Auditor) Run(ctx context.Context) error {
	if a.cfg.DryRun {
		return errors.New("auditor: a dry run has no schedule: use Once")
	}
	slots := make(chan struct{}, a.cfg.Concurrency)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { a.keepLease(ctx); return nil })
	for _, d := range a.duties {
		g.Go(func() error { a.loop(ctx, d, slots); return nil })
	}
	return g.Wait()
}

// loop runs one duty: at once again while there is work, else after the interval.
func (a *Auditor) loop(ctx context.Context, d duty, slots chan struct{}) {
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		worked, err := a.pass(ctx, d)
		<-slots
		if worked > 0 && err == nil {
			continue
		}
		if a.Wait(ctx, a.cfg.Interval) != nil {
			return
		}
	}
}

// keepLease renews the auditor's lease, by which budgets are shared, reads the debts, and
// looks again at what was lost, for no longer than the lease allows. Safety does not rest on it.
func (a *Auditor) keepLease(ctx context.Context) {
	for {
		if err := a.register(ctx); err != nil && ctx.Err() == nil {
			a.fail("auditor", "", err)
			a.Logger.Warn("auditor's lease not renewed", "error", err)
		} else {
			a.clear("auditor", "")
		}
		if owed, err := a.Catalog.Debts(ctx); err == nil {
			a.ledger.debts(&owed)
		}
		bound, cancel := context.WithTimeout(ctx, a.cfg.Lease/3)
		a.lookAtLost(bound)
		cancel()
		a.forget()
		if a.Wait(ctx, a.cfg.Lease/3) != nil {
			return
		}
	}
}

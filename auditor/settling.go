package auditor

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// maxBatches bounds how many batches of one chain a pass settles, so that the
// other chains have their turn.
const maxBatches = 16

// runSettle settles every chain with standing slots, batch by batch. One chain's
// failure pauses that chain only.
func (a *Auditor) runSettle(ctx context.Context) (int, error) {
	rows, err := a.Catalog.Chains(ctx)
	if err != nil {
		return 0, err
	}
	worked := 0
	for i := range rows {
		row := &rows[i]
		if ctx.Err() != nil {
			return worked, context.Cause(ctx)
		}
		if !owesSettle(row) || a.paused(row.Chain) {
			continue
		}
		n, err := a.settleChain(ctx, row.Chain)
		worked += n
		a.pauseChain(ctx, row.Chain, err)
	}
	return worked, nil
}

// owesSettle: absorbed slots that the trim-check has not seen rewritten.
func owesSettle(row *catalog.ChainRow) bool {
	return row.AbsorbedEnd > row.Rewritten || row.TransitBytes > 0
}

func (a *Auditor) settleChain(ctx context.Context, chain segment.Chain) (int, error) {
	const name = string(catalog.DutySettle)
	worked := 0
	for range maxBatches {
		r, err := a.Settler.RunOnce(ctx, chain, a.ID)
		if err != nil {
			return worked, err
		}
		if r.Idle != "" {
			if r.Idle != settle.IdleEmpty {
				a.ledger.keep(name, r.Idle, 1)
			}
			return worked, nil
		}
		a.ledger.outcome(name, "batch", false)
		a.ledger.count(name, "slots resolved", r.Resolved)
		a.moved(name, &r)
		if len(r.Failures) > 0 {
			a.alarms(ctx, catalog.DutySettle, r.Failures)
			f := r.Failures[0]
			return worked + r.Resolved + r.Outputs, fmt.Errorf("settle %s: %d members failed, first stream %q: %w", chain, len(r.Failures), f.Stream, f.Err)
		}
		worked += r.Resolved + r.Outputs
	}
	return worked, nil
}

func (a *Auditor) paused(chain segment.Chain) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rest(a.chains[chain].until) > 0
}

// pauseChain doubles the pause with each failure in a row.
func (a *Auditor) pauseChain(ctx context.Context, chain segment.Chain, err error) {
	if err == nil {
		a.clear(catalog.DutySettle, catalog.ChainID(chain))
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.chains, chain)
		return
	}
	a.fail(catalog.DutySettle, catalog.ChainID(chain), err)
	if ctx.Err() != nil {
		return // it was cut short by a stop
	}
	a.Logger.Warn("settle failed", "chain", chain.String(), "error", err)
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.chains[chain]
	p.until = a.Clock().Add(objstore.Backoff(p.fails, a.cfg.Backoff, a.cfg.BackoffMax, err))
	p.fails++
	a.chains[chain] = p
}

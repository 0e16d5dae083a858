package auditor

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// runReclaim plans the retention of chains that have no owner to do it, then retires
// what any chain's watermark gave up.
func (a *Auditor) runReclaim(ctx context.Context) (int, error) {
	raised, err := a.retain(ctx)
	if err != nil {
		a.lookAgain(&a.retained)
	}
	markers, terr := a.take(ctx, catalog.DutyReclaim)
	if terr != nil {
		return raised, errors.Join(err, terr)
	}
	return raised + a.each(ctx, markers, a.reclaimOne), err
}

func (a *Auditor) reclaimOne(ctx context.Context, m catalog.Marker) error {
	const name = string(catalog.DutyReclaim)
	r, err := a.reclaim.RunOnce(ctx, m)
	a.ledger.count(name, "refs retired", r.Retired)
	a.ledger.count(name, "refs straddling", r.Straddling)
	if err != nil {
		return err
	}
	a.ledger.outcome(name, string(r.Outcome), false)
	return nil
}

// retain looks at every chain of an epoch that has a policy, once in a while. One
// chain's fault holds up no other.
func (a *Auditor) retain(ctx context.Context) (int, error) {
	if a.restsFrom(&a.retained, a.cfg.RetentionEvery) {
		return 0, nil
	}
	epochs, err := a.policies(ctx)
	if err != nil || len(epochs) == 0 {
		return 0, err
	}
	rows, err := a.Catalog.Chains(ctx)
	if err != nil {
		return 0, err
	}
	raised := 0
	var errs []error
	for i := range rows {
		row := &rows[i]
		epoch, ok := epochs[row.Epoch]
		if !ok || row.WatermarkSegment+1 >= row.AbsorbedEnd {
			continue
		}
		if ctx.Err() != nil {
			return raised, context.Cause(ctx)
		}
		up, err := a.retainChain(ctx, row, epoch)
		if err != nil {
			errs = append(errs, fmt.Errorf("retention of chain %s: %w", row.Chain, err))
		}
		if up {
			raised++
		}
	}
	a.ledger.count(string(catalog.DutyReclaim), "watermarks raised", raised)
	return raised, errors.Join(errs...)
}

// policies are the epochs whose retention gives anything up.
func (a *Auditor) policies(ctx context.Context) (map[segment.Epoch]*catalog.Topology, error) {
	tops, err := a.Catalog.Topologies(ctx)
	if err != nil {
		return nil, err
	}
	out := map[segment.Epoch]*catalog.Topology{}
	for i := range tops {
		if !tops[i].Retention.Keeps() {
			out[tops[i].Epoch] = &tops[i]
		}
	}
	return out, nil
}

// retainChain plans and commits for a chain that is closed, or whose lease has ended: a
// living owner plans by itself, for it knows its consumers better. Consumers that a
// removed owner left hold the chain until somebody acknowledges for them.
func (a *Auditor) retainChain(ctx context.Context, row *catalog.ChainRow, epoch *catalog.Topology) (bool, error) {
	now, err := a.Catalog.Now(ctx)
	if err != nil {
		return false, err
	}
	if !row.Closed && now.Before(row.LeaseEnd) {
		return false, nil
	}
	slots, err := catalog.RetentionSlots(ctx, a.Catalog, row)
	if err != nil {
		return false, err
	}
	w, ok := catalog.PlanRetention(catalog.RetentionInput{Row: *row, Policy: epoch.Retention, Slots: slots, Now: now})
	if !ok {
		return false, nil
	}
	if a.cfg.DryRun {
		a.del.Stays(epoch.Class, segment.HeadKey(row.Chain), fmt.Sprintf("its watermark would rise from seq %d to %d", row.WatermarkSeq, w.Seq))
		return false, nil
	}
	// Crash here: nothing is given up. After it: the marker stands with the watermark.
	_, err = a.Catalog.RaiseWatermark(ctx, w)
	if errors.Is(err, catalog.ErrConflict) {
		// An owner came, or another auditor was first: the next look plans anew.
		return false, nil
	}
	return err == nil, err
}

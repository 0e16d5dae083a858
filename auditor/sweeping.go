package auditor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/strandline/strandline/catalog"
)

// sweepBuckets is the id of the sweep's marker for the buckets; those of chains
// stand for their strays.
const sweepBuckets = "buckets"

// runSweep runs what is due of the daily looks.
func (a *Auditor) runSweep(ctx context.Context) (int, error) {
	if err := a.ensureSweeps(ctx); err != nil {
		return 0, err
	}
	markers, err := a.take(ctx, catalog.DutySweep)
	if err != nil || len(markers) == 0 {
		return 0, err
	}
	return a.each(ctx, markers, a.sweepOne), nil
}

func (a *Auditor) sweepOne(ctx context.Context, m catalog.Marker) error {
	look := a.sweepChain
	if m.ID == sweepBuckets {
		look = a.sweepAll
	}
	if err := look(ctx, m); err != nil {
		return err
	}
	a.ledger.outcome(string(catalog.DutySweep), "done", false)
	if a.cfg.DryRun {
		return nil
	}
	return a.Catalog.Postpone(ctx, m.MarkerRef, a.cfg.SweepEvery, "")
}

// sweepAll looks for what nothing watches, in every bucket.
func (a *Auditor) sweepAll(ctx context.Context, _ catalog.Marker) error {
	const name = string(catalog.DutySweep)
	r, err := a.sweeper.RunOnce(ctx)
	a.countAborts(name, r.Aborts)
	a.ledger.count(name, "reap-checks armed", r.Armed)
	a.ledger.keep(name, "unwatched", r.Unwatched)
	a.ledger.keep(name, "unknown shape", r.Unknown)
	if err != nil || len(r.Found) == 0 || a.cfg.DryRun {
		return err
	}
	for _, f := range r.Found {
		a.Logger.Warn("sweep found a key that nothing watches", "store", f.Store, "key", f.Key, "bytes", f.Size, "why", f.Reason)
	}
	return a.Catalog.Audit(ctx, "sweep", r.Found[0].Key, fmt.Sprintf("%d keys that nothing watches, %d of unknown shape; the first: %s", r.Unwatched, r.Unknown, r.Found[0].Reason))
}

// sweepChain looks below one chain's trimmed cursor, and keeps its trim journal short.
func (a *Auditor) sweepChain(ctx context.Context, m catalog.Marker) error {
	const name = string(catalog.DutySweep)
	chain, err := catalog.ParseChainID(m.ID)
	if err != nil {
		return err
	}
	r, err := a.trimmer.Strays(ctx, chain)
	a.ledger.count(name, "strays deleted", r.Deleted)
	a.ledger.keep(name, "young strays", r.Young)
	if err != nil {
		return err
	}
	f, err := a.trimmer.Fold(ctx, chain)
	a.ledger.count(name, "trim records folded", f.Folded)
	a.ledger.count(name, "trim records deleted", f.Deleted)
	return err
}

// sweepIDs are the ids of all sweep markers.
func (a *Auditor) sweepIDs(ctx context.Context) (map[string]bool, error) {
	rows, err := a.Catalog.Chains(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{sweepBuckets: true}
	for i := range rows {
		ids[catalog.ChainID(rows[i].Chain)] = true
	}
	return ids, nil
}

// sweepNow makes the daily looks due: whoever asks for a sweep wants what fsck calls leaked
// gone now, the strays below trimmed too.
func (a *Auditor) sweepNow(ctx context.Context) error {
	ids, err := a.sweepIDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if err := a.Catalog.Arm(ctx, catalog.DutySweep, id, "", 0); err != nil {
			return err
		}
	}
	return nil
}

// ensureSweeps arms the standing markers that are missing: one for the buckets,
// one for each chain. Arming twice at once is harmless.
func (a *Auditor) ensureSweeps(ctx context.Context) error {
	a.mu.Lock()
	fresh := !a.ensured.IsZero() && a.rest(a.ensured.Add(a.cfg.Lease)) > 0
	a.mu.Unlock()
	if fresh || a.cfg.DryRun {
		return nil
	}
	missing, err := a.sweepIDs(ctx)
	if err != nil {
		return err
	}
	if err := a.markersOf(ctx, catalog.DutySweep, func(m catalog.Marker) { delete(missing, m.ID) }); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		if err := a.Catalog.Arm(ctx, catalog.DutySweep, id, "", 0); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ensured = a.Clock()
	return nil
}

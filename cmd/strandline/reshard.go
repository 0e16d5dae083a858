package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// epochsOf lists the epochs with how many of their chains are closed.
func epochsOf(ctx context.Context, t *tier) ([]epochOut, error) {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return nil, err
	}
	chains, err := t.catalog.Chains(ctx)
	if err != nil {
		return nil, err
	}
	closed := map[segment.Epoch]int{}
	for i := range chains {
		if chains[i].Closed {
			closed[chains[i].Epoch]++
		}
	}
	out := make([]epochOut, len(tops))
	for i, top := range tops {
		out[i] = epochOut{
			Epoch: top.Epoch, State: top.State, Shards: top.Shards, Closed: closed[top.Epoch], Class: top.Class,
			Buckets: top.Buckets, Settle: top.Settle, Retention: retentionOf(top.Retention),
		}
	}
	return out, nil
}

// setTopology is `topology set`.
func (a *app) setTopology(ctx context.Context, f *topologyFlags) (err error) {
	if err := f.validate(); err != nil {
		return err
	}
	log, err := a.logger()
	if err != nil {
		return err
	}
	t, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, t) }()
	r := &reshard{tier: t, log: log, drain: f.drain}
	would := wouldDo{DryRun: true, Would: []string{}}
	if f.dryRun {
		r.say = func(format string, args ...any) { would.Would = append(would.Would, fmt.Sprintf(format, args...)) }
	}
	_, living, err := untakenNow(ctx, t.catalog)
	if err != nil {
		return err
	}
	if err := r.set(ctx, f); err != nil {
		return err
	}
	if f.dryRun {
		return a.printWould(would)
	}
	if f.changesEpoch() {
		if err := a.noteUntaken(ctx, t.catalog, living > 0); err != nil {
			return err
		}
	}
	epochs, err := epochsOf(ctx, t)
	if err != nil {
		return err
	}
	return a.printEpochs(epochs)
}

// open creates the catalog where a first epoch is to begin.
func (f *topologyFlags) open(ctx context.Context) (*tier, error) {
	if f.changesEpoch() && !f.dryRun {
		return f.backend.open(ctx, modeCreate)
	}
	return f.backend.open(ctx, modeWrite)
}

// reshard changes the topology (03 §3). Each step leaves the catalog in a state from
// which the command, run again with the same flags, goes on.
type reshard struct {
	tier  *tier
	log   *slog.Logger
	drain time.Duration
	say   func(format string, args ...any) // a dry run: steps are said, not made
	at    func(step string) error          // tests stop here; nil: never
}

func (r *reshard) set(ctx context.Context, f *topologyFlags) error {
	tops, err := r.tier.catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	if len(tops) == 0 {
		if !f.given("shards") {
			return fmt.Errorf("this deployment has no epoch yet: give --shards, or start strandline up or writer")
		}
		top, err := f.next(firstTopology(r.tier), r.tier.classes)
		if err != nil {
			return err
		}
		if r.say != nil {
			r.say("found the first epoch with %s, class %s", countOf(top.Shards, "shard"), top.Class)
			return nil
		}
		if top, err = check.EnsureEpoch(ctx, r.tier.catalog, r.tier.classes, top); err != nil {
			return err
		}
		tops = []catalog.Topology{top}
	}
	last := tops[len(tops)-1]
	policy, err := f.policy(last.Retention)
	if err != nil {
		return err
	}
	next, err := f.next(last, r.tier.classes)
	if err != nil {
		return err
	}
	if !f.changesEpoch() || sameEpoch(last, next) && last.State == catalog.TopologyOpen {
		return r.retain(ctx, last, policy, f.setsRetention())
	}
	return r.change(ctx, tops, next, policy)
}

// retain replaces the policy of an epoch.
func (r *reshard) retain(ctx context.Context, top catalog.Topology, policy catalog.Retention, asked bool) error {
	switch {
	case !asked:
		return nil // it stands so already
	case r.say != nil:
		r.say("set the retention of epoch %d: %s", top.Epoch, retentionOf(policy))
		return nil
	}
	_, err := r.tier.catalog.SetRetention(ctx, top.Epoch, policy)
	return err
}

// change makes the epoch after the last, or goes on with one that is being made.
func (r *reshard) change(ctx context.Context, tops []catalog.Topology, next catalog.Topology, policy catalog.Retention) error {
	last := tops[len(tops)-1]
	if last.State == catalog.TopologyOpening {
		if !sameEpoch(last, next) {
			return usage("epoch %d is being opened: finish that first with --shards %d --class %s --settle=%t", last.Epoch, last.Shards, last.Class, last.Settle)
		}
		tops = tops[:len(tops)-1]
	} else {
		next.Epoch++
		next.State = catalog.TopologyOpening
	}
	next.Retention = policy
	if r.say != nil {
		return r.saySteps(ctx, tops, next)
	}
	// Crash before or after this: epoch e+1 is not there, or stands as opening. Nobody writes
	// to it, and the old one goes on until it is closing.
	if _, err := check.EnsureEpoch(ctx, r.tier.catalog, r.tier.classes, next); err != nil {
		return err
	}
	if err := r.retain(ctx, next, policy, true); err != nil { // one that stood may have another
		return err
	}
	if err := r.step("opening"); err != nil {
		return err
	}
	for _, old := range tops {
		if err := r.close(ctx, old); err != nil {
			return fmt.Errorf("close epoch %d: %w; run the same command again to go on", old.Epoch, err)
		}
	}
	// Crash here: every lower epoch is closed, and the next run only opens.
	_, err := r.tier.catalog.SetTopologyState(ctx, next.Epoch, catalog.TopologyOpening, catalog.TopologyOpen)
	if err != nil {
		return fmt.Errorf("open epoch %d: %w; run the same command again to go on", next.Epoch, err)
	}
	r.log.Info("the new epoch is open", "epoch", next.Epoch, "shards", next.Shards)
	return nil
}

// close ends an epoch: no more rows, then every chain fenced for good.
func (r *reshard) close(ctx context.Context, top catalog.Topology) error {
	if top.State == catalog.TopologyOpen {
		var err error
		if top, err = r.tier.catalog.SetTopologyState(ctx, top.Epoch, catalog.TopologyOpen, catalog.TopologyClosing); err != nil {
			return err
		}
		// Crash here: appends are refused until the next run.
		if err := r.step("closing"); err != nil {
			return err
		}
	}
	if top.State == catalog.TopologyClosed {
		return nil
	}
	held, err := r.letGo(ctx, top)
	if err != nil {
		return err
	}
	for shard := range segment.Shard(top.Shards) {
		row, err := localtier.CloseChain(ctx, localtier.Options{
			Catalog: r.tier.catalog, Classes: r.tier.classes, Topology: top, Steal: held, Logger: r.log,
		}, shard)
		if err != nil {
			return err
		}
		r.log.Info("chain closed", "chain", row.Chain.String(), "next_seq", row.NextSeq)
		// Crash here: this chain is closed, and the next run finds it so.
		if err := r.step(fmt.Sprintf("closed %d", shard)); err != nil {
			return err
		}
	}
	if _, err := r.tier.catalog.SetTopologyState(ctx, top.Epoch, catalog.TopologyClosing, catalog.TopologyClosed); err != nil {
		return err
	}
	return r.step("closed")
}

// drainEvery is how often leases are looked at while owners publish.
const drainEvery = 200 * time.Millisecond

// letGo waits until no chain of the epoch has a living owner, for r.drain at most. held
// says that some still have.
func (r *reshard) letGo(ctx context.Context, top catalog.Topology) (held bool, err error) {
	bound, cancel := context.WithTimeout(ctx, r.drain)
	defer cancel()
	for {
		owners, err := r.owners(ctx, top)
		if err != nil || len(owners) == 0 {
			return false, err
		}
		select {
		case <-time.After(drainEvery):
		case <-bound.Done():
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			r.log.Warn("owners did not let go in time: their chains are taken over", "epoch", top.Epoch, "chains", len(owners), "first", owners[0].Address)
			return true, nil
		}
	}
}

// owners are the chains of an epoch that somebody may be writing to.
func (r *reshard) owners(ctx context.Context, top catalog.Topology) (out []catalog.ChainRow, err error) {
	now, err := r.tier.catalog.Now(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := r.tier.catalog.Chains(ctx)
	for i := range rows {
		if c := &rows[i]; c.Epoch == top.Epoch && !c.Closed && now.Before(c.LeaseEnd) {
			out = append(out, *c)
		}
	}
	return out, err
}

func (r *reshard) step(name string) error {
	if r.at == nil {
		return nil
	}
	return r.at(name)
}

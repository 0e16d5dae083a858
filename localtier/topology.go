package localtier

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// The end of an epoch (03 §3, topology change): its writers refuse rows, publish what
// they have and let go; then the command closes each chain, which nobody appends to
// again.

// CloseChain ends a chain: takes it over, absorbs all that stands, fences it with the
// closed flag and absorbs that. A chain that is closed already is returned as it is, so it
// may be run again after any error and any crash. It needs no directory, and leaves none.
//
// A living owner's chain is taken only with o.Steal (else ErrHeld): what that owner
// acknowledged as local and did not publish ends in its quarantine. One that looks at
// its topology lets go by itself while the epoch is closing.
func CloseChain(ctx context.Context, o Options, shard segment.Shard) (catalog.ChainRow, error) {
	o.Shards = []segment.Shard{shard}
	if o.Dir == "" {
		o.Dir = "no directory" // named in errors only
	}
	state := o.Topology.State
	o.Topology.State = catalog.TopologyOpen
	o, err := o.complete()
	o.Topology.State = state
	if err != nil {
		return catalog.ChainRow{}, err
	}
	set, err := o.Classes.Set(string(o.Topology.Class))
	if err != nil {
		return catalog.ChainRow{}, err
	}
	s := newShard(o, absorb.Bucket{Set: set, Class: o.Topology.Class}, shard)
	s.owner = uuid.New() // of this act: nothing resumes it
	row, err := s.closeChain(ctx)
	if err != nil {
		return row, &ShardError{Chain: s.chain, Dir: "", Doing: "close the chain", Err: err}
	}
	return row, nil
}

func (s *shardLog) closeChain(ctx context.Context) (catalog.ChainRow, error) {
	var row catalog.ChainRow
	err := errSetAside
	for range takeAttempts {
		if !movedOn(err) && !errors.Is(err, errSetAside) {
			break
		}
		if row, err = s.look(ctx); err != nil || row.Closed {
			return row, err
		}
		row, err = s.acquireTerm(ctx, row, false)
	}
	if err != nil {
		return row, err
	}
	// A crash from here on leaves a chain without a writer: run it again, with steal, or
	// after the lease's end.
	if err := s.catalog.Audit(ctx, "takeover", s.chain.String(), fmt.Sprintf("term %d closes the chain", s.term)); err != nil {
		return row, fmt.Errorf("record the takeover: %w", err)
	}
	return s.takeOver(ctx, row, true)
}

// Over is closed once the writer's epoch takes no more rows and all of it that could be
// published is, or belongs to another by now: close this writer, and open the next
// epoch's. Status tells what is left.
func (w *Writer) Over() <-chan struct{} { return w.over }

// watchLoop looks whether the epoch goes on.
func (w *Writer) watchLoop(ctx context.Context) {
	for pause(ctx, w.opts.Config.TopologyEvery) {
		t, err := w.topology(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			w.opts.Logger.Warn("the topology will be read again", "error", err)
		case err == nil && t.State != catalog.TopologyOpen:
			w.finishEpoch(ctx, t.State)
			return
		}
	}
}

// finishEpoch refuses rows, and gives each chain back once all of it is absorbed.
func (w *Writer) finishEpoch(ctx context.Context, state catalog.TopologyState) {
	var all sync.WaitGroup
	for _, s := range w.shards {
		all.Go(func() {
			s.refuseEpoch(&EpochError{Epoch: w.opts.Topology.Epoch, State: state, RetryAfter: retryPublish})
			s.letEpochGo(ctx)
		})
	}
	all.Wait()
	if ctx.Err() == nil {
		close(w.over)
	}
}

// refuseEpoch ends appends: what was numbered before is sealed by the flush that follows,
// and nothing is numbered behind it.
func (s *shardLog) refuseEpoch(why *EpochError) {
	s.shut(why)
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch = why
	p.broadcast()
}

// shut refuses whatever is not numbered yet. Until then an append that was admitted before
// the end could be numbered behind the last seal.
func (s *shardLog) shut(why error) {
	s.number.Lock()
	defer s.number.Unlock()
	if s.shutBy == nil {
		s.shutBy = why
	}
}

// letEpochGo publishes what is here and releases the lease, until that worked, the shard
// stopped, or ctx ends (a Close goes on from there).
func (s *shardLog) letEpochGo(ctx context.Context) {
	for tries := 0; ; tries++ {
		err := s.flush(ctx)
		if left, _ := s.unpublished(); err == nil && left == 0 {
			break
		}
		if ctx.Err() != nil || s.stoppedBy() != nil {
			return
		}
		if err != nil {
			s.note("publish the end of the epoch", err)
		}
		if !pause(ctx, backoff(s.cfg, tries, err)) {
			return
		}
	}
	s.closed.Do(func() {
		// A Close that comes now waits for this one call.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.LeaseTime)
		defer cancel()
		s.closeBy = s.leave(ctx, nil)
	})
	s.log.Info("chain given back at the end of its epoch", "chain", s.chain.String(), "error", s.closeBy)
}

// reconcileEnded sets aside, under dir, what chains of other epochs left that have ended
// meanwhile. Nothing that serves waits on it: what does not work now is told, and tried
// again by the next start.
func reconcileEnded(ctx context.Context, o Options) {
	fsys := o.fs()
	names, err := fsys.ReadDir(o.Dir)
	if err != nil {
		o.Logger.Warn("directories of ended epochs cannot be looked for", "dir", o.Dir, "error", err)
		return
	}
	for _, name := range names {
		chain, ok := parseChain(name)
		if !ok || chain.Epoch == o.Topology.Epoch || ctx.Err() != nil {
			continue
		}
		if err := reconcileOne(ctx, o, chain); err != nil && !errors.Is(err, ErrChainClosed) {
			o.Logger.Warn("directory of another epoch stays where it is", "dir", filepath.Join(o.Dir, name), "error", err)
		}
	}
	judgeOthers(ctx, o)
}

// judgeOthers judges what lies in quarantine of chains that this writer does not serve:
// their own start was cut before it could, and there may never be another.
func judgeOthers(ctx context.Context, o Options) {
	entries, err := aside(o.fs(), o.Dir)
	if err != nil {
		o.Logger.Warn("the quarantine cannot be looked through", "dir", o.Dir, "error", err)
		return
	}
	done := make(map[segment.Chain]bool)
	for _, q := range entries {
		mine := q.Chain.Epoch == o.Topology.Epoch && slices.Contains(o.Shards, q.Chain.Shard)
		if mine || done[q.Chain] || ctx.Err() != nil {
			continue
		}
		done[q.Chain] = true
		other := o
		other.Topology.Epoch = q.Chain.Epoch
		if err := newShard(other, absorb.Bucket{}, q.Chain.Shard).judgeAside(ctx); err != nil {
			o.Logger.Warn("what lies in quarantine stays unjudged", "chain", q.Chain.String(), "error", err)
		}
	}
}

func reconcileOne(ctx context.Context, o Options, chain segment.Chain) error {
	row, err := o.Catalog.Chain(ctx, chain)
	if err != nil || !row.Closed {
		return err
	}
	o.Topology = catalog.Topology{Epoch: chain.Epoch}
	s := newShard(o, absorb.Bucket{}, chain.Shard)
	if err := s.recover(ctx); err != nil {
		var locked *wal.LockedError
		if errors.As(err, &locked) {
			return nil // its writer still ends
		}
		return s.tellDamage(ctx, err)
	}
	return errors.Join(s.leaveClosed(ctx, row), s.closeLog())
}

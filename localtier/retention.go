package localtier

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Retention at the owner (03 §9), each run of a shard in this order:
//
//	reconcile  adopt the committed watermark here
//	plan       what the policy, the slots and the cursors allow; nothing changes
//	commit     the watermark in the catalog: from here every reader skips what is below
//	reclaim    here; refs and objects are the auditor's, by the marker that the commit armed
//
// A crash after the commit leaves files that readers skip: the next run, or the next
// start, reclaims them.

// RetainOutcome is what one run did for a shard.
type RetainOutcome struct {
	// Raised: a watermark was committed by this run. WatermarkSeq is of the one that stands.
	Raised       bool
	WatermarkSeq segment.Seq
	Unlinked     int    // local segments
	Kept         string // why nothing was raised; empty if something was
}

// Retain runs retention once on all shards. A shard that fails holds up no other.
func (w *Writer) Retain(ctx context.Context) (map[segment.Shard]RetainOutcome, error) {
	t, err := w.topology(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	out := make(map[segment.Shard]RetainOutcome, len(w.order))
	err = w.each(func(s *shardLog) error {
		got, err := s.retainOnce(ctx, t.Retention)
		mu.Lock()
		defer mu.Unlock()
		out[s.chain.Shard] = got
		return err
	})
	return out, err
}

// topology is the writer's epoch as the catalog has it now.
func (w *Writer) topology(ctx context.Context) (catalog.Topology, error) {
	all, err := w.opts.Catalog.Topologies(ctx)
	if err != nil {
		return catalog.Topology{}, fmt.Errorf("read the topology: %w", err)
	}
	for _, t := range all {
		if t.Epoch == w.opts.Topology.Epoch {
			return t, nil
		}
	}
	return catalog.Topology{}, fmt.Errorf("%w: epoch %d is not in the catalog any more: %s", ErrRolledBack, w.opts.Topology.Epoch, rolledBackNext)
}

// retainLoop is retention's schedule. What it does not manage it says, and tries again.
func (w *Writer) retainLoop(ctx context.Context) {
	for pause(ctx, w.opts.Config.RetentionEvery) {
		if _, err := w.Retain(ctx); err != nil && ctx.Err() == nil {
			w.opts.Logger.Warn("retention will try again", "error", err)
		}
	}
}

func (s *shardLog) retainOnce(ctx context.Context, policy catalog.Retention) (RetainOutcome, error) {
	s.retain.Lock()
	defer s.retain.Unlock()
	if err := s.stoppedBy(); err != nil {
		return RetainOutcome{Kept: "the shard stopped"}, nil //nolint:nilerr // who stopped it said why
	}
	row := s.chainRow()
	out := RetainOutcome{WatermarkSeq: row.WatermarkSeq, Kept: "the policy keeps everything"}
	unlinked, err := s.reclaimLocal(ctx, row)
	out.Unlinked = unlinked
	if err != nil || policy.Keeps() {
		return out, err
	}
	slots, err := catalog.RetentionSlots(ctx, s.catalog, &row)
	if err != nil {
		return out, fmt.Errorf("read the slots: %w", err)
	}
	row, raised, err := s.raise(ctx, policy, slots)
	if err != nil || !raised {
		out.Kept = "consumers and limits allow no more"
		return out, err
	}
	out.Raised, out.WatermarkSeq, out.Kept = true, row.WatermarkSeq, ""
	// A crash here, or a failure below, leaves files whose rows nobody is given any more.
	if err := s.at(StepWatermark); err != nil {
		return out, err
	}
	unlinked, err = s.reclaimLocal(ctx, row)
	out.Unlinked += unlinked
	return out, errors.Join(err, s.at(StepReclaimed))
}

// raise plans and commits with the cursors held still: a consumer that is made meanwhile
// is counted here, or starts at the watermark committed.
func (s *shardLog) raise(ctx context.Context, policy catalog.Retention, slots []catalog.SlotRow) (catalog.ChainRow, bool, error) {
	now, err := s.catalog.Now(ctx)
	if err != nil {
		return catalog.ChainRow{}, false, fmt.Errorf("read the catalog's clock: %w", err)
	}
	plan := func() (catalog.Watermark, catalog.ChainRow, bool) {
		row := s.chainRow()
		mark, ok := catalog.PlanRetention(catalog.RetentionInput{
			Row: row, Policy: policy, Slots: slots, Local: s.carried.holding(), Now: now,
		})
		return mark, row, ok
	}
	if _, row, ok := plan(); !ok {
		return row, false, nil
	}
	// A row that was rolled back behind its head, and by its watermark alone, would catch up
	// with it by what this owner remembers: nobody knew then that commits were lost, and what
	// else was lost with them would be deleted. The commit below is made in the session that was
	// looked at, or not at all: it may be sent again, behind a fail-over.
	session, err := s.catalog.Session(ctx)
	if err != nil {
		return catalog.ChainRow{}, false, fmt.Errorf("read the catalog's session: %w", err)
	}
	ctx = catalog.Within(ctx, session)
	if row, err := s.look(ctx); err != nil {
		return row, false, err
	}
	s.cursors.Lock()
	defer s.cursors.Unlock()
	mark, row, ok := plan()
	if !ok {
		return row, false, nil
	}
	if err := s.at(StepPlanned); err != nil {
		return row, false, err
	}
	mark.Chain, mark.Term = s.chain, s.term
	row, err = s.commitWatermark(ctx, mark)
	return row, err == nil, err
}

// commitWatermark is the point of no return. After an unknown outcome it is asked again:
// the verb is a no-op once it stands.
func (s *shardLog) commitWatermark(ctx context.Context, mark catalog.Watermark) (row catalog.ChainRow, err error) {
	for range takeAttempts {
		if row, err = s.catalog.RaiseWatermark(ctx, mark); !errors.Is(err, catalog.ErrAmbiguous) {
			break
		}
	}
	if err != nil {
		// Another owner's term, or a cursor of the row that is not published yet: no more than
		// that nothing was given up. The lease's loop finds out about the first.
		return row, fmt.Errorf("commit the watermark: %w", err)
	}
	s.watermarkMoved(row)
	return row, nil
}

// watermarkMoved takes in a watermark that was committed. chainMoved would do, but for an
// absorb that answers later with what it read before.
func (s *shardLog) watermarkMoved(row catalog.ChainRow) {
	s.chainMoved(row)
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if row.WatermarkSeq > p.row.WatermarkSeq {
		p.row.WatermarkSeq, p.row.WatermarkSegment = row.WatermarkSeq, row.WatermarkSegment
	}
}

// adoptWatermark is step 1 at a start. A disk that refuses costs room, not truth.
func (s *shardLog) adoptWatermark(ctx context.Context, row catalog.ChainRow) {
	if _, err := s.reclaimLocal(ctx, row); err != nil {
		s.note("give up what the watermark has passed", err)
	}
}

// reclaimLocal unlinks the local segments at or below the committed watermark. Which
// they are is found by seq: a slot's position may lie above its segment's local id.
func (s *shardLog) reclaimLocal(ctx context.Context, row catalog.ChainRow) (int, error) {
	checkpoint, _ := s.wal.LastCheckpoint()
	r, ok := planReclaim(s.wal.Sealed(), min(checkpoint.Segment+1, s.wal.State().Segment), row.WatermarkSeq)
	if !ok {
		return 0, nil
	}
	// The newest segment's SegmentStart is the write-forward of seed 000: it repeats every
	// consumer and producer, is fsynced, and is never reclaimed.
	gone, err := s.wal.Reclaim(ctx, r)
	if n := len(gone); n > 0 {
		s.index.forget(gone[n-1])
	}
	if errors.Is(err, wal.ErrClosed) {
		err = nil
	}
	return len(gone), err
}

// planReclaim is the last local segment below `before` that lies wholly at or below the
// watermark. What is not checkpointed stays, and so does the newest.
func planReclaim(local []wal.SealedSegment, before segment.ID, watermark segment.Seq) (r segment.Reclaim, ok bool) {
	for _, seg := range local {
		if watermark == 0 || seg.Next > watermark+1 || seg.ID >= before {
			break
		}
		r, ok = segment.Reclaim{Seq: seg.Next - 1, Segment: seg.ID}, true
	}
	return r, ok
}

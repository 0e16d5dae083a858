package localtier

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/localtier/wal"
)

// finish is step 4, after the absorb: shared acknowledgements go out, CHECKPOINT
// advances, and the next segment may be sent.
func (s *shardLog) finish(ctx context.Context, seg wal.SealedSegment) error {
	// Acknowledgements come first: they rest on the catalog, not on CHECKPOINT.
	s.absorbedThrough(seg)
	// A crash here leaves CHECKPOINT behind the chain row: resume brings it up.
	if err := s.wal.Checkpoint(ctx, seg.End()); err != nil {
		if errors.Is(err, wal.ErrClosed) {
			return err
		}
		// It only holds back housekeeping; the next one says more.
		s.note("write CHECKPOINT", err)
	}
	return s.at(StepCheckpointed)
}

// absorbedThrough takes the segment off the queue and wakes who waits for it.
func (s *shardLog) absorbedThrough(seg wal.SealedSegment) {
	s.placed = nil
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sealed) > 0 && p.sealed[0].ID == seg.ID {
		p.sealed = p.sealed[1:]
		p.sealedBytes.Add(-seg.Bytes)
	}
	p.absorbed = max(p.absorbed, seg.ID)
	p.lastErr, p.lastAbsorbed = nil, s.now()
	p.broadcast()
}

// auditStop records a fence or a halt where everybody looks. The shard stops
// whether or not that works.
func (s *shardLog) auditStop(ctx context.Context, why error) {
	kind := "damage"
	if errors.Is(why, ErrFenced) {
		kind = "fenced"
	}
	if err := s.catalog.Audit(ctx, kind, s.chain.String(), why.Error()); err != nil {
		s.log.Warn("the stop could not be recorded", "chain", s.chain.String(), "error", fmt.Errorf("audit: %w", err))
	}
}

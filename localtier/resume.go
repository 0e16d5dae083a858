package localtier

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// resume is step 0 of 03 §3, the ordinary restart: the chain's owner is this very
// directory, and what lies here continues the chain. No fence, no hydrate: every
// acknowledged row keeps its seq, and the publisher goes on at absorbed_end.
func (s *shardLog) resume(ctx context.Context, row catalog.ChainRow, absorbed segment.ID, local []wal.SealedSegment) error {
	row, err := s.acquireTerm(ctx, row, true)
	if err != nil {
		return err
	}
	// A crash here leaves a term without a segment: the next resume takes another.
	s.begin(row, absorbed, local)
	s.index.forget(absorbed) // the bucket has them: reads need not lean on this disk
	if err := s.checkpointThrough(ctx, absorbed, local); err != nil {
		return err
	}
	st := s.wal.State()
	if !st.Open {
		return nil // the next append opens a segment, of this term
	}
	err = s.wal.StartSegment(ctx, s.startAfter(st))
	if err != nil {
		return fmt.Errorf("begin a segment of term %d: %w", s.term, err)
	}
	return nil
}

// startAfter is the SegmentStart that follows the newest segment.
func (s *shardLog) startAfter(st wal.State) segment.Start {
	start := segment.Start{
		Chain: s.chain, ID: st.Segment + 1, Base: st.Next, Prev: st.UUID,
		Created: s.now().UnixNano(),
	}
	s.fillStart(&start)
	return start
}

// fillStart adds what only the owner knows, also to segments that the log opens by
// itself.
func (s *shardLog) fillStart(start *segment.Start) {
	start.Term = s.term
	start.Consumers, start.Producers = s.carried.lists()
}

// checkpointThrough brings CHECKPOINT up to what the chain row says is absorbed: a
// crash may have come between the absorb and the record of it.
func (s *shardLog) checkpointThrough(ctx context.Context, absorbed segment.ID, local []wal.SealedSegment) error {
	for _, seg := range local {
		if seg.ID == absorbed {
			return s.wal.Checkpoint(ctx, seg.End())
		}
	}
	return nil // housekeeping removed it, after its checkpoint
}

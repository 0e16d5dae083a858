package localtier

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// acknowledge says yes to rows that are durable up to end, as asked.
func (s *shardLog) acknowledge(ctx context.Context, end wal.Offset, ack Ack) error {
	if ack == AckShared {
		// No look at the lease: the absorb is guarded by the catalog itself.
		return s.waitShared(ctx, end.Segment)
	}
	// The lease is asked again after the fsync: a process that was stalled in between
	// may have lost the chain.
	if err := s.stoppedBy(); err != nil {
		return err
	}
	return s.leaseRefusal()
}

// waitShared returns once the segment is absorbed.
func (s *shardLog) waitShared(ctx context.Context, id segment.ID) error {
	p := &s.progress
	for {
		p.mu.Lock()
		done, stopped, changed := p.absorbed >= id, p.stopped, p.changed
		p.mu.Unlock()
		switch {
		case done:
			return nil
		case stopped != nil:
			return fmt.Errorf("the rows are durable in %s, not in the shared tier: %w", s.dir, stopped)
		}
		s.wantSeal(id)
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the rows are durable in %s, not yet known to be in the shared tier: %w", s.dir, context.Cause(ctx))
		}
	}
}

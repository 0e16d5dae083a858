package localtier

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// acknowledge says yes to rows that are durable up to end, as asked.
func (s *shardLog) acknowledge(ctx context.Context, end wal.Offset, ack Ack) error {
	if ack == AckShared {
		// No look at the lease: the absorb is guarded by the catalog itself.
		ctx, done := s.traced(ctx, Traced{Step: TraceShared, Segment: end.Segment})
		err := s.waitShared(ctx, end.Segment)
		done(err)
		return err
	}
	// The lease is asked again after the fsync: a process that was stalled in between
	// may have lost the chain.
	if err := s.stoppedBy(); err != nil {
		return err
	}
	return s.leaseRefusal()
}

// poisonLook is how often a shared acknowledgement looks whether its segment can
// still be sealed: a poisoned log tells nobody who does not ask.
const poisonLook = time.Second

// waitShared returns once the segment is absorbed.
func (s *shardLog) waitShared(ctx context.Context, id segment.ID) error {
	look := time.NewTicker(poisonLook)
	defer look.Stop()
	p := &s.progress
	for {
		poison := s.wal.Err()
		p.mu.Lock()
		done, stopped, changed := p.absorbed >= id, p.stopped, p.changed
		sealed := len(p.sealed) > 0 && p.sealed[len(p.sealed)-1].ID >= id
		p.mu.Unlock()
		switch {
		case done:
			return nil
		case stopped != nil:
			return fmt.Errorf("the rows are durable in %s, not in the shared tier: %w", s.dir, stopped)
		case poison != nil && !sealed:
			// They stay in a segment that only the next start can seal.
			return fmt.Errorf("the rows are durable in %s, not in the shared tier: %w", s.dir, s.poisoned(poison))
		}
		s.wantSeal(id)
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("the rows are durable in %s, not yet known to be in the shared tier: %w", s.dir, context.Cause(ctx))
		}
	}
}

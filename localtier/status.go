package localtier

import (
	"errors"
	"time"
)

func (s *shardLog) status() ShardStatus {
	segments, bytes := s.unpublished()
	st := s.wal.State()
	out := ShardStatus{
		Chain: s.chain, Dir: s.dir, Owner: s.owner, Term: s.term,
		NextSeq: st.Next, UnpublishedSegments: segments, UnpublishedBytes: bytes,
		UnflushedBytes: s.wal.Unflushed(), LeaseEnd: s.lease.end(),
		Log: s.wal.Metrics(), Consumers: s.consumers(),
	}
	out.Hydrated, out.HydrateTotal = s.hydrated.read()
	out.Owed, out.Corrupt = s.bucket.Owed.Len(), s.corrupt.Load()
	p := &s.progress
	p.mu.Lock()
	stopped, last := p.stopped, p.lastErr
	out.Position, out.LastErrorAt, out.LastAbsorbed = p.row.AbsorbedEnd, p.lastErrAt, p.lastAbsorbed
	out.Row = p.row
	if len(p.sealed) > 0 {
		out.UnabsorbedSince = p.sealed[0].SealedAt
	}
	p.mu.Unlock()
	out.Unabsorbed = uint64(max(st.DurableNext, out.Row.NextSeq) - out.Row.NextSeq)
	out.Behind = s.behind(out.Consumers)
	out.State = s.stateOf(stopped)
	if stopped != nil {
		last = stopped
	}
	if last == nil {
		last = s.wal.Err()
	}
	if last != nil {
		out.LastError = last.Error()
	}
	return out
}

// stateOf is the state of a shard whose publisher stopped with an error, or with none.
func (s *shardLog) stateOf(stopped error) State {
	switch {
	case errors.Is(stopped, ErrFenced):
		return StateFenced
	case errors.Is(stopped, ErrClosed):
		return StateClosed
	case stopped != nil || s.wal.Err() != nil:
		return StateHalted
	case !s.lease.good():
		return StateLeaseLost
	}
	return StateServing
}

// behind says since when the slowest consumer has had a sealed segment to read.
func (s *shardLog) behind(consumers []ConsumerStatus) time.Time {
	if len(consumers) == 0 {
		return time.Time{}
	}
	slowest := consumers[0].Cursor
	for _, c := range consumers {
		slowest = min(slowest, c.Cursor)
	}
	for _, seg := range s.wal.Sealed() {
		if slowest+1 < seg.Next {
			return seg.SealedAt
		}
	}
	return time.Time{}
}

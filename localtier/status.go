package localtier

import "errors"

func (s *shardLog) status() ShardStatus {
	segments, bytes := s.unpublished()
	st := s.wal.State()
	out := ShardStatus{
		Chain: s.chain, State: StateServing, Dir: s.dir, Owner: s.owner, Term: s.term,
		NextSeq: st.Next, UnpublishedSegments: segments, UnpublishedBytes: bytes,
		UnflushedBytes: s.wal.Unflushed(), LeaseEnd: s.lease.end(),
		Log: s.wal.Metrics(), Consumers: s.consumers(),
	}
	out.Hydrated, out.HydrateTotal = s.hydrated.read()
	p := &s.progress
	p.mu.Lock()
	stopped, last := p.stopped, p.lastErr
	out.Position, out.LastErrorAt, out.LastAbsorbed = p.row.AbsorbedEnd, p.lastErrAt, p.lastAbsorbed
	p.mu.Unlock()
	switch {
	case errors.Is(stopped, ErrFenced):
		out.State = StateFenced
	case errors.Is(stopped, ErrClosed):
		out.State = StateClosed
	case stopped != nil || s.wal.Err() != nil:
		out.State = StateHalted
	case !s.lease.good():
		out.State = StateLeaseLost
	}
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

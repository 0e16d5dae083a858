package localtier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// append is 03 §1 for one shard: admit, number and queue, wait for the disk,
// answer as asked.
func (s *shardLog) append(ctx context.Context, stream string, rows []segment.Row, ack Ack) (Result, error) {
	ack, err := s.ackMode(ack)
	if err != nil {
		return Result{}, err
	}
	var one [1][]segment.Row // on the stack: nearly every append is one frame
	frames, size, err := s.admit(one[:0], stream, rows)
	if err != nil {
		return Result{}, err
	}
	first, queued, err := s.enqueue(ctx, Producer{}, stream, frames, size)
	if err != nil {
		return Result{}, s.partly(ctx, first, frames, queued, err)
	}
	res, err := s.answer(ctx, queued.last, ack, first, len(rows))
	if err != nil && isDone(queued.last) && queued.last.Err() != nil {
		err = s.partly(ctx, first, frames, queued, err)
	}
	return res, err
}

// ackMode is what the caller waits for.
func (s *shardLog) ackMode(ack Ack) (Ack, error) {
	if ack == AckDefault {
		ack = s.cfg.Ack
	}
	if ack != AckLocal && ack != AckShared {
		return ack, fmt.Errorf("%w: acknowledgement %q: give local or shared", ErrInvalid, ack)
	}
	return ack, nil
}

// answer waits for the last frame of an append and says where its rows are.
func (s *shardLog) answer(ctx context.Context, last wal.Ticket, ack Ack, first segment.Seq, rows int) (Result, error) {
	waiting, committed := s.traced(ctx, Traced{Step: TraceCommit, Rows: rows})
	end, err := last.Wait(waiting)
	committed(err)
	// One of those whose frames one write made durable has them all settled.
	if !s.index.has(first+segment.Seq(rows)-1) && s.index.settle() >= s.cfg.MaxStreams {
		s.wantSealNow()
	}
	if err != nil {
		return Result{}, s.notDurable("append: the rows", last, err)
	}
	if err := s.acknowledge(ctx, end, ack); err != nil {
		return Result{}, err
	}
	return s.result(first, first+segment.Seq(rows)-1), nil
}

func (s *shardLog) result(first, last segment.Seq) Result {
	return Result{Epoch: s.chain.Epoch, Shard: s.chain.Shard, Term: s.term, First: first, Last: last}
}

// Token is where one of the rows stands, as a reader is to give it back.
func (r Result) Token(seq segment.Seq) segment.Token {
	return segment.Token{Epoch: r.Epoch, Term: r.Term, Seq: seq}
}

// enqueue numbers the rows and hands them to the committer, in one place and in one
// order. It returns the tickets also of the frames before one that was refused: frames become
// durable in order. An idempotent producer's rows are one frame, and errTaken means
// that its sequence is not the next one.
func (s *shardLog) enqueue(ctx context.Context, p Producer, stream string, frames [][]segment.Row, size int64) (first segment.Seq, queued tickets, err error) {
	s.number.Lock()
	defer s.number.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, queued, context.Cause(ctx)
	}
	if err := s.unstall(); err != nil {
		return 0, queued, err
	}
	if p.ID != "" && !s.nextOf(p) {
		return 0, queued, errTaken
	}
	// All frames of an append or none: only this lock's holder adds to the queue. Of one
	// frame the log says so itself.
	if len(frames) > 1 {
		if waits := s.wal.Unflushed(); waits+size > 2*s.segmentBytes() && waits > 0 {
			return 0, queued, s.refusedByLog(wal.ErrBackpressure)
		}
	}
	for i, rows := range frames {
		b := segment.Batch{Stream: stream, Rows: rows, Producer: p.ID, Sequence: p.Sequence}
		// The end of ctx is not looked at again: between two frames it would be too late.
		ticket, err := s.wal.AppendBatch(context.Background(), &b)
		if err != nil {
			return first, queued, s.refusedInLine(err)
		}
		queued.add(ticket)
		if i == 0 {
			first = b.First
		}
		s.index.queue(pendingFrame{ticket: ticket, stream: stream, first: b.First, rows: uint32(len(rows)), bytes: int64(segment.BatchBytes(&b))})
		if p.ID != "" {
			s.carried.queue(carriedChange{ticket: ticket, kind: segment.KindBatch, producer: segment.Producer{
				ID: p.ID, Sequence: p.Sequence, First: b.First, Last: b.Last(),
			}})
		}
	}
	return first, queued, nil
}

func isDone(t wal.Ticket) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

// refusedInLine is what the log says to a frame; number is held. A log that stalled
// says so to whoever comes next, and those whose write failed may all have gone away.
func (s *shardLog) refusedInLine(err error) error {
	switch {
	case errors.Is(err, wal.ErrBackpressure), errors.Is(err, wal.ErrPoisoned), errors.Is(err, wal.ErrClosed):
	case errors.Is(err, segment.ErrTooLarge), errors.Is(err, segment.ErrInvalid), errors.Is(err, segment.ErrName):
	default:
		s.stall(err) // Resume does nothing on a log that did not stall
	}
	return s.refusedByLog(err)
}

// notDurable is what a wait that ended in an error means to its caller.
func (s *shardLog) notDurable(what string, t wal.Ticket, err error) error {
	switch {
	case errors.Is(err, wal.ErrPoisoned):
		return s.poisoned(err)
	case !isDone(t): // the wait ended, the write did not
		return fmt.Errorf("%s may still become durable: %w", what, err)
	}
	s.number.Lock()
	s.stall(err)
	s.number.Unlock()
	return s.refusedByLog(err)
}

// stall begins a pause after a write that was taken back; number is held. All who hear
// of one failure hear the same error, some of them after the pause.
func (s *shardLog) stall(err error) {
	if s.stalled.IsZero() && (s.resumed == nil || !errors.Is(err, s.resumed)) {
		s.stalled, s.stalledBy = s.now(), err
	}
}

// unstall lets appends in again after a write that was taken back (a full disk),
// a pause after the failure. number is held, so no seq is promised meanwhile.
func (s *shardLog) unstall() error {
	if s.shutBy != nil {
		return s.shutBy
	}
	if s.stalled.IsZero() {
		return nil
	}
	if s.now().Sub(s.stalled) < stallPause {
		return &BackpressureError{
			Chain: s.chain, Reason: "the disk of " + s.dir + " refused a write", RetryAfter: stallPause, Full: errors.Is(s.stalledBy, wal.ErrFull),
		}
	}
	// What was refused leaves the queues before its seqs, and the sequences of its
	// producers, are given out again.
	s.carried.takeBack()
	s.index.settle()
	if err := s.wal.Resume(); err != nil {
		return s.refusedByLog(err)
	}
	s.stalled, s.resumed = time.Time{}, s.stalledBy
	return nil
}

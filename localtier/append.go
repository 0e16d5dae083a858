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
	if ack == AckDefault {
		ack = s.cfg.Ack
	}
	if ack != AckLocal && ack != AckShared {
		return Result{}, fmt.Errorf("%w: acknowledgement %q: give local or shared", ErrInvalid, ack)
	}
	frames, size, err := s.admit(stream, rows)
	if err != nil {
		return Result{}, err
	}
	first, last, err := s.enqueue(ctx, stream, frames, size)
	if err != nil {
		return Result{}, err
	}
	end, err := last.Wait(ctx)
	if s.index.settle() >= s.cfg.MaxStreams {
		s.wantSealNow()
	}
	if err != nil {
		return Result{}, s.notDurable(err)
	}
	if err := s.acknowledge(ctx, end, ack); err != nil {
		return Result{}, err
	}
	return Result{
		Epoch: s.chain.Epoch, Shard: s.chain.Shard, Term: s.term,
		First: first, Last: first + segment.Seq(len(rows)) - 1,
	}, nil
}

// enqueue numbers the rows and hands them to the committer, in one place and in one
// order. It returns the ticket of the last frame: frames become durable in order.
func (s *shardLog) enqueue(ctx context.Context, stream string, frames [][]segment.Row, size int64) (first segment.Seq, last wal.Ticket, err error) {
	s.number.Lock()
	defer s.number.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, last, context.Cause(ctx)
	}
	if err := s.unstall(); err != nil {
		return 0, last, err
	}
	// All frames of an append or none: only this lock's holder adds to the queue.
	if queued := s.wal.Unflushed(); queued+size > 2*s.segmentBytes() && queued > 0 {
		return 0, last, s.refusedByLog(wal.ErrBackpressure)
	}
	ctx = context.WithoutCancel(ctx)
	for i, rows := range frames {
		b := segment.Batch{Stream: stream, Rows: rows}
		if last, err = s.wal.AppendBatch(ctx, &b); err != nil {
			if errors.Is(err, wal.ErrFull) && s.stalled.IsZero() {
				s.stalled = s.now() // those whose write failed had all gone away
			}
			return 0, last, s.refusedByLog(err)
		}
		if i == 0 {
			first = b.First
		}
		s.index.queue(pendingFrame{ticket: last, stream: stream, first: b.First, rows: uint32(len(rows)), bytes: int64(segment.BatchBytes(&b))})
	}
	return first, last, nil
}

// notDurable is what a failed group write means to its callers.
func (s *shardLog) notDurable(err error) error {
	switch {
	case errors.Is(err, wal.ErrPoisoned):
		return s.poisoned(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("append: the rows may still become durable: %w", err)
	}
	s.number.Lock()
	s.stalled = s.now()
	s.number.Unlock()
	return s.refusedByLog(err)
}

// unstall lets appends in again after a write that was taken back (a full disk),
// a pause after the failure. number is held, so no seq is promised meanwhile.
func (s *shardLog) unstall() error {
	if s.stalled.IsZero() {
		return nil
	}
	if s.now().Sub(s.stalled) < stallPause {
		return &BackpressureError{Chain: s.chain, Reason: "the disk refused a write", RetryAfter: stallPause}
	}
	s.index.settle() // the refused frames leave the queue before their seqs are given out again
	if err := s.wal.Resume(); err != nil {
		return s.refusedByLog(err)
	}
	s.stalled = time.Time{}
	return nil
}

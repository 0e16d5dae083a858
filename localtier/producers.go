package localtier

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Producer is an idempotent producer's name, and its own number of this append: one
// more with each append to the same shard. The zero value is none.
type Producer struct {
	ID       string
	Sequence uint64
}

// producerBytes bounds what a producer takes in a batch: its name and two varints.
const producerBytes = segment.MaxProducerName + 2*10

// errTaken: the producer's sequence is not the next one any more, or not yet.
var errTaken = errors.New("not the producer's next sequence")

// AppendAs is Append for a producer that may ask again after a lost answer. Its last
// sequence again, on whatever process has the chain by then, is answered with the first
// result, under the present term; also while the first is still under way, whose
// outcome it then waits for; and if that was not to be, the rows are appended now. A
// number belongs to its rows for ever: of other rows under it, only another count is
// noticed, and refused.
//
// *SequenceError: a sequence before the last one, whose result is forgotten, one with
// a gap before it, or the last one with another count of rows. A shard remembers the last append of its segment.MaxProducers most
// recently used producers; a retry is no use. One that it does not know, new or
// forgotten, may begin anywhere: so may a retry whose producer was forgotten, and its
// rows are there twice. Producers outlive a restart, and a takeover as far as the chain's
// last slot still stands.
//
// All rows must fit one frame (else ErrTooLarge), so that a retry after a crash finds
// all or none. Everything else is as Append says.
func (w *Writer) AppendAs(ctx context.Context, p Producer, stream string, rows []segment.Row, ack Ack) (Result, error) {
	if p == (Producer{}) {
		return w.Append(ctx, stream, rows, ack)
	}
	if err := segment.CheckProducer(p.ID); err != nil {
		return Result{}, fmt.Errorf("producer: %w", err)
	}
	s, err := w.route(ctx, stream)
	if err != nil {
		return Result{}, err
	}
	ctx, done := s.traced(ctx, Traced{Step: TraceAppend, Stream: stream, Rows: len(rows)})
	res, err := s.appendAs(ctx, p, stream, rows, ack)
	done(err)
	return res, err
}

// appendAs appends unless the sequence was taken: then it answers for who took it.
// Each round waits for another attempt's outcome, or is the last.
func (s *shardLog) appendAs(ctx context.Context, p Producer, stream string, rows []segment.Row, ack Ack) (Result, error) {
	ack, err := s.ackMode(ack)
	if err != nil {
		return Result{}, err
	}
	for {
		if err := s.refusal(); err != nil {
			return Result{}, err
		}
		var res Result
		if s.nextOf(p) {
			res, err = s.appendNext(ctx, p, stream, rows, ack)
		} else {
			res, err = s.appendAgain(ctx, p, len(rows), ack)
		}
		if !errors.Is(err, errTaken) {
			return res, err
		}
	}
}

// nextOf says whether the producer's append is to be made now. The answer holds only
// while number is held.
func (s *shardLog) nextOf(p Producer) bool {
	last, known, _ := s.carried.producer(p.ID)
	return !known || p.Sequence == last.Sequence+1
}

// appendNext is the append; errTaken if another attempt was faster.
func (s *shardLog) appendNext(ctx context.Context, p Producer, stream string, rows []segment.Row, ack Ack) (Result, error) {
	frames, size, err := s.admit(nil, stream, rows)
	if err != nil {
		return Result{}, err
	}
	size += producerBytes
	if len(frames) > 1 || size > segment.FrameHeaderBytes+segment.MaxFrameBytes {
		return Result{}, fmt.Errorf("%w: one append of an idempotent producer has to fit a frame of %d bytes: append fewer rows at once",
			ErrTooLarge, segment.MaxFrameBytes)
	}
	first, queued, err := s.enqueue(ctx, p, stream, frames, size)
	if err != nil {
		return Result{}, err
	}
	return s.answer(ctx, queued.last, ack, first, len(rows))
}

// appendAgain answers a sequence that is not the next one, once what the answer rests
// on is durable. errTaken: it turned out not to be, or is not taken; look again.
func (s *shardLog) appendAgain(ctx context.Context, p Producer, rows int, ack Ack) (Result, error) {
	last, known, pending := s.carried.producer(p.ID)
	if !known {
		return Result{}, errTaken
	}
	end := wal.Offset{}
	if pending != nil {
		var err error
		if end, err = pending.ticket.Wait(ctx); err != nil {
			if isDone(pending.ticket) && !errors.Is(err, wal.ErrPoisoned) {
				return Result{}, errTaken // it was taken back, and this may be made
			}
			return Result{}, s.notDurable("append: the rows", pending.ticket, err)
		}
	}
	switch {
	case p.Sequence == last.Sequence+1:
		return Result{}, errTaken
	case p.Sequence != last.Sequence:
		return Result{}, &SequenceError{Chain: s.chain, Producer: p.ID, Sequence: p.Sequence, Expect: last.Sequence + 1}
	case segment.Seq(rows) != last.Last-last.First+1:
		// Other rows: their answer would acknowledge what was never written.
		return Result{}, &SequenceError{Chain: s.chain, Producer: p.ID, Sequence: p.Sequence, Expect: last.Sequence + 1, Others: true}
	}
	if ack == AckShared && pending == nil {
		end.Segment = s.segmentOf(last)
	}
	if err := s.acknowledge(ctx, end, ack); err != nil {
		return Result{}, err
	}
	return s.result(last.First, last.Last), nil
}

// segmentOf is a segment whose absorb has the producer's rows in the shared tier: theirs,
// or 0 if they are there.
func (s *shardLog) segmentOf(p segment.Producer) segment.ID {
	for _, seg := range s.wal.Sealed() {
		if seg.Base <= p.First && p.First < seg.Next {
			return seg.ID
		}
	}
	// The chain row moves before a segment may be unlinked, so this comes second.
	if s.chainRow().NextSeq > p.Last {
		return 0
	}
	return s.wal.State().Segment // theirs, or one that is absorbed after theirs
}

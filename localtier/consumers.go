package localtier

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// ConsumerStatus is a durable consumer of a shard.
type ConsumerStatus struct {
	Name   string
	Cursor segment.Seq // last acknowledged; 0: none
	Lag    uint64      // durable rows after it
}

// controlRoom is what consumer frames may add to the unpublished bytes beyond the cap
// that rows meet: acknowledgements free disks, and are not to stop with appends.
const controlRoom = segment.MinSegmentBytes

// CreateConsumer makes a durable consumer whose first row is the one after `after`: 0
// is the oldest row that the shard has not given up, and beyond the end the next that
// will be appended. One that stands is returned as it is. It is durable on return.
//
// Nothing was written: *NotOwnerError, *segment.NameError, ErrTooManyConsumers (at most
// segment.MaxConsumers a shard), *BackpressureError, ErrClosed. After anything else it
// may stand or not: ask again.
func (w *Writer) CreateConsumer(ctx context.Context, shard segment.Shard, name string, after segment.Seq) (ConsumerStatus, error) {
	s, err := w.served(ctx, shard)
	if err != nil {
		return ConsumerStatus{}, err
	}
	return s.createConsumer(ctx, name, after)
}

// Ack moves a consumer's cursor to seq: it has done with the rows up to there. It never
// goes back: a lower seq is answered with the cursor as it stands, once that is durable.
// A seq beyond the last durable row is ErrInvalid, an unknown name ErrNoConsumer. An
// owner that was fenced or whose lease ran out takes none: somebody else may move the
// cursor by then.
func (w *Writer) Ack(ctx context.Context, shard segment.Shard, name string, seq segment.Seq) (ConsumerStatus, error) {
	s, err := w.served(ctx, shard)
	if err != nil {
		return ConsumerStatus{}, err
	}
	return s.changeConsumer(ctx, consumerRequest{name: name, decide: func(cursor segment.Seq, stands bool) (change, error) {
		switch last := s.lastDurable(); {
		case !stands:
			return change{}, s.noConsumer(name)
		case seq > last:
			return change{}, fmt.Errorf("%w: consumer %q acknowledges seq %d of chain %s, whose last row is %d", ErrInvalid, name, seq, s.chain, last)
		case seq <= cursor:
			return change{cursor: cursor}, nil
		}
		return change{segment.KindAck, seq}, nil
	}})
}

// RemoveConsumer forgets a consumer and its cursor. It is durable on return.
// ErrNoConsumer: there is none.
func (w *Writer) RemoveConsumer(ctx context.Context, shard segment.Shard, name string) error {
	s, err := w.served(ctx, shard)
	if err != nil {
		return err
	}
	_, err = s.changeConsumer(ctx, consumerRequest{name: name, decide: func(cursor segment.Seq, stands bool) (change, error) {
		if !stands {
			return change{}, fmt.Errorf("%w: chain %s has none of the name %q; strandline consumers ls %d --epoch %d lists those that stand",
				ErrNoConsumer, s.chain, name, s.chain.Shard, s.chain.Epoch)
		}
		return change{segment.KindConsumerRemove, cursor}, nil
	}})
	return err
}

// Consumers lists the shard's consumers by name, as they are durable.
func (w *Writer) Consumers(ctx context.Context, shard segment.Shard) ([]ConsumerStatus, error) {
	s, err := w.served(ctx, shard)
	if err != nil {
		return nil, err
	}
	if err := s.unreadableNow(); err != nil {
		return nil, err
	}
	return s.consumers(), nil
}

// served finds a shard that is served here.
func (w *Writer) served(ctx context.Context, shard segment.Shard) (*shardLog, error) {
	if s := w.shards[shard]; s != nil {
		return s, nil
	}
	if uint32(shard) >= w.opts.Topology.Shards {
		return nil, fmt.Errorf("%w: shard %d of %d", ErrInvalid, shard, w.opts.Topology.Shards)
	}
	return nil, w.notOwner(ctx, "", shard)
}

func (s *shardLog) noConsumer(name string) error {
	return fmt.Errorf("%w: %q of chain %s: create it first", ErrNoConsumer, name, s.chain)
}

// consumerRequest is what a caller wants of a consumer.
type consumerRequest struct {
	name string
	// decide says which frame it takes, as of what is queued; number is held.
	decide func(cursor segment.Seq, stands bool) (change, error)
	making bool // it may make a consumer: the cursors lock is taken
}

// errSealFirst: the consumer was removed in the segment that would make it again.
var errSealFirst = errors.New("seal the open segment first")

// change is the frame that a request takes; of kind 0: none, it is answered with the
// cursor as it is.
type change struct {
	kind   segment.Kind
	cursor segment.Seq
}

func (s *shardLog) createConsumer(ctx context.Context, name string, after segment.Seq) (ConsumerStatus, error) {
	return s.changeConsumer(ctx, consumerRequest{name: name, making: true, decide: func(cursor segment.Seq, stands bool) (change, error) {
		if stands {
			return change{cursor: cursor}, nil
		}
		if !s.carried.room() {
			return change{}, fmt.Errorf("%w: chain %s has %d: remove one that nobody uses", ErrTooManyConsumers, s.chain, segment.MaxConsumers)
		}
		st := s.wal.State()
		if st.Open && s.carried.removedIn(name, st.Segment) {
			return change{}, errSealFirst
		}
		// Rows that are queued become durable before this frame does.
		return change{segment.KindConsumerCreate, max(min(after, st.Next-1), s.chainRow().WatermarkSeq)}, nil
	}})
}

// changeConsumer writes the frame that a request takes and returns once it is durable.
// A request that takes none is answered once all that its answer rests on is durable.
func (s *shardLog) changeConsumer(ctx context.Context, r consumerRequest) (ConsumerStatus, error) {
	if err := segment.CheckConsumer(r.name); err != nil {
		return ConsumerStatus{}, fmt.Errorf("consumer: %w", err)
	}
	for {
		if err := s.controlRefusal(); err != nil {
			return ConsumerStatus{}, err
		}
		got, err := s.numberConsumer(ctx, r)
		if err != nil {
			return ConsumerStatus{}, err
		}
		if got.waits {
			end, err := got.ticket.Wait(ctx)
			switch {
			case err != nil && !got.mine && isDone(got.ticket) && !errors.Is(err, wal.ErrPoisoned):
				continue // what the answer rests on was taken back
			case err != nil:
				return ConsumerStatus{}, s.notDurable(fmt.Sprintf("consumer %q: the change", r.name), got.ticket, err)
			}
			if err := s.acknowledge(ctx, end, AckLocal); err != nil {
				return ConsumerStatus{}, err
			}
		}
		if errors.Is(got.refused, errSealFirst) {
			if _, err := s.wal.Seal(ctx); err != nil {
				return ConsumerStatus{}, s.refusedByLog(fmt.Errorf("seal the segment that removed consumer %q: %w", r.name, err))
			}
			continue
		}
		if got.refused != nil {
			return ConsumerStatus{}, got.refused
		}
		return s.lagging(segment.Consumer{Name: r.name, Cursor: got.cursor}), nil
	}
}

// numbered is a request's answer, to be given once the ticket is good.
type numbered struct {
	ticket  wal.Ticket
	waits   bool // there is a ticket
	mine    bool // it is that of the request's own frame
	cursor  segment.Seq
	refused error
}

// numberConsumer decides on a request and hands its frame to the log, in one place and
// one order with all others. A consumer is made with the cursors lock held: retention,
// which holds it from its plan to its commit, either counts the new one or has moved the
// watermark that it starts at.
func (s *shardLog) numberConsumer(ctx context.Context, r consumerRequest) (numbered, error) {
	if r.making {
		s.cursors.Lock()
		defer s.cursors.Unlock()
	}
	s.number.Lock()
	defer s.number.Unlock()
	if err := ctx.Err(); err != nil {
		return numbered{}, context.Cause(ctx)
	}
	if err := s.unstall(); err != nil {
		return numbered{}, err
	}
	cursor, stands, pending := s.carried.consumer(r.name)
	do, err := r.decide(cursor, stands)
	if err != nil || do.kind == 0 {
		got := numbered{waits: pending != nil, cursor: do.cursor, refused: err}
		if pending != nil {
			got.ticket = pending.ticket
		}
		return got, nil
	}
	c := segment.Consumer{Name: r.name, Cursor: do.cursor}
	t, err := s.wal.AppendConsumer(context.WithoutCancel(ctx), do.kind, c)
	if err != nil {
		return numbered{}, s.refusedInLine(err)
	}
	s.carried.queue(carriedChange{ticket: t, kind: do.kind, consumer: c})
	if do.kind == segment.KindConsumerRemove {
		s.carried.remove(r.name, s.wal.State().Segment)
	}
	return numbered{ticket: t, waits: true, mine: true, cursor: do.cursor}, nil
}

// controlRefusal says why the shard takes no consumer frames, or nil.
func (s *shardLog) controlRefusal() error {
	if err := s.refusal(); err != nil {
		return err
	}
	if _, bytes := s.unpublished(); bytes > s.cfg.MaxUnpublished+controlRoom {
		return &BackpressureError{
			Chain: s.chain, RetryAfter: retryPublish,
			Reason: fmt.Sprintf("%d bytes wait to be published, the cap is %d", bytes, s.cfg.MaxUnpublished),
		}
	}
	return nil
}

// consumers is the durable ones, by name.
func (s *shardLog) consumers() []ConsumerStatus {
	cs := s.carried.consumers()
	last := s.lastDurable() // after the cursors, none of which is beyond it
	out := make([]ConsumerStatus, len(cs))
	for i, c := range cs {
		out[i] = ConsumerStatusOf(c, last)
	}
	return out
}

func (s *shardLog) lagging(c segment.Consumer) ConsumerStatus {
	return ConsumerStatusOf(c, s.lastDurable())
}

// ConsumerStatusOf is a consumer's status on a chain that ends with the row last; 0 if
// it has none. It counts the lag: seqs are gapless over the chain.
func ConsumerStatusOf(c segment.Consumer, last segment.Seq) ConsumerStatus {
	return ConsumerStatus{Name: c.Name, Cursor: c.Cursor, Lag: uint64(max(last, c.Cursor) - c.Cursor)}
}

func (s *shardLog) lastDurable() segment.Seq { return max(s.wal.State().DurableNext, 1) - 1 }

package localtier

import (
	"context"
	"time"

	"github.com/strandline/strandline/segment"
)

// tailLook is how often Await looks by itself: a lease that runs out and a poisoned log
// tell nobody who does not ask, and a frame whose appender went away before it was
// durable is settled by the next one who looks.
const tailLook = time.Second

// Await returns once row seq of a shard, of whatever stream, is durable and can be read
// here: the log wakes it. A shard that is not served here is a *NotOwnerError without a stream;
// one that stopped or whose lease ran out is the error that a read would get.
func (w *Writer) Await(ctx context.Context, shard segment.Shard, seq segment.Seq) error {
	s, err := w.served(ctx, shard)
	if err != nil {
		return err
	}
	look := time.NewTicker(tailLook)
	defer look.Stop()
	for {
		// Both channels are taken before the looks, so that no change in between is missed.
		moved := s.index.moves()
		s.progress.mu.Lock()
		changed := s.progress.changed
		s.progress.mu.Unlock()
		if err := s.unreadableNow(); err != nil {
			return err
		}
		s.index.settle()
		if s.index.has(seq) {
			return nil
		}
		select {
		case <-moved:
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// LocalShard is Local for a shard: first to before next can be read here.
func (w *Writer) LocalShard(ctx context.Context, shard segment.Shard) (first, next segment.Seq, err error) {
	s, err := w.served(ctx, shard)
	if err != nil {
		return 0, 0, err
	}
	return s.localSpan()
}

// moves is closed when the end of what is durable and known moves.
func (x *index) moves() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.moved == nil {
		x.moved = make(chan struct{})
	}
	return x.moved
}

package wal

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/segment"
)

// run is what the committer writes with one write and one fdatasync: frames of
// one segment, maybe that segment's beginning before them and its Seal after.
// Until the committer takes it, it belongs to Log.mu; then to the committer.
type run struct {
	opening   *opening // the segment to make first, or nil
	seal      bool
	uuid      segment.UUID
	off       int64  // of buf in the segment file
	buf       []byte // frames back to back
	marks     []int  // where in buf each frame begins
	rows      segment.Seq
	consumers []consumerChange
	producers []segment.Producer

	done chan struct{} // closed once err is final
	err  error         // nil: all of it is durable
}

// opening is a segment that does not exist yet.
type opening struct {
	start segment.Start
	uuid  segment.UUID
	bytes []byte // header and SegmentStart frame
}

// consumerChange is a consumer frame's effect on index.json.
type consumerChange struct {
	kind segment.Kind
	segment.Consumer
}

// Ticket is a promise of durability.
type Ticket struct {
	run *run
	end Offset
}

// Wait returns once the frame is fsynced, with the offset after it, or once it
// certainly will not be, with the reason. An error of ctx says only that the
// caller stopped waiting.
func (t Ticket) Wait(ctx context.Context) (Offset, error) {
	select {
	case <-t.run.done:
	default:
		select {
		case <-t.run.done:
		case <-ctx.Done():
			return Offset{}, context.Cause(ctx)
		}
	}
	if t.run.err != nil {
		return Offset{}, t.run.err
	}
	return t.end, nil
}

// Done is closed when Err is final.
func (t Ticket) Done() <-chan struct{} { return t.run.done }

// Err is nil once the frame is durable; read it after Done.
func (t Ticket) Err() error { return t.run.err }

// AppendBatch queues rows of one stream as one frame and sets b.First to the seq
// of its first row: the log assigns seqs, in the order of the calls. Nothing is
// kept of b. What does not fit a frame is segment.ErrTooLarge; a full queue is
// ErrBackpressure; both leave the log as it was.
func (l *Log) AppendBatch(ctx context.Context, b *segment.Batch) (Ticket, error) {
	if err := ctx.Err(); err != nil {
		return Ticket{}, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.First = l.head.next
	n := segment.BatchBytes(b)
	r, err := l.room(n)
	if err != nil {
		return Ticket{}, err
	}
	buf, mark := segment.BeginFrame(r.buf)
	if buf, err = segment.AppendBatch(buf, b); err != nil {
		r.buf = buf[:mark]
		return Ticket{}, err
	}
	t, err := l.enqueue(r, buf, mark, segment.KindBatch, len(b.Rows))
	if err == nil && b.Producer != "" {
		r.producers = append(r.producers, segment.Producer{ID: b.Producer, Sequence: b.Sequence, First: b.First, Last: b.Last()})
	}
	return t, err
}

// AppendConsumer queues a ConsumerCreate, Ack or ConsumerRemove frame.
func (l *Log) AppendConsumer(ctx context.Context, kind segment.Kind, c segment.Consumer) (Ticket, error) {
	switch kind {
	case segment.KindConsumerCreate, segment.KindAck, segment.KindConsumerRemove:
	default:
		return Ticket{}, fmt.Errorf("%w: %v is no consumer frame", segment.ErrInvalid, kind)
	}
	if err := ctx.Err(); err != nil {
		return Ticket{}, context.Cause(ctx)
	}
	payload, err := segment.AppendConsumer(nil, c)
	if err != nil {
		return Ticket{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := l.room(len(payload))
	if err != nil {
		return Ticket{}, err
	}
	buf, mark := segment.BeginFrame(r.buf)
	t, err := l.enqueue(r, append(buf, payload...), mark, kind, 0)
	if err == nil {
		r.consumers = append(r.consumers, consumerChange{kind, c})
	}
	return t, err
}

// enqueue finishes the frame that begins at mark and wakes the committer.
func (l *Log) enqueue(r *run, buf []byte, mark int, kind segment.Kind, rows int) (Ticket, error) {
	// The committer seals the header again once it knows the synced offset.
	buf, err := segment.EndFrame(buf, mark, r.uuid, r.off+int64(mark), kind, 0)
	r.buf = buf
	if err != nil {
		return Ticket{}, err
	}
	n := int64(len(buf) - mark)
	r.marks = append(r.marks, mark)
	r.rows += segment.Seq(rows)
	l.unflushed += n
	l.queued.Add(1)
	l.head.end += n
	l.head.frames++
	l.head.next += segment.Seq(rows)
	switch {
	case l.head.frames == 2:
		l.armAge(l.cfg.SegmentAge)
	case l.age == nil: // of a segment that was open before the last open of the log
		l.armAge(ageLeft(l.head.start, l.cfg.Now(), l.cfg.SegmentAge))
	}
	l.metrics.appended(rows, n)
	l.work.Signal()
	return Ticket{r, l.head.offset()}, nil
}

// room returns the run that a frame of n payload bytes goes into, rotating first
// if it would not fit: a frame never straddles segments.
func (l *Log) room(n int) (*run, error) {
	size := int64(segment.FrameHeaderBytes + n)
	switch {
	case l.closing:
		return nil, ErrClosed
	case l.poison != nil:
		return nil, l.poison
	case l.stall != nil:
		return nil, l.stall
	case l.head.start.ID == 0:
		return nil, ErrNoSegment
	case n > segment.MaxFrameBytes:
		return nil, fmt.Errorf("%w: frame of %d bytes, at most %d; append fewer rows at once", segment.ErrTooLarge, n, segment.MaxFrameBytes)
	case l.unflushed+size > 2*l.cfg.SegmentBytes:
		l.metrics.refused.Add(1)
		return nil, ErrBackpressure
	}
	// A segment that holds its SegmentStart alone takes any frame: the next one
	// would have no more room.
	if l.head.open && l.head.frames > 1 && l.head.end+size+sealFrameBytes > l.cfg.SegmentBytes {
		l.queueSeal()
	}
	if !l.head.open {
		if err := l.queueNext(); err != nil {
			return nil, err
		}
	}
	return l.tail(), nil
}

// tail is the run that the head segment's next frame goes into.
func (l *Log) tail() *run {
	if n := len(l.queue); n > 0 && !l.queue[n-1].seal {
		return l.queue[n-1]
	}
	return l.push(&run{uuid: l.head.uuid, off: l.head.end})
}

// push queues a run, with a buffer that was used before if there is one.
func (l *Log) push(r *run) *run {
	r.done = make(chan struct{})
	if n := len(l.spare); n > 0 {
		r.buf, l.spare = l.spare[n-1][:0], l.spare[:n-1]
	}
	if n := len(l.spareMarks); n > 0 {
		r.marks, l.spareMarks = l.spareMarks[n-1], l.spareMarks[:n-1]
	}
	l.queue = append(l.queue, r)
	l.work.Signal()
	return r
}

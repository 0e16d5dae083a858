package localtier

import (
	"context"
	"sync"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// pendingFrame was handed to the log, and is not known to be durable yet.
type pendingFrame struct {
	ticket wal.Ticket
	stream string
	first  segment.Seq
	rows   uint32
	bytes  int64 // of its payload
}

// keptPending is the ring that an empty queue keeps, so that appends allocate
// nothing: some hundred producers' frames. What a burst took beyond it is given back.
const keptPending = 1024

// settledFrame is durable, up to end.
type settledFrame struct {
	pendingFrame
	end wal.Offset
}

// settleAtOnce frames leave the queue before it is let go: whoever appends waits for no
// more than that.
const settleAtOnce = 32

// pendingFrames is a queue in a ring. It is bounded by what the log lets wait for the
// disk: everyone who queued a frame settles the queue once his frame is done, and
// whoever went away before leaves his to the next.
type pendingFrames struct {
	mu   sync.Mutex     // its own, and the last of all
	ring []pendingFrame // its length is a power of two
	head int            // of the oldest
	n    int
}

func (q *pendingFrames) push(f pendingFrame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == len(q.ring) {
		bigger := make([]pendingFrame, max(16, 2*len(q.ring)))
		for i := range q.n {
			bigger[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = bigger, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = f
	q.n++
}

// drop takes the oldest away, and all that it held on to; mu is held.
func (q *pendingFrames) drop() {
	q.ring[q.head] = pendingFrame{}
	q.head = (q.head + 1) % len(q.ring)
	if q.n--; q.n == 0 && len(q.ring) > keptPending {
		q.ring, q.head = nil, 0
	}
}

// take takes off, in order, the frames whose outcome is known, and puts those that
// became durable into to. Fewer than fit there: no more are known.
func (q *pendingFrames) take(to []settledFrame) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var done <-chan struct{} // of the last ticket looked at: many frames share one write
	for q.n > 0 && n < len(to) {
		f := &q.ring[q.head]
		if d := f.ticket.Done(); d != done {
			select {
			case <-d:
				done = d
			default:
				return n
			}
		}
		// The ticket is done, so this does not wait.
		if end, err := f.ticket.Wait(context.Background()); err == nil {
			to[n] = settledFrame{*f, end}
			n++
		}
		q.drop()
	}
	return n
}

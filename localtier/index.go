package localtier

import (
	"context"
	"sync"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// index says where the rows of a stream lie in local segments, a frame an entry:
// 16 bytes and, for the first frame of a stream in a segment, its name. It holds
// places, never rows, and forgets a segment when housekeeping does.
type index struct {
	scan sync.Mutex // one scan of old segments at a time; taken before mu

	mu      sync.Mutex
	log     segmentOpener
	pending []pendingFrame // queued in the log, in order; not known to be durable
	segs    []*segmentIndex
	streams int         // in the newest segment
	end     segment.Seq // after the last row that is durable and known here
}

// segmentOpener is a log, live or read-only.
type segmentOpener interface {
	OpenSegment(id segment.ID) (*wal.SegmentReader, error)
	Sealed() []wal.SealedSegment
	State() wal.State
}

// frameAt is the place of a frame. Offsets of a segment fit 32 bits.
type frameAt struct {
	first segment.Seq
	rows  uint32
	off   uint32
}

type segmentIndex struct {
	id      segment.ID
	base    segment.Seq
	scanned bool // false: stood here at the start, to be read through at the first read
	frames  map[string][]frameAt
}

type pendingFrame struct {
	ticket wal.Ticket
	stream string
	first  segment.Seq
	rows   uint32
	bytes  int64 // of its payload
}

// begin notes the segments that stand here, without reading them.
func (x *index) begin(log segmentOpener) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log = log
	for _, seg := range log.Sealed() {
		x.segs = append(x.segs, &segmentIndex{id: seg.ID, base: seg.Base})
	}
	st := log.State()
	if st.Open {
		x.segs = append(x.segs, &segmentIndex{id: st.Segment, base: st.Start.Base})
	}
	x.end = st.Next
}

// startAt is where a log without segments begins.
func (x *index) startAt(base segment.Seq) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.end = base
}

// queue notes a frame that was handed to the log. Callers hold the number lock, so
// that the order here is the log's.
func (x *index) queue(f pendingFrame) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pending = append(x.pending, f)
}

// settle moves what became durable into the index, in order, and drops what never
// will. It returns how many streams the newest segment holds.
func (x *index) settle() (streams int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for ; n < len(x.pending) && isDone(x.pending[n].ticket); n++ {
		f := x.pending[n]
		// The ticket is done, so this does not wait.
		if end, err := f.ticket.Wait(context.Background()); err == nil {
			x.add(f, end)
		}
	}
	x.pending = x.pending[n:]
	if len(x.pending) == 0 {
		x.pending = nil
	}
	return x.streams
}

func isDone(t wal.Ticket) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

func (x *index) add(f pendingFrame, end wal.Offset) {
	seg := x.newest(end.Segment, f.first)
	at := frameAt{first: f.first, rows: f.rows, off: uint32(end.Byte - f.bytes - segment.FrameHeaderBytes)}
	seg.frames[f.stream] = append(seg.frames[f.stream], at)
	x.streams = len(seg.frames)
	x.end = f.first + segment.Seq(f.rows)
}

// newest is the entry of the segment that durable frames go into.
func (x *index) newest(id segment.ID, base segment.Seq) *segmentIndex {
	if n := len(x.segs); n > 0 && x.segs[n-1].id == id {
		return x.segs[n-1]
	}
	seg := &segmentIndex{id: id, base: base, scanned: true, frames: make(map[string][]frameAt)}
	x.segs = append(x.segs, seg)
	return seg
}

// forget drops segments that are not local any more.
func (x *index) forget(through segment.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for n < len(x.segs) && x.segs[n].id <= through {
		n++
	}
	x.segs = append([]*segmentIndex(nil), x.segs[n:]...)
}

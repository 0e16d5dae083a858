package localtier

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// index says where the rows of this directory lie, a frame an entry. It holds places,
// never rows, and forgets a segment when housekeeping does. Segments that stood here
// at the start, or came from the bucket since, are read through when a reader first
// needs them (scan.go): opening for append reads none.
//
// Frames are numbered in seq order, so a shard scan needs no second index; each
// stream's are chained, so a stream read sees no others (frames.go).
type index struct {
	scan    sync.Mutex    // one segment is read through at a time; taken before mu
	holds   holds         // its own lock, taken after mu
	pending pendingFrames // queued in the log, in order; likewise

	settled atomic.Uint64 // end, for those who need not know more

	mu      sync.Mutex
	log     segmentOpener
	segs    []*segmentIndex            // with rows, in order of seq
	low     segment.Seq                // from here on no local row is missing
	end     segment.Seq                // after the last row that is durable and known here
	held    int                        // frames in all tables
	maxHeld int                        // maxHeldFrames, less in tests
	looks   uint64                     // counts readers' looks, for segmentIndex.used
	taken   [settleAtOnce]settledFrame // empty between two settles
	moved   chan struct{}              // closed when end moves (tail.go); nil: nobody waits
}

// segmentOpener is a log, live or read-only.
type segmentOpener interface {
	OpenSegment(id segment.ID) (*wal.SegmentReader, error)
	Sealed() []wal.SealedSegment
	State() wal.State
}

// segmentIndex is one segment with rows. Sealed ones begin where the one before ends,
// unless what lies between is not here (yet).
type segmentIndex struct {
	id         segment.ID
	base, next segment.Seq
	table      *frameTable // nil: to be read through
	used       uint64      // index.looks when it was last used
}

// maxHeldFrames bounds the tables of one shard (128 MiB): beyond it those not used for
// longest are dropped, and made again from the file when needed. The newest stays.
const maxHeldFrames = 8 << 20

// begin notes the segments that stand here, without reading them.
func (x *index) begin(log segmentOpener) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log, x.maxHeld = log, maxHeldFrames
	for _, seg := range log.Sealed() {
		x.insert(seg.ID, seg.Base, seg.Next)
	}
	st := log.State()
	if st.Open {
		x.insert(st.Segment, st.Start.Base, st.Next)
	}
	x.setEnd(st.Next)
	x.relink()
}

// startAt is where a log without segments begins.
func (x *index) startAt(base segment.Seq) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.setEnd(base)
	x.relink()
}

// adopt takes in an older segment that came back from the bucket. Its rows are served
// once none is missing between them and the rows that are here.
func (x *index) adopt(seg wal.SealedSegment) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.insert(seg.ID, seg.Base, seg.Next)
	x.relink()
}

// insert puts a segment in its place unless it is known or holds no rows; mu is held.
func (x *index) insert(id segment.ID, base, next segment.Seq) {
	at := sort.Search(len(x.segs), func(i int) bool { return x.segs[i].id >= id })
	if base == next || (at < len(x.segs) && x.segs[at].id == id) {
		return
	}
	x.segs = slices.Insert(x.segs, at, &segmentIndex{id: id, base: base, next: next})
}

// relink finds from where on no row is missing; mu is held.
func (x *index) relink() {
	x.low = x.end
	for i := len(x.segs) - 1; i >= 0 && x.segs[i].next >= x.low; i-- {
		x.low = x.segs[i].base
	}
}

// setEnd says where durable rows end; mu is held.
func (x *index) setEnd(end segment.Seq) {
	x.end = end
	if before := x.settled.Swap(uint64(end)); before != uint64(end) && x.moved != nil {
		close(x.moved)
		x.moved = nil
	}
}

// has says that a row which was queued is settled, and is durable: seqs of what was
// taken back lie behind the end until they are given out again.
func (x *index) has(seq segment.Seq) bool { return seq < segment.Seq(x.settled.Load()) }

// queue notes a frame that was handed to the log. Callers hold the number lock, so
// that the order here is the log's; mu is not taken, so that nobody who appends waits for
// somebody who reads or settles.
func (x *index) queue(f pendingFrame) { x.pending.push(f) }

// settle moves what became durable into the index, in order, and drops what never
// will. It returns how many streams the newest segment holds.
func (x *index) settle() (streams int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for n := len(x.taken); n == len(x.taken); {
		n = x.pending.take(x.taken[:])
		for i := range x.taken[:n] {
			x.add(&x.taken[i].pendingFrame, x.taken[i].end)
		}
		clear(x.taken[:n])
	}
	x.setEnd(x.end)
	if n := len(x.segs); n > 0 && x.segs[n-1].table != nil {
		return len(x.segs[n-1].table.names)
	}
	return 0
}

// add puts a durable frame into the newest segment's table; mu is held.
func (x *index) add(f *pendingFrame, end wal.Offset) {
	n := len(x.segs)
	if n == 0 || x.segs[n-1].id != end.Segment {
		x.segs = append(x.segs, &segmentIndex{id: end.Segment, base: f.first, next: f.first, table: newFrameTable()})
		n++
		x.relink()
		x.makeRoom(nil)
	}
	seg := x.segs[n-1]
	seg.next = f.first + segment.Seq(f.rows)
	x.end = seg.next // settle has it known
	if t := seg.table; t == nil || (t.n > 0 && f.first <= seg.base+segment.Seq(t.at(t.n-1).first)) {
		return // it stood here at the start: whoever reads or read it through finds the frame
	}
	stream := f.stream
	if _, known := seg.table.numbers[stream]; !known {
		stream = strings.Clone(stream) // not the request that it may be a part of
	}
	//nolint:gosec // offsets and rows of a segment fit 32 bits
	seg.table.add(stream, uint32(f.first-seg.base), uint32(end.Byte-f.bytes-segment.FrameHeaderBytes))
	x.held++
}

// forget drops segments that are not local any more.
func (x *index) forget(through segment.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for n < len(x.segs) && x.segs[n].id <= through {
		x.dropTable(x.segs[n])
		n++
	}
	x.segs = append([]*segmentIndex(nil), x.segs[n:]...)
	x.relink()
}

// span is what is local: from first to before next.
func (x *index) span() (first, next segment.Seq) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.low, x.end
}

// errNotHere: the row is not local, or no longer.
var errNotHere = errors.New("not in local segments")

// look gives what stands in the segment that holds row seq, and holds it back from
// housekeeping for h from then on. A segment that was not read through yet is.
func (x *index) look(ctx context.Context, seq segment.Seq, stream string, h *hold) (view, error) {
	for {
		seg, v := x.find(seq, stream, h)
		switch {
		case seg == nil:
			return v, errNotHere
		case v.id != 0:
			return v, nil
		}
		if err := x.readThrough(ctx, seg); err != nil {
			return v, err
		}
	}
}

// find is one try of look; v is zero if the segment must be read through first.
func (x *index) find(seq segment.Seq, stream string, h *hold) (seg *segmentIndex, v view) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if seg = x.at(seq); seg == nil {
		return nil, v
	}
	h.from(seg.id)
	x.looks++
	seg.used = x.looks
	if seg.table == nil {
		return seg, v
	}
	v = view{id: seg.id, base: seg.base, next: seg.next, frames: seg.table.frames, names: seg.table.names}
	if number, ok := seg.table.numbers[stream]; ok {
		v.chain = seg.table.chains[number]
	}
	return seg, v
}

// unread is the segment that begins with row seq, if it was not read through yet. It is
// held back from housekeeping for h from then on.
func (x *index) unread(seq segment.Seq, h *hold) *segmentIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	seg := x.at(seq)
	if seg == nil || seg.table != nil || seg.base != seq {
		return nil
	}
	h.from(seg.id)
	return seg
}

// at is the segment of row seq, nil if that is not local; mu is held.
func (x *index) at(seq segment.Seq) *segmentIndex {
	at := sort.Search(len(x.segs), func(i int) bool { return x.segs[i].next > seq })
	if seq < x.low || at == len(x.segs) {
		return nil
	}
	return x.segs[at]
}

// stands says whether the segment is among those that are here.
func (x *index) stands(id segment.ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.byID(id) != nil
}

// byID finds a segment; mu is held.
func (x *index) byID(id segment.ID) *segmentIndex {
	at := sort.Search(len(x.segs), func(i int) bool { return x.segs[i].id >= id })
	if at == len(x.segs) || x.segs[at].id != id {
		return nil
	}
	return x.segs[at]
}

// makeRoom drops tables until they are few enough; mu is held. The newest segment's and
// keep's stay.
func (x *index) makeRoom(keep *segmentIndex) {
	for x.held > x.maxHeld {
		var oldest *segmentIndex
		for _, seg := range x.segs[:max(0, len(x.segs)-1)] {
			if seg != keep && seg.table != nil && (oldest == nil || seg.used < oldest.used) {
				oldest = seg
			}
		}
		if oldest == nil {
			return
		}
		x.dropTable(oldest)
	}
}

func (x *index) dropTable(seg *segmentIndex) {
	if seg.table != nil {
		x.held -= seg.table.n
		seg.table = nil
	}
}

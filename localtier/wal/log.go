package wal

import (
	"cmp"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/strandline/strandline/segment"
)

// Offset is a position in the log: right after a frame.
type Offset struct {
	Segment segment.ID
	UUID    segment.UUID
	Byte    int64
}

// Compare orders offsets by segment id, then by byte. UUIDs are identities and
// order nothing.
func (o Offset) Compare(p Offset) int {
	return cmp.Or(cmp.Compare(o.Segment, p.Segment), cmp.Compare(o.Byte, p.Byte))
}

// State is what a log knows of itself at one moment.
type State struct {
	Segment     segment.ID // newest; 0 means none yet, StartSegment makes it
	UUID        segment.UUID
	Open        bool          // false: sealed or none; the next append opens Segment+1
	Start       segment.Start // of the newest segment
	Next        segment.Seq   // of the next row appended: queued rows are counted
	Durable     Offset        // end of what is fsynced
	DurableNext segment.Seq   // the next seq as of Durable
	Frames      uint32        // durable frames of the newest segment, SegmentStart included
}

// SealedSegment is a segment that is whole, sealed and durable.
type SealedSegment struct {
	ID       segment.ID
	UUID     segment.UUID
	Prev     segment.UUID
	Chain    segment.Chain
	Base     segment.Seq
	Next     segment.Seq
	Term     segment.Term
	Frames   uint32 // SegmentStart included, the Seal not
	Bytes    int64
	Digest   uint64 // as the Seal has it
	SealedAt time.Time
	Path     string
}

// End is the offset of the segment's end, to be checkpointed once it is in the
// shared tier.
func (s SealedSegment) End() Offset { return Offset{s.ID, s.UUID, s.Bytes} }

// Log is the open segment log of one directory. Its methods may be called by
// several goroutines.
type Log struct {
	dir      string
	cfg      Config
	fs       FS
	identity segment.Identity
	lock     io.Closer
	stopped  chan struct{} // closed when the committer has ended
	hurry    chan struct{} // cuts a batch window short; capacity 1

	mu         sync.Mutex
	work       *sync.Cond // queue grew, or closing was set
	head       position   // what appenders see: queued frames counted
	durable    position   // what the disk has; only the committer moves it
	queue      []*run     // not yet taken by the committer
	inflight   *run       // the last one it took and has not finished
	spare      [][]byte   // buffers to be used again
	idleGroups int        // in a row that left a large buffer almost empty
	spareMarks [][]int
	unflushed  int64        // bytes of frames queued or in flight
	queued     atomic.Int64 // frames in queue; the committer reads it without mu
	stall      error        // a write was rolled back: appends wait for Resume
	poison     error        // the first failure that nothing can undo
	closing    bool
	urgent     bool // somebody waits for the disk now: no batch window
	sealed     []SealedSegment
	carried    carried      // as of durable, for index.json
	prefix     prefixDigest // of the newest segment's bytes as of durable
	checkpoint Offset
	hasCheck   bool
	age        *time.Timer // of head's segment, nil if none runs
	indexTimer *time.Timer // a write of index.json is due, nil if none is

	reclaimed segment.Reclaim         // as committed in reclaim.json
	adopting  map[segment.ID]struct{} // ids that Adopt is at
	readers   map[segment.ID]int      // open SegmentReaders
	spares    []spareFile             // to be written over; see spare.go
	spareNext uint64                  // number of the next one's name

	side  sync.Mutex // serialises Checkpoint, Housekeep, Reclaim and Adopt's end
	index sync.Mutex // serialises the writers of index.json

	// The open segment's file and the digest of its bytes. Until the committer
	// starts they belong to Open, then to the committer alone.
	file     File
	digest   xxhash.Digest
	next     xxhash.Digest // with the run that is being made durable
	filled   int64         // where the file's written blocks end, if behind the frames
	zeros    []byte        // what fillAhead writes
	siblings siblings
	// vouched is the digest that index.json gave of a prefix that Open did not
	// read; "" if there is none.
	vouched string

	metrics metrics
}

// prefixDigest is the XxHash64 of a segment's bytes, if it is known.
type prefixDigest struct {
	sum   uint64
	known bool
}

// String is the form that index.json has.
func (d prefixDigest) String() string {
	if !d.known {
		return ""
	}
	return fmt.Sprintf("%016x", d.sum)
}

// position is the end of the log, as queued or as durable.
type position struct {
	start  segment.Start
	uuid   segment.UUID
	open   bool
	end    int64  // of the last frame in the file
	frames uint32 // SegmentStart included, the Seal not
	next   segment.Seq
}

func (p position) offset() Offset { return Offset{p.start.ID, p.uuid, p.end} }

// Identity is the directory's writer UUID.
func (l *Log) Identity() segment.Identity { return l.identity }

// State says where the log stands.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return stateOf(l.head, l.durable)
}

func stateOf(head, durable position) State {
	return State{
		Segment:     head.start.ID,
		UUID:        head.uuid,
		Open:        head.open,
		Start:       head.start,
		Next:        head.next,
		Durable:     durable.offset(),
		DurableNext: durable.next,
		Frames:      durable.frames,
	}
}

// Sealed lists the sealed segments that stand here, in order.
func (l *Log) Sealed() []SealedSegment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]SealedSegment(nil), l.sealed...)
}

// Unflushed is how many bytes of frames wait for the disk: at most two segments.
func (l *Log) Unflushed() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unflushed
}

// Err is the failure that poisoned the log, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.poison
}

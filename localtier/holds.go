package localtier

import (
	"sync"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// holds are the readers in progress, each with the segment that it is at. Housekeeping
// leaves that one and what follows alone, within Config.ConsumerHoldMax.
type holds struct {
	mu      sync.Mutex
	readers map[*hold]struct{}
}

// hold is one reader's.
type hold struct {
	of *holds
	at segment.ID // of.mu; 0: it has not begun
}

// begin registers a reader. It ends its hold, whatever comes.
func (s *holds) begin() *hold {
	h := &hold{of: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers == nil {
		s.readers = make(map[*hold]struct{})
	}
	s.readers[h] = struct{}{}
	return h
}

// from says that the reader needs segment id and those after it, and no longer those
// before it.
func (h *hold) from(id segment.ID) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.at = id
}

func (h *hold) end() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	delete(h.of.readers, h)
}

// lowest is the oldest segment that a reader is at; wal.NoFloor if there is none.
func (s *holds) lowest() segment.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	floor := wal.NoFloor
	for h := range s.readers {
		if h.at != 0 {
			floor = min(floor, h.at)
		}
	}
	return floor
}

// floorInput is what decides which absorbed segments stay on this disk a while longer.
type floorInput struct {
	sealed    []wal.SealedSegment // that stand here, in order
	consumers []segment.Consumer
	reader    segment.ID // the oldest segment that a reader is at
	keepAll   bool       // Config.HydrateAll: whoever reads, and however much it is
	holdMax   int64      // bytes, newest first, that may be held
	pressed   bool       // the disk is nearly full
}

// planFloor is the retain floor (03 §2 step 4): the first segment that a consumer has
// not acknowledged whole, or that a reader is at; never more than holdMax behind the
// newest, and none at all on a disk that is nearly full: those rows are the bucket's to
// serve then. It only ever delays, since what it held back goes once it has moved, and it says
// nothing of segments that are not absorbed: CHECKPOINT keeps those, pressed or not.
func planFloor(in floorInput) segment.ID {
	if in.pressed {
		return wal.NoFloor
	}
	if in.keepAll {
		return 0
	}
	floor := in.reader
	for _, c := range in.consumers {
		floor = min(floor, holding(in.sealed, c.Cursor+1))
	}
	var held int64
	for i := len(in.sealed) - 1; i >= 0 && in.sealed[i].ID >= floor; i-- {
		if held += in.sealed[i].Bytes; held > in.holdMax {
			return in.sealed[i].ID + 1
		}
	}
	return floor
}

// holding is the first sealed segment with rows at or above seq; wal.NoFloor if none
// has: they are in the open one, or yet to come.
func holding(sealed []wal.SealedSegment, seq segment.Seq) segment.ID {
	for i := range sealed {
		if sealed[i].Next > seq && sealed[i].Next > sealed[i].Base {
			return sealed[i].ID
		}
	}
	return wal.NoFloor
}

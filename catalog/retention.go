package catalog

import (
	"time"

	"github.com/strandline/strandline/segment"
)

// RetentionMode says whether a chain gives anything up.
type RetentionMode string

// The modes. One that this build does not know keeps everything.
const (
	RetentionKeep     RetentionMode = "keep"
	RetentionInterest RetentionMode = "interest"
)

// Retention is what the chains of an epoch give up (03 §9). The zero value keeps
// everything.
type Retention struct {
	Mode RetentionMode `json:"mode"`
	// The limits, each what is left behind the boundary at least; 0: no such limit.
	Rows     uint64        `json:"rows,omitempty"`
	Bytes    int64         `json:"bytes,omitempty"`
	Age      time.Duration `json:"age,omitempty"`      // nanoseconds, by seal times
	Segments uint64        `json:"segments,omitempty"` // full-size: times SegmentBytes
	// SegmentBytes is a full-size segment; 0: 64 MiB.
	SegmentBytes int64 `json:"segment_bytes,omitempty"`
	// MinSegments is the floor, in full-size segments; 0: 2.
	MinSegments uint64 `json:"min_segments,omitempty"`
}

// Watermark is a boundary to give a chain up to: the last row and the slot that
// ends with it.
type Watermark struct {
	segment.Chain
	Seq     segment.Seq
	Segment segment.ID
	// Term of the owner who planned it; 0: nobody's, allowed once the lease has ended
	// or the chain is closed.
	Term segment.Term
}

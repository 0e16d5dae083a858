package localtier

import (
	"context"

	"github.com/strandline/strandline/segment"
)

// Traced is a step that Options.Trace is asked to begin: what it is about, as far as that
// is known by then.
type Traced struct {
	Step   TraceStep
	Chain  segment.Chain
	Stream string // append
	Rows   int    // append
	// Segment is the local one that is waited for or published, Position its slot's.
	Segment  segment.ID
	Position segment.ID
	Bytes    int64
}

// TraceStep names a step of 03 §1 and §2.
type TraceStep string

// The steps.
const (
	TraceAppend  TraceStep = "append"  // an append, from its admission to its acknowledgement
	TraceCommit  TraceStep = "commit"  // within it: queued until fsynced
	TraceShared  TraceStep = "shared"  // within it: until its segment is absorbed
	TracePublish TraceStep = "publish" // a sealed segment, from its bundle to its CHECKPOINT
	TracePlace   TraceStep = "place"   // within it: bundle and create-once PUT
	TraceAbsorb  TraceStep = "absorb"  // within it: the transaction
)

// traced begins a step. Where nothing is traced it costs nothing, and no allocation.
func (s *shardLog) traced(ctx context.Context, t Traced) (context.Context, func(error)) {
	if s.trace == nil {
		return ctx, untraced
	}
	t.Chain = s.chain
	return s.trace(ctx, t)
}

func untraced(error) {}

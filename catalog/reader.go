package catalog

import (
	"context"
	"time"

	"github.com/strandline/strandline/segment"
)

// PlanRequest asks for the refs of a stream between two positions, inclusive.
type PlanRequest struct {
	Stream string
	From   segment.Pos // zero: from the first live row
	To     segment.Pos // zero: to the tip
	Limit  int         // refs
}

// Plan is the refs to read, in order.
type Plan struct {
	Stream Stream
	// LiveFrom is where reading begins: if From is zero, the first position that is left,
	// of whatever epoch; else From's own epoch's, and From is given up if it lies below.
	LiveFrom segment.Pos
	// Refs end at or above max(From, LiveFrom) and begin at or below To. Each has rows that
	// its own chain keeps; LiveIn its epoch says from where on.
	Refs []Ref
	More bool
	// Cuts are the epochs whose chain gave up more than the stream's own live_from does:
	// LiveIn and Linked look at them.
	Cuts map[segment.Epoch]segment.Pos
	// TTL is how long the plan may be relied on, from before the query was sent.
	TTL time.Duration
}

// Reader: what readers need.
type Reader interface {
	Stream(ctx context.Context, name string) (Stream, error)
	// Streams pages by name.
	Streams(ctx context.Context, after string, limit int) ([]Stream, error)
	Plan(ctx context.Context, r PlanRequest) (Plan, error)
	// Slots pages a chain's slots by position, from `from` on. Rows below Trimmed are of
	// slots that are gone: retention's ends, several slots to a row.
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]SlotRow, error)
	// ChainRefs returns refs of a chain whose Last >= from, by Last, for shard scans.
	// In the order of their ends: what else holds rows up to the last one's end, and ends
	// behind it, RefsAcross tells.
	ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]Ref, error)
	// RefsAcross pages a chain's refs with First <= at < Last by (last, stream), one of a
	// stream at most; after is the last one seen, nil to begin.
	RefsAcross(ctx context.Context, c segment.Chain, at segment.Seq, after *Ref, limit int) (refs []Ref, more bool, err error)
}

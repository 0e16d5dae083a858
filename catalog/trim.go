package catalog

import (
	"context"
	"time"

	"github.com/strandline/strandline/segment"
)

// TrimPlan is what AdvanceRewritten and DueSlots say of a chain.
type TrimPlan struct {
	Chain ChainRow
	Now   time.Time
	// Due: Condemned > Trimmed and a grace has passed since CondemnedAt.
	Due   bool
	Slots []SlotRow // in [Trimmed, Condemned), at most the limit asked
	Named []Ref     // refs that name any of them: must be empty
}

// WalkPage is one page of a teardown.
type WalkPage struct {
	Stream   Stream
	LiveFrom segment.Pos // as the stream's newest chain has it
	Dead     []Ref       // given up wholly, each by its own chain or by the stream, in order
	Straddle *Ref        // the ref across LiveFrom, with the last page
	More     bool
}

// Trimmer: trim-check, retention, stream trim and teardown (03 §7, §9).
type Trimmer interface {
	// RaiseWatermark commits what a chain gives up, monotonic, and arms its reclaim marker
	// at once in the same transaction. One at or below the standing watermark is a no-op.
	// ErrConflict: the term is not the planner's ("term"), the lease lives ("lease"), a
	// durable consumer of the row stands below ("consumer"), it reaches absorbed_end
	// ("absorbed_end"), or no slot ends there ("slot").
	RaiseWatermark(ctx context.Context, w Watermark) (ChainRow, error)
	// DeadRefs returns refs of the chain wholly at or below its watermark, in order of
	// their last rows. Retired ones (RetireRefs) are gone from the next call.
	DeadRefs(ctx context.Context, c segment.Chain, limit int) (refs []Ref, more bool, err error)
	// StraddlingRefs pages the settled refs that the chain's watermark cuts in two, by
	// (last, stream); after is the last one seen, nil to begin.
	StraddlingRefs(ctx context.Context, c segment.Chain, after *Ref, limit int) (refs []Ref, more bool, err error)

	// AdvanceRewritten is step 1 of the trim-check.
	AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (ChainRow, error)
	// DueSlots is the look of step 2.
	DueSlots(ctx context.Context, c segment.Chain, limit int) (TrimPlan, error)
	// AdvanceTrim sets Trimmed from -> to (to <= Condemned) after the deletes; it
	// asserts again, in its transaction, that no ref names a slot below to and that the grace has passed.
	AdvanceTrim(ctx context.Context, c segment.Chain, from, to segment.ID) (ChainRow, error)
	// CondemnSlots is step 3: Condemned expect -> to with the database's time, and the
	// trim-check's marker due one grace out, in one transaction. Needs Trimmed = Condemned.
	CondemnSlots(ctx context.Context, m MarkerRef, c segment.Chain, expect, to segment.ID) (ChainRow, error)

	// TrimStream raises live_from to pos (never lowers it), arms the teardown.
	TrimStream(ctx context.Context, name string, pos segment.Pos) (Stream, error)
	// DeleteStream trims through the tip and lists the stream as deleted.
	DeleteStream(ctx context.Context, name string) (Stream, error)
	// WalkStream returns the next page of dead refs. The walk arms every watcher of a page
	// (ArmWatchers) before it retires any ref of it (RetireRefs).
	WalkStream(ctx context.Context, streamID int64, limit int) (WalkPage, error)
	// ArmWatchers arms, one grace out, the reap-check of settled keys, and makes the settle markers of
	// slots due.
	ArmWatchers(ctx context.Context, refs []Ref) error
	// RetireRefs deletes refs that stand unchanged (key, revision, last) and are
	// wholly below live_from; others are left. If a slot loses its last ref its settle marker is made due.
	RetireRefs(ctx context.Context, refs []Ref) (retired int, err error)
	// AcceptLoss is an operator's word that a span is lost for good (03 §4): the stream's
	// refs that name key become lost ones (LoseRef), the object's watcher is armed as by
	// ArmWatchers, and the audit table has it. For the key of a void slot that holds
	// rows, and no stream, its parked settle marker is resolved instead. ErrNotFound if
	// neither stands, as after a call whose answer was lost. It proves nothing: its caller has.
	AcceptLoss(ctx context.Context, key, stream string) (lost []Ref, err error)
	// AdvanceJournal moves the chain's TrimJournal from n to n+1.
	AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error
}

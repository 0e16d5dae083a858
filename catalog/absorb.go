package catalog

import (
	"context"

	"github.com/strandline/strandline/segment"
)

// Absorb is one slot on its way into the catalog.
type Absorb struct {
	Slot SlotRow
	// Key and Class of the slot's object; its refs carry them.
	Key   string
	Class segment.Class
	// Refs: one per chunk of the footer, in footer order; StreamID and PrevLast are
	// filled by the verb.
	Refs      []Ref
	Consumers []segment.Consumer
	// CallerOwner and CallerTerm are the chain owner's; Nil and zero for anyone else.
	CallerOwner segment.UUID
	CallerTerm  segment.Term
	// Void absorbs a slot that cannot pass the guards: only AbsorbedEnd moves.
	// Allowed to the present owner, or to anyone after the lease's end.
	Void   bool
	Reason string
}

// Absorbed is the outcome of an AbsorbSlot.
type Absorbed struct {
	Chain ChainRow
	// Already: this very slot had been absorbed before (no-op).
	Already  bool
	Inserted int // refs
	Dead     int // chunks wholly below the effective live_from, not inserted
}

// Absorber: published slot -> refs, settle marker, chain cursors (03 §2 step 3).
type Absorber interface {
	// AbsorbSlot checks every guard of 03 §2 step 3: position, term, seq continuity,
	// previous-UUID link. A slot below AbsorbedEnd is a no-op (Already) only for the
	// chain's present term and only if this very UUID and digest stood there and was
	// not void; else ErrFenced or ErrVoid. A slot above AbsorbedEnd is ErrConflict.
	// Its settle marker is armed in the same transaction, due at once.
	AbsorbSlot(ctx context.Context, a Absorb) (Absorbed, error)
}

package absorb

import (
	"context"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Void absorbs what was found at absorbed_end as void: only absorbed_end moves. It
// is an act of its own, never a fallback: the caller is the chain's present owner,
// or the lease has ended (the verb checks both), and has a Finding in hand.
//
// The slot's rows stay where they are: a void slot that holds rows keeps a parked
// settle marker and an alarm until a person says accept-loss.
func Void(ctx context.Context, cat Catalog, b Bucket, f *Finding, who Caller) (catalog.Absorbed, error) {
	a := catalog.Absorb{
		Slot:  catalog.SlotRow{Chain: f.Chain, ID: f.ID},
		Key:   f.Key,
		Class: b.Class,
	}
	if f.Footer != nil && f.Footer.Slot != nil {
		a = FromFooter(f.Footer, b, f.Key, f.Size, who)
		a.Refs, a.Consumers = nil, nil
	} else if meta, err := segment.ParseMeta(f.Meta); err == nil {
		// An undecodable object may still say whose it was.
		a.Slot.UUID, a.Slot.Digest = meta.UUID, meta.Digest
	} else {
		// It does not. A name derived from the key makes a second call the same act.
		a.Slot.UUID = uuid.NewSHA1(uuid.NameSpaceURL, []byte(f.Key))
	}
	// The position is the key's, whatever the footer claims.
	a.Slot.Chain, a.Slot.ID, a.Slot.Bytes = f.Chain, f.ID, f.Size
	a.Slot.Closed = false
	a.Void, a.Reason = true, f.Err.Error()
	a.CallerOwner, a.CallerTerm = who.Owner, who.Term
	done, err := cat.AbsorbSlot(ctx, a)
	if err != nil || done.Already {
		return done, err
	}
	// A crash here loses the audit row only: the slot row says void.
	return done, cat.Audit(ctx, "void", f.Key, a.Reason)
}

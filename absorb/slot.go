package absorb

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Catalog is what absorbing needs of one.
type Catalog interface {
	catalog.Absorber
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
	Audit(ctx context.Context, kind, subject, detail string) error
}

// Slot absorbs the slot that stands at a position, for the chain's owner or for
// anyone: read its footer, bring the copies of the set up to it, commit.
//
// objstore.ErrNotFound: nothing stands there. *Finding: it can only be voided. *HigherTermError:
// stop. catalog.ErrFenced, ErrVoid, ErrConflict as of AbsorbSlot. Everything else: run it again.
func Slot(ctx context.Context, cat Catalog, b Bucket, c segment.Chain, id segment.ID, who Caller) (catalog.Absorbed, error) {
	standing, err := Read(ctx, b, c, id)
	if err != nil {
		return catalog.Absorbed{}, err
	}
	return Commit(ctx, cat, b, standing, who)
}

// Commit absorbs a slot whose footer is known.
func Commit(ctx context.Context, cat Catalog, b Bucket, s Standing, who Caller) (catalog.Absorbed, error) {
	if err := Copies(ctx, cat, b, s.Key); err != nil {
		return catalog.Absorbed{}, err
	}
	// A crash here leaves a slot that stands and is not absorbed: the next owner, or
	// the auditor after the lease's end, comes by here again.
	done, err := cat.AbsorbSlot(ctx, FromFooter(s.Footer, b, s.Key, s.Info.Size, who))
	if !errors.Is(err, catalog.ErrConflict) {
		return done, err
	}
	return done, explain(ctx, cat, s, err)
}

// explain turns a failed guard into a *Finding if the slot stands at absorbed_end
// and still does not fit there. The row is read after the refusal and the footer was
// proven by its checksum, so both sides of the comparison were read for it.
func explain(ctx context.Context, cat Catalog, s Standing, cause error) error {
	slot := s.Footer.Slot
	row, err := cat.Chain(ctx, slot.Chain)
	if err != nil {
		return fmt.Errorf("%w; reading the chain row: %w", cause, err)
	}
	if row.AbsorbedEnd != slot.ID || row.Closed {
		return cause
	}
	err = Guards(row, slot, s.Key)
	var guard *GuardError
	if errors.As(err, &guard) {
		return &Finding{Chain: slot.Chain, ID: slot.ID, Key: s.Key, Size: s.Info.Size, Meta: s.Info.Meta, Footer: s.Footer, Err: guard}
	}
	if err != nil {
		return err
	}
	return cause
}

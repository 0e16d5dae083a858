package absorb

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Report counts what a pass absorbed.
type Report struct {
	Absorbed int
	Voided   int
	Copied   int // copies that a bucket of a set missed (Checker)
}

// All absorbs every slot that stands from absorbed_end on, until nothing stands at
// the next position. A slot that cannot pass the guards is voided: the caller is the
// chain's present owner (who) or, with a zero Caller, the lease has ended.
//
// *HigherTermError stops it; catalog.ErrFenced says that who is the owner no more.
func All(ctx context.Context, cat Catalog, b Bucket, c segment.Chain, who Caller) (Report, error) {
	var done Report
	for {
		row, err := cat.Chain(ctx, c)
		if err != nil {
			return done, fmt.Errorf("read chain %s: %w", c, err)
		}
		if err := stillMine(row, who); err != nil {
			return done, err
		}
		if row.Closed {
			return done, nil
		}
		more, err := next(ctx, cat, b, row, who, &done)
		if err != nil || !more {
			return done, err
		}
	}
}

// next absorbs or voids what stands at absorbed_end. more is false if nothing does.
func next(ctx context.Context, cat Catalog, b Bucket, row catalog.ChainRow, who Caller, done *Report) (more bool, err error) {
	got, err := Slot(ctx, cat, b, row.Chain, row.AbsorbedEnd, who)
	var found *Finding
	switch {
	case err == nil:
		if !got.Already {
			done.Absorbed++
		}
		return true, nil
	case errors.Is(err, objstore.ErrNotFound):
		return false, nil
	case errors.As(err, &found):
		voided, err := Void(ctx, cat, b, found, who)
		if err == nil && !voided.Already {
			done.Voided++
		}
		return err == nil, err
	case errors.Is(err, catalog.ErrConflict):
		// Somebody else absorbed it first, or this is a refusal that repeats.
		now, rerr := cat.Chain(ctx, row.Chain)
		if rerr == nil && now.AbsorbedEnd > row.AbsorbedEnd {
			return true, nil
		}
		return false, errors.Join(err, rerr)
	}
	return false, err
}

func stillMine(row catalog.ChainRow, who Caller) error {
	if who == (Caller{}) || (row.Owner == who.Owner && row.Term == who.Term) {
		return nil
	}
	return &catalog.ConflictError{
		Verb: "absorb all", Guard: "owner and term", Kind: catalog.ErrFenced,
		Want: fmt.Sprintf("%s in term %d", who.Owner, who.Term),
		Have: fmt.Sprintf("%s in term %d", row.Owner, row.Term),
	}
}

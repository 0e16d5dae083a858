package localtier

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// judge decides about another segment's slot at the position that a segment of ours
// was to take (03 §2 step 2). errAgain: it was dealt with, take the next position.
//
//	chain row: not ours any more                   fenced
//	chain row: absorbed_end moved meanwhile        look again
//	slot: a term below the last absorbed one's     void, next position (a late fence, a stray)
//	slot: a fence of a term before ours, later     void, next position (of a taker that never
//	than the last absorbed one's                   began: the chain was taken back from it)
//	slot: not decodable, read twice                void, next position
//	slot: anything else                            fenced
//	nothing stands there any more                  fenced
func (s *shardLog) judge(ctx context.Context, seg wal.SealedSegment, at segment.ID, taken *occupiedError) error {
	if err := s.lookAgain(ctx); err != nil {
		return err
	}
	row := s.chainRow()
	if row.AbsorbedEnd != at {
		return errAgain
	}
	found, err := absorb.Read(ctx, s.bucket, s.chain, at)
	var finding *absorb.Finding
	switch {
	case errors.As(err, &finding):
		return s.void(ctx, finding)
	case errors.Is(err, objstore.ErrNotFound):
		return s.fenced(errVanished.Error())
	case err != nil:
		return fmt.Errorf("look at the slot that stands at position %d: %w", at, err)
	}
	if slot := found.Footer.Slot; slot.Term < row.LastTerm || s.neverBegan(row, slot) {
		return s.void(ctx, overtaken(found, row, s.term))
	}
	return s.fenced(fmt.Sprintf("%v: segment %s of term %d, where %s of term %d was to go", taken, found.Footer.Slot.UUID, found.Footer.Slot.Term, seg.UUID, seg.Term))
}

// void absorbs what cannot be absorbed, as the chain's present owner.
func (s *shardLog) void(ctx context.Context, f *absorb.Finding) error {
	done, err := absorb.Void(ctx, s.catalog, s.bucket, f, s.caller())
	if err != nil {
		return s.absorbError(err)
	}
	s.log.Warn("absorbed a slot as void", "chain", s.chain.String(), "key", f.Key, "reason", f.Err)
	s.chainMoved(done.Chain)
	return errAgain
}

// absorbMine is step 3 for a slot of ours that stands at absorbed_end.
func (s *shardLog) absorbMine(ctx context.Context, standing absorb.Standing) error {
	done, err := absorb.Commit(ctx, s.catalog, s.bucket, standing, s.caller())
	if err != nil {
		return s.absorbError(err)
	}
	s.chainMoved(done.Chain)
	return s.at(StepAbsorbed)
}

// absorbError says what a failed absorb means to the owner.
func (s *shardLog) absorbError(err error) error {
	var finding *absorb.Finding
	switch {
	case errors.Is(err, catalog.ErrFenced), errors.Is(err, absorb.ErrHigherTerm):
		return s.fenced(err.Error())
	case errors.As(err, &finding):
		// Our own slot, at absorbed_end, under our own term, and it does not fit:
		// the catalog is not the one that we have been writing to.
		return s.halted("absorb", err)
	case errors.Is(err, catalog.ErrInvalid), errors.Is(err, catalog.ErrCorrupt):
		return s.halted("absorb", err)
	}
	// ErrVoid: somebody voided it after our lease's end. Its rows are still here, and the
	// next look finds the same predecessor at the next position: published again.
	return fmt.Errorf("absorb: %w", err)
}

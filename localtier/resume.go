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

// resume is step 0 of 03 §3, the ordinary restart: the chain's owner is this very
// directory, and what lies here continues the chain. No fence, no hydrate: every
// acknowledged row keeps its seq, and the publisher goes on at absorbed_end.
func (s *shardLog) resume(ctx context.Context, row catalog.ChainRow, absorbed segment.ID) error {
	row, err := s.acquireTerm(ctx, row, true)
	if err != nil {
		return err
	}
	// A crash here leaves a term without a segment: the next start takes the chain back.
	return s.goOn(ctx, row, absorbed)
}

// takeBack is for a directory that may continue the chain, though the row does not say
// so plainly: another took it and died before its first slot, its own last term left no
// segment, or slots stand that nobody absorbed. Acquire, absorb what stands, look again.
//
// A term begins with its first slot that is absorbed, so a taker that never came so far
// has changed nothing: the rows here keep their seqs. Its fence may stand or still be on
// its way; voided, it takes no row with it (see passOver and judge).
func (s *shardLog) takeBack(ctx context.Context, before catalog.ChainRow) error {
	row, err := s.acquireTerm(ctx, before, false)
	if err != nil {
		return err
	}
	if before.Owner != s.owner {
		if err := s.auditTakeover(ctx, before); err != nil {
			return err
		}
	}
	local, st := s.wal.Sealed(), s.wal.State()
	if row, err = s.passOver(ctx, row, local, st); err != nil {
		return err
	}
	if row, err = s.absorbStanding(ctx, row); err != nil {
		return err
	}
	// A crash here, or anywhere before, leaves the chain to this directory in a term
	// without a slot: the next start comes by here again.
	if err := s.at(StepTakenBack); err != nil {
		return err
	}
	absorbed, links := linksTo(row, local, st)
	switch {
	case row.Closed:
		return s.leaveClosed(ctx, row)
	case links:
		return s.goOn(ctx, row, absorbed)
	case lostSlots(row, local, st):
		return s.refuse(ErrRolledBack, fmt.Errorf("local segments begin at seq %d, and the catalog's chain ends at %d, all that stands in the bucket absorbed",
			st.Start.Base, row.NextSeq-1), rolledBackNext)
	}
	return s.letGo(ctx, row)
}

// letGo gives the chain back under this directory's name, which it will never have again,
// and sets the directory aside.
func (s *shardLog) letGo(ctx context.Context, row catalog.ChainRow) error {
	// First the lease: a fresh directory is another writer, and would wait for it.
	if err := s.catalog.ReleaseChain(ctx, s.chain, s.owner, s.term); err != nil {
		return s.takeoverError("give the chain back", err)
	}
	// A crash here: the same decision again, without a lease in its way.
	if err := s.at(StepLetGo); err != nil {
		return err
	}
	return s.setAside(ctx, s.whyLeftover(row))
}

// passOver voids the fences that takers placed and never absorbed, while the local
// segments continue the chain where they stand. Such a term never began, and holds no
// row. A fence that closes the chain is left: what it says was decided.
func (s *shardLog) passOver(ctx context.Context, row catalog.ChainRow, local []wal.SealedSegment, st wal.State) (catalog.ChainRow, error) {
	for {
		if _, links := linksTo(row, local, st); !links || row.Closed {
			return row, nil
		}
		found, err := absorb.Read(ctx, s.bucket, s.chain, row.AbsorbedEnd)
		var finding *absorb.Finding
		switch {
		case errors.Is(err, objstore.ErrNotFound), errors.As(err, &finding):
			return row, nil // nothing, or nothing of a taker's
		case err != nil:
			return row, fmt.Errorf("look at the slot that stands at position %d: %w", row.AbsorbedEnd, err)
		case !s.neverBegan(row, found.Footer.Slot):
			return row, nil
		}
		done, err := absorb.Void(ctx, s.catalog, s.bucket, overtaken(found, row, s.term), s.caller())
		if err != nil {
			return row, s.takeoverError("void a fence that was never absorbed", err)
		}
		row = done.Chain
	}
}

// neverBegan says that a slot at absorbed_end is the fence of a term between the last
// one that has a slot in the chain and ours.
func (s *shardLog) neverBegan(row catalog.ChainRow, slot *segment.Slot) bool {
	return slot.Fence && !slot.Closed && row.LastTerm < slot.Term && slot.Term < s.term
}

// overtaken is the finding on a slot whose term is not the chain's to have any more.
func overtaken(found absorb.Standing, row catalog.ChainRow, term segment.Term) *absorb.Finding {
	slot := found.Footer.Slot
	want := fmt.Sprintf("%d or more", row.LastTerm)
	if slot.Term > row.LastTerm {
		want = fmt.Sprintf("%d or less, or %d: it is a fence that was not absorbed before term %d began", row.LastTerm, term, term)
	}
	return &absorb.Finding{
		Chain: row.Chain, ID: row.AbsorbedEnd, Key: found.Key, Size: found.Info.Size, Meta: found.Info.Meta, Footer: found.Footer,
		Err: &absorb.GuardError{Guard: "term", Want: want, Have: fmt.Sprint(slot.Term)},
	}
}

// goOn serves what lies here, in the term just taken.
func (s *shardLog) goOn(ctx context.Context, row catalog.ChainRow, absorbed segment.ID) error {
	local := s.wal.Sealed()
	s.begin(row, absorbed, local)
	if err := s.checkpointThrough(ctx, absorbed, local); err != nil {
		return err
	}
	s.adoptWatermark(ctx, row)
	st := s.wal.State()
	if !st.Open {
		return nil // the next append opens a segment, of this term
	}
	if err := s.wal.StartSegment(ctx, s.startAfter(st)); err != nil {
		return fmt.Errorf("begin a segment of term %d: %w", s.term, err)
	}
	return nil
}

// startAfter is the SegmentStart that follows the newest segment.
func (s *shardLog) startAfter(st wal.State) segment.Start {
	start := segment.Start{
		Chain: s.chain, ID: st.Segment + 1, Base: st.Next, Prev: st.UUID,
		Created: s.now().UnixNano(),
	}
	s.fillStart(&start)
	return start
}

// fillStart adds what only the owner knows, also to segments that the log opens by
// itself.
func (s *shardLog) fillStart(start *segment.Start) {
	start.Term = s.term
	start.Consumers, start.Producers = s.carried.lists()
}

// checkpointThrough brings CHECKPOINT up to what the chain row says is absorbed: a
// crash may have come between the absorb and the record of it.
func (s *shardLog) checkpointThrough(ctx context.Context, absorbed segment.ID, local []wal.SealedSegment) error {
	for _, seg := range local {
		if seg.ID == absorbed {
			return s.wal.Checkpoint(ctx, seg.End())
		}
	}
	return nil // housekeeping removed it, after its checkpoint
}

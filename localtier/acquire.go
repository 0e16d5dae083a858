package localtier

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// acquire takes the chain with an empty directory: steps 1 to 4 of 03 §3.
func (s *shardLog) acquire(ctx context.Context, before catalog.ChainRow) error {
	row, err := s.acquireTerm(ctx, before, false)
	if err != nil {
		return err
	}
	// A crash from here on leaves an empty directory, which never resumes: the next
	// start takes another term and comes by here again.
	if before.Owner != uuid.Nil {
		if err := s.auditTakeover(ctx, before); err != nil {
			return err
		}
		if row, err = s.takeOver(ctx, row, false); err != nil {
			return err
		}
	} else {
		s.carried.restart(row.Consumers, nil) // the epoch before left them
	}
	start := segment.Start{
		Chain: s.chain, ID: row.AbsorbedEnd, Base: row.NextSeq, Prev: row.LastUUID, Created: s.now().UnixNano(),
	}
	s.fillStart(&start)
	s.begin(row, row.AbsorbedEnd-1, nil)
	s.index.startAt(row.NextSeq)
	// On a log without segments this writes CHECKPOINT for what stands before it.
	if err := s.wal.StartSegment(ctx, start); err != nil {
		return fmt.Errorf("begin the first segment: %w", err)
	}
	return nil
}

// takeOver stops the owner before: absorb what it published, then fence. A chain
// that nobody owned has nobody to stop. One that was closed meanwhile is over.
func (s *shardLog) takeOver(ctx context.Context, row catalog.ChainRow, closing bool) (catalog.ChainRow, error) {
	row, err := s.absorbStanding(ctx, row)
	switch {
	case err != nil:
		return row, err
	case row.Closed && closing:
		return row, nil
	case row.Closed:
		return row, s.leaveClosed(ctx, row)
	}
	return s.fence(ctx, row, closing)
}

// inherit takes over what the chain carries: consumers from its row, producers from the
// last slot that stands (else they are forgotten).
func (s *shardLog) inherit(ctx context.Context, row catalog.ChainRow) error {
	err := s.carried.fromSlot(ctx, s.bucket, row)
	if !segment.IsStructural(err) {
		return err
	}
	// That it was absorbed is in the catalog; what became of it is for fsck to say.
	return s.catalog.Audit(ctx, "damage", s.chain.String(), "producers are forgotten: "+err.Error())
}

// absorbStanding is step 2: every slot that stands from absorbed_end on. A slot of a
// higher term while the row still says that we own the chain means that the catalog
// lost terms: acquire again, above it.
func (s *shardLog) absorbStanding(ctx context.Context, row catalog.ChainRow) (catalog.ChainRow, error) {
	for {
		_, err := absorb.All(ctx, s.catalog, s.bucket, s.chain, s.caller())
		var higher *absorb.HigherTermError
		if errors.As(err, &higher) {
			if row, err = s.climb(ctx, row, higher.Slot); err != nil {
				return row, err
			}
			continue
		}
		if err != nil {
			return row, s.takeoverError("absorb what stands", err)
		}
		return s.catalog.Chain(ctx, s.chain)
	}
}

// climb acquires until the term is above the one that stands in the bucket.
func (s *shardLog) climb(ctx context.Context, row catalog.ChainRow, over segment.Term) (catalog.ChainRow, error) {
	for row.Term <= over {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		var err error
		// The row is ours: somebody who took it meanwhile moved the term, and this fails.
		if row, err = s.acquireTerm(ctx, row, false); err != nil {
			return row, err
		}
	}
	return row, nil
}

// takeoverError tells a chain that somebody else took meanwhile from the rest.
func (s *shardLog) takeoverError(doing string, err error) error {
	if errors.Is(err, catalog.ErrFenced) {
		return s.refuse(ErrHeld, err, "another writer took the chain while this one did; start again to take part")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (s *shardLog) auditTakeover(ctx context.Context, before catalog.ChainRow) error {
	detail := fmt.Sprintf("writer %s took term %d; before: writer %s, term %d", s.owner, s.term, before.Owner, before.Term)
	if err := s.catalog.Audit(ctx, "takeover", s.chain.String(), detail); err != nil {
		return fmt.Errorf("record the takeover: %w", err)
	}
	return nil
}

func (s *shardLog) caller() absorb.Caller { return absorb.Caller{Owner: s.owner, Term: s.term} }

package localtier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// takeAttempts bounds the races for a chain that one Open takes part in.
const takeAttempts = 5

// take makes this directory the chain's owner (03 §3): it resumes, takes the chain back
// from a taker that never began, or acquires it with an empty directory. One that does not
// continue the chain is set aside first, and a fresh one acquires.
func (s *shardLog) take(ctx context.Context) error {
	err := s.takeFrom(ctx, s.seen)
	for range takeAttempts {
		if !movedOn(err) && !errors.Is(err, errSetAside) {
			break
		}
		if s.seen, err = s.look(ctx); err != nil {
			return err
		}
		err = s.takeFrom(ctx, s.seen)
	}
	if err != nil {
		return err
	}
	s.abortLeftovers(ctx)
	// Behind the fence, so that what is in the chain by now is all that ever will be.
	return s.judgeAside(ctx)
}

func (s *shardLog) takeFrom(ctx context.Context, row catalog.ChainRow) error {
	d, err := s.fits(ctx, row)
	if err != nil {
		return err
	}
	switch d.way {
	case wayResume:
		return s.resume(ctx, row, d.absorbed)
	case wayTakeBack:
		return s.takeBack(ctx, row)
	case waySetAside:
		return s.setAside(ctx, s.whyLeftover(row))
	case wayClosed:
		return s.leaveClosed(ctx, row)
	}
	return s.acquire(ctx, row)
}

// way is how a directory comes to its chain.
type way int

const (
	wayAcquire  way = iota // it is empty
	wayResume              // the owner, and it continues the chain
	wayTakeBack            // it may continue the chain: acquire, absorb what stands, look again
	waySetAside            // it never will
	wayClosed              // nobody may have the chain
)

// decision is what a look at the chain says of this directory.
type decision struct {
	way      way
	absorbed segment.ID // wayResume: the last local segment that is absorbed; 0: none is
}

// decide is the whole of it, and changes nothing.
//
//	no local segment                                                      acquire
//	the row is its own, of the term that wrote last here, and it links    resume
//	a term later than any here has a slot in the chain                    set aside: it never links again
//	anything else                                                         take back
//
// In the last case another took the chain and has (as far as the catalog knows) not begun,
// or what stands in the bucket is not absorbed yet, or it is an old copy. Which of
// them, only the bucket tells, and only to an owner: nobody else may void.
func decide(row catalog.ChainRow, owner segment.UUID, local []wal.SealedSegment, st wal.State) decision {
	switch {
	case row.Closed:
		return decision{way: wayClosed}
	case st.Segment == 0:
		return decision{way: wayAcquire}
	case row.LastTerm > st.Start.Term:
		return decision{way: waySetAside}
	}
	absorbed, links := linksTo(row, local, st)
	if links && row.Owner == owner && row.Term == st.Start.Term {
		return decision{way: wayResume, absorbed: absorbed}
	}
	return decision{way: wayTakeBack}
}

// fits says how this directory may have the chain as the row stands, or that it may not.
// Nothing is changed.
func (s *shardLog) fits(ctx context.Context, row catalog.ChainRow) (decision, error) {
	// One picture: nothing is sealed before the first append.
	local, st := s.wal.Sealed(), s.wal.State()
	d := decide(row, s.owner, local, st)
	if st.Segment != 0 && row.Owner == uuid.Nil {
		return d, s.refuse(ErrLeftover, errors.New("the catalog says that nobody ever owned the chain"),
			"is it this directory's catalog? If it is, move the directory aside to keep its rows, and start with an empty one")
	}
	// A term has one owner, so the second is as clear as the first.
	if st.Segment != 0 && (st.Start.Term > row.Term || st.Start.Term == row.Term && row.Owner != s.owner) {
		return d, s.refuse(ErrRolledBack, fmt.Errorf("local segments are of term %d of writer %s, the catalog says term %d of writer %s",
			st.Start.Term, s.owner, row.Term, row.Owner), rolledBackNext)
	}
	return d, s.held(ctx, row, d)
}

// held refuses a chain whose owner may be alive. A directory that resumes, or that took
// the chain and holds nothing yet, is that owner.
func (s *shardLog) held(ctx context.Context, row catalog.ChainRow, d decision) error {
	_, links := linksTo(row, s.wal.Sealed(), s.wal.State())
	mine := row.Owner == s.owner && (d.way == wayAcquire || links)
	if mine || s.steal || d.way == wayClosed || row.Owner == uuid.Nil {
		return nil
	}
	now, err := s.catalog.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the catalog's clock: %w", err)
	}
	if !now.Before(row.LeaseEnd) {
		return nil
	}
	cause := fmt.Errorf("writer %s (%s) until %s", row.Owner, row.Address, row.LeaseEnd.Format(time.RFC3339))
	if row.Owner == s.owner {
		cause = fmt.Errorf("%w; this directory bears that writer's name and does not continue the chain: an old copy?", cause)
	}
	return s.refuse(ErrHeld, cause, heldNext)
}

const heldNext = "stop that writer, wait for its lease to end, or pass --steal"

// look reads the chain as of now: the head in the bucket first, then the row, so
// that a row behind its head means a catalog that was rolled back (03 §0).
func (s *shardLog) look(ctx context.Context) (catalog.ChainRow, error) {
	key := segment.HeadKey(s.chain)
	body, _, err := s.bucket.Set.First().ReadAll(ctx, key, segment.MaxHeadBytes)
	none := errors.Is(err, objstore.ErrNotFound) // no slot of this chain has gone yet
	if err != nil && !none {
		return catalog.ChainRow{}, fmt.Errorf("read the chain's head: %w", err)
	}
	row, err := s.catalog.Chain(ctx, s.chain)
	if err != nil {
		return row, fmt.Errorf("read the chain row: %w", err)
	}
	if none {
		return row, nil
	}
	head, err := segment.DecodeHead(body)
	if err != nil {
		return row, segment.InFile(err, key, 0)
	}
	if err := catalog.CheckHead(*head, row); err != nil {
		return row, s.refuse(ErrRolledBack, err, rolledBackNext)
	}
	return row, nil
}

const rolledBackNext = "no rows are taken, since positions already used would be used again: " +
	"bring the catalog back to its newest state (a rebuild from the bucket comes with a later release)"

// linksTo says whether local segments continue the chain at absorbed_end, and which
// of them is the last absorbed one (0: none of them is).
func linksTo(row catalog.ChainRow, local []wal.SealedSegment, st wal.State) (absorbed segment.ID, ok bool) {
	for _, seg := range local {
		if seg.Prev == row.LastUUID && seg.Base == row.NextSeq {
			return seg.ID - 1, true
		}
	}
	if st.Open {
		return st.Segment - 1, st.Start.Prev == row.LastUUID && st.Start.Base == row.NextSeq
	}
	// The newest one is sealed, and absorbed.
	return st.Segment, st.UUID == row.LastUUID && st.Next == row.NextSeq
}

// lostSlots says that the chain row, after what stands in the bucket was absorbed, is
// behind what this directory once saw absorbed, and nobody else's slots explain it: the
// catalog lost commits, and the bucket has trimmed what they were about.
func lostSlots(row catalog.ChainRow, local []wal.SealedSegment, st wal.State) bool {
	first := st.Start
	if len(local) > 0 {
		first = segment.Start{Base: local[0].Base, Term: local[0].Term}
	}
	// All that was before the oldest segment here was absorbed, or it would be here.
	return row.NextSeq < first.Base && row.LastTerm <= first.Term
}

func (s *shardLog) whyLeftover(row catalog.ChainRow) error {
	if row.Owner != s.owner {
		return fmt.Errorf("writer %s took the chain (term %d), this directory is writer %s", row.Owner, row.Term, s.owner)
	}
	return fmt.Errorf("the chain goes on after segment %s at seq %d, which no local segment does: an old copy of the directory", row.LastUUID, row.NextSeq)
}

func (s *shardLog) refuse(kind, cause error, next string) error {
	return &ShardError{Chain: s.chain, Dir: s.dir, Doing: "take the chain", Kind: kind, Err: cause, Next: next}
}

// movedOn says that the chain row changed, or may have, between a look and the
// compare-and-set: look again.
func movedOn(err error) bool {
	var c *catalog.ConflictError
	return errors.As(err, &c) && (c.Guard == "term" || c.Guard == "owner") || errors.Is(err, catalog.ErrAmbiguous)
}

// acquireTerm is the compare-and-set on the term, of resume and acquire alike.
func (s *shardLog) acquireTerm(ctx context.Context, row catalog.ChainRow, resume bool) (catalog.ChainRow, error) {
	asked := s.now()
	got, err := s.catalog.AcquireChain(ctx, catalog.Acquire{
		Chain: s.chain, Owner: s.owner, Address: s.address, Lease: s.cfg.LeaseTime,
		Expect: row.Term, Resume: resume, Steal: s.steal && !resume,
	})
	var c *catalog.ConflictError
	switch {
	case err == nil:
		s.term = got.Term
		s.lease.extend(asked)
		return got, s.at(StepAcquired)
	case errors.As(err, &c) && c.Guard == "lease":
		return got, s.refuse(ErrHeld, err, heldNext)
	}
	// A lost answer is met again as a term that moved on: the next look resumes or
	// acquires above it.
	return got, fmt.Errorf("acquire the chain: %w", err)
}

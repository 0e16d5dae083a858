package localtier

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// takeAttempts bounds the races for a chain that one Open takes part in.
const takeAttempts = 5

// take makes this directory the chain's owner: resume if it is the one that the
// chain row names and its segments continue the chain, else acquire with an empty
// directory (03 §3).
func (s *shardLog) take(ctx context.Context) error {
	err := s.takeFrom(ctx, s.seen)
	for range takeAttempts {
		if !movedOn(err) {
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
	return nil
}

func (s *shardLog) takeFrom(ctx context.Context, row catalog.ChainRow) error {
	absorbed, err := s.fits(row)
	if err != nil {
		return err
	}
	if s.wal.State().Segment == 0 {
		return s.acquire(ctx, row)
	}
	return s.resume(ctx, row, absorbed, s.wal.Sealed())
}

// fits says whether this directory may have the chain as the row stands, and which
// local segment is the last absorbed one. Nothing is changed.
func (s *shardLog) fits(row catalog.ChainRow) (absorbed segment.ID, err error) {
	if row.Closed {
		return 0, s.refuse(ErrChainClosed, nil, "its epoch is over: write to the open one (`strandline topology show`)")
	}
	// One picture: nothing is sealed before the first append.
	local, st := s.wal.Sealed(), s.wal.State()
	if st.Segment == 0 {
		return 0, nil
	}
	if row.Owner == s.owner && st.Start.Term > row.Term {
		return 0, s.refuse(ErrRolledBack, fmt.Errorf("local segments are of term %d, the catalog says %d", st.Start.Term, row.Term), rolledBackNext)
	}
	absorbed, links := linksTo(row, local, st)
	if row.Owner != s.owner || !links {
		return 0, s.refuse(ErrLeftover, s.whyLeftover(row), "its rows were not touched: move the directory aside to keep them, and start with an empty one")
	}
	return absorbed, nil
}

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
	"bring the catalog back to its newest state, or rebuild it from the bucket (`strandline rebuild`)"

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

func (s *shardLog) whyLeftover(row catalog.ChainRow) error {
	if row.Owner == uuid.Nil {
		return errors.New("the catalog says that nobody ever owned the chain: is it this directory's catalog?")
	}
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
		return got, s.refuse(ErrHeld, err, "stop that writer, wait for its lease to end, or pass --steal")
	}
	// A lost answer is met again as a term that moved on: the next look resumes or
	// acquires above it.
	return got, fmt.Errorf("acquire the chain: %w", err)
}

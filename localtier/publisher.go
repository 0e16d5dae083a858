package localtier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// errAgain: the chain row moved on in a way that leaves the segment to be published;
// look again and go on at once.
var errAgain = errors.New("the position moved")

// placed remembers the slot that stands while its absorb is being tried again, so
// that a catalog outage does not upload it anew each time.
type placed struct {
	id       segment.ID // position
	uuid     segment.UUID
	standing absorb.Standing
}

// publishLoop publishes sealed segments strictly in order: slot n+1 is not sent
// before slot n is absorbed. Failures are tried again with back-off; segments queue
// locally meanwhile, and backpressure bounds them.
func (s *shardLog) publishLoop(ctx context.Context) {
	doubt := true // the chain row is to be read again before anything is sent
	for tries := 0; ; {
		seg, ok := s.nextSealed(ctx)
		if !ok {
			return
		}
		tctx, done := s.traced(ctx, Traced{Step: TracePublish, Segment: seg.ID, Bytes: seg.Bytes, Rows: int(seg.Next - seg.Base)})
		err := s.publish(tctx, seg, doubt)
		done(err)
		doubt = doubtful(err)
		switch {
		case err == nil:
			tries = 0
			continue
		case ctx.Err() != nil || errors.Is(err, errCut):
			return
		case isFatal(err):
			s.stopAndTell(ctx, err)
			return
		case errors.Is(err, errAgain):
			continue
		}
		s.note(fmt.Sprintf("publish segment %d", seg.ID), err)
		if !pause(ctx, backoff(s.cfg, tries, err)) {
			return
		}
		tries++
	}
}

// doubtful says that the chain row may not be what we last saw. A plain
// unavailability says nothing about it.
func doubtful(err error) bool {
	return err != nil && (!errors.Is(err, objstore.ErrUnavailable) && !errors.Is(err, catalog.ErrUnavailable) ||
		errors.Is(err, objstore.ErrAmbiguous) || errors.Is(err, catalog.ErrAmbiguous))
}

// backoff is full jitter over a doubling window, and no less than a store asked for in
// what failed.
func backoff(c Config, tries int, failed error) time.Duration {
	window := min(c.Backoff<<min(tries, 16), c.MaxBackoff)
	return max(c.jitter(window), objstore.RetryAfter(failed))
}

func (c Config) jitter(window time.Duration) time.Duration {
	if c.Jitter != nil {
		return c.Jitter(window)
	}
	return time.Duration(rand.Int64N(int64(window)) + 1)
}

// nextSealed waits for the first sealed segment that is not absorbed. false: ctx
// ended or the shard stopped.
func (s *shardLog) nextSealed(ctx context.Context) (wal.SealedSegment, bool) {
	p := &s.progress
	for {
		p.mu.Lock()
		stopped, changed := p.stopped != nil, p.changed
		if !stopped && len(p.sealed) > 0 && ctx.Err() == nil {
			defer p.mu.Unlock()
			return p.sealed[0], true
		}
		p.mu.Unlock()
		if stopped {
			return wal.SealedSegment{}, false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return wal.SealedSegment{}, false
		}
	}
}

// publish takes one segment through 03 §2: build, place, absorb, checkpoint. It may
// be run again after any error and any crash.
func (s *shardLog) publish(ctx context.Context, seg wal.SealedSegment, doubt bool) error {
	if doubt {
		if err := s.lookAgain(ctx); err != nil {
			return err
		}
	}
	row := s.chainRow()
	if row.LastUUID == seg.UUID {
		// Absorbed already: by an attempt whose answer was lost, or by another who may.
		return s.finish(ctx, seg)
	}
	if row.LastUUID != seg.Prev || row.NextSeq != seg.Base {
		return s.halted("publish", fmt.Errorf("segment %d follows %s at seq %d, the chain stands at %s and seq %d",
			seg.ID, seg.Prev, seg.Base, row.LastUUID, row.NextSeq))
	}
	standing, err := s.standing(ctx, seg, row.AbsorbedEnd)
	if err != nil {
		return err
	}
	tctx, done := s.traced(ctx, Traced{Step: TraceAbsorb, Segment: seg.ID, Position: row.AbsorbedEnd})
	err = s.absorbMine(tctx, standing)
	done(err)
	if err != nil {
		return err
	}
	return s.finish(ctx, seg)
}

// lookAgain reads the chain row after whatever may mean that somebody else was
// there: at start, after a conflict, an unknown outcome, or a 404.
func (s *shardLog) lookAgain(ctx context.Context) error {
	row, err := s.catalog.Chain(ctx, s.chain)
	if err != nil {
		return fmt.Errorf("read the chain row: %w", err)
	}
	if row.Owner != s.owner || row.Term != s.term {
		return s.fenced(fmt.Sprintf("writer %s owns the chain in term %d", row.Owner, row.Term))
	}
	if seen := s.chainRow(); row.AbsorbedEnd < seen.AbsorbedEnd {
		return s.halted("publish", fmt.Errorf("%w: absorbed_end was %d and is %d now", ErrRolledBack, seen.AbsorbedEnd, row.AbsorbedEnd))
	}
	s.chainMoved(row)
	return nil
}

// standing makes sure that the segment's slot stands at the position.
func (s *shardLog) standing(ctx context.Context, seg wal.SealedSegment, at segment.ID) (absorb.Standing, error) {
	if p := s.placed; p != nil && p.id == at && p.uuid == seg.UUID {
		return p.standing, nil
	}
	if err := s.answers(ctx, at); err != nil {
		return absorb.Standing{}, err
	}
	tctx, done := s.traced(ctx, Traced{Step: TracePlace, Segment: seg.ID, Position: at})
	standing, err := s.build(tctx, seg, at)
	done(err)
	s.silent = errors.Is(err, objstore.ErrUnavailable) || errors.Is(err, objstore.ErrAmbiguous)
	if err == nil {
		s.placed = &placed{id: at, uuid: seg.UUID, standing: standing}
		return standing, s.at(StepPlaced)
	}
	var taken *occupiedError
	switch {
	case errors.As(err, &taken):
		return standing, s.judge(ctx, seg, at, taken)
	case errors.Is(err, errVanished):
		return standing, s.fenced(err.Error())
	}
	return standing, err
}

// answers asks a bucket that did not answer the last slot for less, before the next is built:
// in an outage of hours, reading, checking and compressing a segment at each try would be
// most of what a writer does. What it says of the slot is of no account: build sends it, and
// that tells whose stands. Only silence counts, for a HEAD may be refused where a PUT is not.
func (s *shardLog) answers(ctx context.Context, at segment.ID) error {
	if !s.silent {
		return nil
	}
	_, err := s.bucket.Set.First().Head(ctx, segment.SlotKey(s.chain, at))
	if errors.Is(err, objstore.ErrUnavailable) {
		return fmt.Errorf("the bucket does not answer yet: %w", err)
	}
	return nil //nolint:nilerr // see above
}

// build bundles the sealed file and places it. Nothing is sent below absorbed_end:
// at is the row's.
func (s *shardLog) build(ctx context.Context, seg wal.SealedSegment, at segment.ID) (_ absorb.Standing, err error) {
	if err := s.turn(ctx); err != nil {
		return absorb.Standing{}, err
	}
	defer s.turnOver()
	f, err := s.wal.OpenSegment(seg.ID)
	if errors.Is(err, wal.ErrNotFound) {
		return absorb.Standing{}, s.halted("publish", err)
	}
	if err != nil {
		return absorb.Standing{}, fmt.Errorf("open a sealed segment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p, err := s.pack(f, f.Size(), at, seg.SealedAt)
	if err != nil {
		return absorb.Standing{}, s.unreadable(ctx, seg, err)
	}
	if p.meta.UUID != seg.UUID || p.meta.Length != seg.Bytes {
		return absorb.Standing{}, s.halted("publish", fmt.Errorf("segment file %s is not the one that was sealed", seg.Path))
	}
	if err := s.at(StepBuilt); err != nil {
		return absorb.Standing{}, err
	}
	return s.place(ctx, p)
}

// turn waits until fewer than Config.Publishing shards build and send: each holds a
// raw chunk and the parts of an upload in memory.
func (s *shardLog) turn(ctx context.Context) error {
	select {
	case s.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *shardLog) turnOver() { <-s.turns }

// unreadable tells damage of a sealed file, which halts, from a read that failed.
func (s *shardLog) unreadable(ctx context.Context, seg wal.SealedSegment, err error) error {
	err = segment.InFile(err, seg.Path, seg.ID)
	if !segment.IsStructural(err) {
		return err
	}
	s.corrupt.Add(1)
	return s.halted("read a sealed segment", errors.Join(err, s.catalog.Audit(ctx, "corruption", seg.Path, err.Error())))
}

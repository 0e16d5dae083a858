package localtier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Hydrate (03 §3 step 5) brings slots of the chain back as the segment files that they
// were made of, behind serving: a crash anywhere leaves whole files, or .tmp ones that
// the log removes when it is opened, and the next start goes on. What cannot be had stays
// the bucket's to serve.

// hydrateCount is what status shows.
type hydrateCount struct {
	mu          sync.Mutex
	done, total int
}

func (c *hydrateCount) begin(total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total = c.done + total
}

func (c *hydrateCount) one() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
}

// end forgets what was trimmed, or does not fit this disk.
func (c *hydrateCount) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total = c.done
}

func (c *hydrateCount) read() (done, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done, c.total
}

// hydrate runs until all that is wanted is here. Failures are tried again: the shard
// serves meanwhile.
func (s *shardLog) hydrate(ctx context.Context) {
	for tries := 0; ; tries++ {
		err := s.hydrateOnce(ctx)
		switch {
		case err == nil:
			s.hydrated.end()
			return
		case ctx.Err() != nil, errors.Is(err, errCut), errors.Is(err, wal.ErrClosed), s.stoppedBy() != nil:
			return
		}
		s.note("hydrate", err)
		if !pause(ctx, backoff(s.cfg, tries, err)) {
			return
		}
	}
}

// hydrateOnce restores what is wanted and not here, newest first: what is local then has
// no gap that a reader meets, and what a trim takes meanwhile is the rest.
func (s *shardLog) hydrateOnce(ctx context.Context) error {
	wanted, err := s.wanted(ctx)
	if err != nil || len(wanted) == 0 {
		return err
	}
	s.hydrated.begin(len(wanted))
	var end hydrateEnd
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(s.cfg.Hydrating)
	for _, slot := range wanted {
		g.Go(func() error {
			if end.passed(slot.ID) || gctx.Err() != nil || s.pressed() {
				return context.Cause(gctx)
			}
			return s.restoreOne(gctx, slot, &end)
		})
	}
	return g.Wait()
}

// hydrateEnd is the newest position that was found trimmed: those before it are, too.
type hydrateEnd struct {
	mu sync.Mutex
	at segment.ID
}

func (e *hydrateEnd) passed(id segment.ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return id <= e.at
}

func (e *hydrateEnd) reached(id segment.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = max(e.at, id)
}

// wanted lists the standing slots to bring back, newest first.
func (s *shardLog) wanted(ctx context.Context) ([]catalog.SlotRow, error) {
	row := s.chainRow()
	from := s.hydrateFrom(row)
	if first, _ := s.index.span(); from >= first {
		return nil, nil // the ordinary restart asks nobody
	}
	here := make(map[segment.UUID]bool)
	for _, seg := range s.wal.Sealed() {
		here[seg.UUID] = true
	}
	var out []catalog.SlotRow
	for at := max(1, row.Trimmed, row.WatermarkSegment+1); at < row.AbsorbedEnd; {
		page, err := s.catalog.Slots(ctx, s.chain, at, slotPage)
		if err != nil {
			return nil, fmt.Errorf("read the slots: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			if r.ID < row.AbsorbedEnd && !r.Void && r.Next > max(from, r.First) && !here[r.UUID] {
				out = append(out, r)
			}
		}
		at = page[len(page)-1].ID + 1
	}
	slices.Reverse(out)
	return s.fit(out), nil
}

// hydrateFrom is the first seq that is wanted here.
func (s *shardLog) hydrateFrom(row catalog.ChainRow) segment.Seq {
	if s.cfg.HydrateAll {
		return row.WatermarkSeq + 1
	}
	slowest := catalog.SlowestCursor(s.carried.consumers())
	if !slowest.OK {
		return math.MaxInt64
	}
	return max(slowest.Seq, row.WatermarkSeq) + 1
}

// fit cuts what housekeeping would unlink again at once.
func (s *shardLog) fit(slots []catalog.SlotRow) []catalog.SlotRow {
	if s.cfg.HydrateAll {
		return slots
	}
	left := s.cfg.ConsumerHoldMax
	for i := range slots {
		if left -= slots[i].Bytes; left < 0 {
			return slots[:i]
		}
	}
	return slots
}

// restoreOne brings one slot back. A slot that is damaged is told, and left to fsck.
func (s *shardLog) restoreOne(ctx context.Context, slot catalog.SlotRow, end *hydrateEnd) error {
	select {
	case s.fetch <- struct{}{}:
		defer func() { <-s.fetch }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := s.adoptSlot(ctx, slot)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		end.reached(slot.ID) // trimmed meanwhile
		return nil
	case errors.Is(err, wal.ErrOrder):
		// Given up, or adopted, since it was planned.
		s.log.Info("slot is not wanted here any more", "chain", s.chain.String(), "position", slot.ID, "reason", err)
		return nil
	case segment.IsStructural(err), errors.Is(err, absorb.ErrStructural):
		s.log.Error("slot cannot be restored", "chain", s.chain.String(), "position", slot.ID, "error", err)
		return s.catalog.Audit(ctx, "damage", segment.SlotKey(s.chain, slot.ID), err.Error())
	}
	return err
}

// adoptSlot restores a slot's segment file into the log's directory, from the first
// bucket of the set whose copy can be read and is what was absorbed.
func (s *shardLog) adoptSlot(ctx context.Context, slot catalog.SlotRow) error {
	var sick, damaged []error
	for _, store := range s.bucket.Set {
		id, err := s.adoptFrom(ctx, store, slot)
		switch {
		case err == nil:
			return s.adopted(id)
		case ctx.Err() != nil, errors.Is(err, errCut), errors.Is(err, wal.ErrOrder), errors.Is(err, wal.ErrClosed):
			return err
		case errors.Is(err, objstore.ErrNotFound):
		case segment.IsStructural(err), errors.Is(err, absorb.ErrStructural):
			damaged = append(damaged, err)
		default:
			sick = append(sick, err)
		}
	}
	switch {
	case len(sick) > 0: // a bucket that is away may hold a sound copy
		return errors.Join(sick...)
	case len(damaged) > 0:
		return errors.Join(damaged...)
	}
	return fmt.Errorf("%w: slot %d of chain %s", objstore.ErrNotFound, slot.ID, s.chain)
}

// adoptFrom is adoptSlot from one bucket, and the id of the file that it made.
func (s *shardLog) adoptFrom(ctx context.Context, store *objstore.Store, slot catalog.SlotRow) (segment.ID, error) {
	one := absorb.Bucket{Set: objstore.Set{store}, Class: s.bucket.Class}
	found, err := absorb.Read(ctx, one, s.chain, slot.ID)
	if err != nil {
		return 0, err
	}
	if got := found.Footer.Slot; got.UUID != slot.UUID || got.Digest != slot.Digest {
		return 0, &segment.CorruptionError{
			File: found.Key, Segment: slot.ID, UUID: got.UUID,
			Reason: fmt.Sprintf("it holds segment %s (digest %016x), %s (%016x) was absorbed", got.UUID, got.Digest, slot.UUID, slot.Digest),
		}
	}
	chunks := slotChunks{ctx: ctx, store: store, key: found.Key, footer: found.Footer}
	start, err := chunks.start()
	if err != nil {
		return 0, segment.InFile(err, found.Key, slot.ID)
	}
	// The file bears the id that it was opened with; a void slot since makes the position
	// a higher one.
	return start.ID, s.wal.Adopt(ctx, start.ID, slot.UUID, func(f wal.File) error {
		if err := segment.RestoreSegment(found.Footer, chunks.raw, f); err != nil {
			return segment.InFile(err, found.Key, slot.ID)
		}
		return s.at(StepFetched)
	})
}

// adopted lets readers have a file that was restored.
func (s *shardLog) adopted(id segment.ID) error {
	for _, seg := range s.wal.Sealed() {
		if seg.ID == id {
			s.index.adopt(seg)
		}
	}
	s.hydrated.one()
	return s.at(StepHydrated)
}

package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/segment"
)

// Adopt puts an older segment that the shared tier gave back among those that
// stand here: hydration (03 §3). fill writes the whole file; it is fsynced, read
// back through the scanner, held against its neighbours and renamed into place,
// and from then on Sealed lists it and OpenSegment opens it. A segment that
// stands here already is a no-op, and fill is not called. Several may be adopted
// at once, of different ids; appends go on meanwhile.
//
// ErrOrder: the id is not in a gap below what stands, or not covered by
// CHECKPOINT, or reclaimed, or under way, or another UUID stands there.
// *segment.CorruptionError: what fill wrote is not that segment, whole and
// sealed. After any error nothing of it is here.
func (l *Log) Adopt(ctx context.Context, id segment.ID, u segment.UUID, fill func(File) error) error {
	stands, err := l.beginAdopt(id, u)
	if stands || err != nil {
		return err
	}
	defer l.endAdopt(id)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	path := segmentPath(l.dir, id)
	s, err := l.fillAside(ctx, path, id, u, fill)
	if err != nil {
		return fmt.Errorf("adopt segment %d: %w", id, l.freed(l.dropAdopted(path, err)))
	}
	// A crash before the rename leaves the .tmp file, which the next open removes.
	return l.insert(s)
}

// beginAdopt says whether the segment stands here already, and else takes its id.
func (l *Log) beginAdopt(id segment.ID, u segment.UUID) (stands bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return false, ErrClosed
	}
	if there, _ := findSegment(l.sealed, l.durable, id); there == u && u != (segment.UUID{}) {
		return true, nil
	}
	if _, ok := l.adopting[id]; ok {
		return false, fmt.Errorf("%w: segment %d is being adopted", ErrOrder, id)
	}
	if err := l.mayAdopt(id); err != nil {
		return false, err
	}
	l.adopting[id] = struct{}{}
	return false, nil
}

func (l *Log) endAdopt(id segment.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.adopting, id)
}

// mayAdopt says whether a segment of this id has a place here. Under mu.
func (l *Log) mayAdopt(id segment.ID) error {
	there, size := findSegment(l.sealed, l.durable, id)
	switch {
	case size != 0:
		return fmt.Errorf("%w: segment %d stands here as %s", ErrOrder, id, there)
	case id == 0 || id >= l.durable.start.ID:
		return fmt.Errorf("%w: segment %d is not below the newest, %d", ErrOrder, id, l.durable.start.ID)
	case id <= l.reclaimed.Segment:
		return fmt.Errorf("%w: segment %d is reclaimed, through %d", ErrOrder, id, l.reclaimed.Segment)
	case !l.hasCheck || id > l.checkpoint.Segment:
		// Only there may a crash leave a gap.
		return fmt.Errorf("%w: segment %d lies above CHECKPOINT, which is at segment %d", ErrOrder, id, l.checkpoint.Segment)
	}
	return nil
}

// fillAside has the file written as .tmp, makes it durable and proves it.
func (l *Log) fillAside(ctx context.Context, path string, id segment.ID, u segment.UUID, fill func(File) error) (_ SealedSegment, err error) {
	f, err := createAside(l.fs, path)
	if err != nil {
		return SealedSegment{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := fill(f); err != nil {
		return SealedSegment{}, err
	}
	if err := f.Sync(); err != nil {
		return SealedSegment{}, fmt.Errorf("fdatasync: %w", err)
	}
	return proveSegment(ctx, f, standing{id: id, path: path, uuid: u})
}

// proveSegment reads a file through: it must be segment s, whole and sealed.
func proveSegment(ctx context.Context, f File, s standing) (_ SealedSegment, err error) {
	if s.info, err = f.Stat(); err != nil {
		return SealedSegment{}, err
	}
	r := &recovery{}
	sc, err := r.scan(ctx, f, s, 0)
	if err != nil {
		return SealedSegment{}, structural(s, err)
	}
	s.start, s.seal = sc.Start(), sc.Sealed()
	switch {
	case s.seal == nil:
		return SealedSegment{}, damage(s, sc.Offset(), "it does not end in a Seal")
	case s.start.ID != s.id:
		return SealedSegment{}, damage(s, segment.HeaderBytes, "SegmentStart says segment %d", s.start.ID)
	}
	return s.sealed(s.info.Size), nil
}

// dropAdopted removes the .tmp file after err. Once the log is closed the
// directory may be another process's, which removes it by itself.
func (l *Log) dropAdopted(path string, err error) error {
	l.side.Lock()
	defer l.side.Unlock()
	l.mu.Lock()
	closing := l.closing
	l.mu.Unlock()
	if closing {
		return err
	}
	return dropAside(l.fs, path, err)
}

// insert puts a proven segment in its place, if it still has one.
func (l *Log) insert(s SealedSegment) error {
	l.side.Lock()
	defer l.side.Unlock()
	l.mu.Lock()
	closing, err := l.closing, l.mayAdopt(s.ID)
	if err == nil {
		err = linksUp(l.sealed, l.durable, s)
	}
	l.mu.Unlock()
	if closing {
		return ErrClosed // see dropAdopted
	}
	if err != nil {
		return dropAside(l.fs, s.Path, err)
	}
	if err := l.fs.Rename(s.Path+tmpSuffix, s.Path); err != nil {
		return fmt.Errorf("adopt segment %d: %w", s.ID, classify(dropAside(l.fs, s.Path, err)))
	}
	// A crash here leaves the segment, or a .tmp file, or a gap: all are allowed
	// below CHECKPOINT.
	if err := l.fs.SyncDir(l.dir); err != nil {
		err = errors.Join(err, l.fs.Remove(s.Path))
		return fmt.Errorf("adopt segment %d: fsync directory: %w", s.ID, classify(err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, _ := slices.BinarySearchFunc(l.sealed, s.ID, func(x SealedSegment, id segment.ID) int { return cmp.Compare(x.ID, id) })
	l.sealed = slices.Insert(l.sealed, at, s)
	l.metrics.adopted.Add(1)
	return nil
}

// linksUp holds a segment against those that stand next to it.
func linksUp(sealed []SealedSegment, newest position, s SealedSegment) error {
	all := slices.Clone(sealed)
	if newest.open {
		all = append(all, SealedSegment{
			ID: newest.start.ID, UUID: newest.uuid, Prev: newest.start.Prev, Chain: newest.start.Chain,
			Base: newest.start.Base, Next: newest.next, Term: newest.start.Term,
		})
	}
	for _, x := range all {
		before, after := x, s
		if s.ID < x.ID {
			before, after = s, x
		}
		next := after.ID == before.ID+1
		if s.Chain != x.Chain || before.Next > after.Base || before.Term > after.Term ||
			next && (after.Prev != before.UUID || after.Base != before.Next) {
			return &segment.CorruptionError{
				File: s.Path, Segment: s.ID, UUID: s.UUID, Offset: segment.HeaderBytes,
				Reason: fmt.Sprintf("segment %d of chain %s (%s after %s, base %d, next %d, term %d) does not fit segment %d of %s (%s after %s, base %d, next %d, term %d), which stands here",
					s.ID, s.Chain, s.UUID, s.Prev, s.Base, s.Next, s.Term, x.ID, x.Chain, x.UUID, x.Prev, x.Base, x.Next, x.Term),
			}
		}
	}
	return nil
}

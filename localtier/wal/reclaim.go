package wal

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/strandline/strandline/segment"
)

// Reclaim gives up the local segments up to r.Segment for good (03 §9.5), and
// says which files it unlinked. reclaim.json is the commit point: from there on
// what stands at or below it is a leftover, unlinked at the next call or open and
// never read. Seed 000's write-forward needs no write of its own: the newest
// segment's SegmentStart is durable, is never reclaimed, and repeats all that the
// reclaimed ones knew of consumers and producers.
//
// It never goes back: at or below the last point it commits nothing and only
// unlinks what still stands. ErrOrder: r reaches the newest segment, or beyond
// CHECKPOINT, or its seq is not the last row of its segment. It works on a
// poisoned log, and appends go on meanwhile.
func (l *Log) Reclaim(ctx context.Context, r segment.Reclaim) ([]segment.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	l.side.Lock()
	defer l.side.Unlock()
	l.mu.Lock()
	last, closing := l.reclaimed, l.closing
	err := l.mayReclaim(r)
	l.mu.Unlock()
	switch {
	case closing:
		return nil, ErrClosed
	case r.Segment <= last.Segment:
	case err != nil:
		return nil, err
	default:
		if err := l.writeReclaim(r); err != nil {
			return nil, err
		}
	}
	// A crash from here on leaves leftovers: the next open unlinks them.
	return l.removeSegments(ctx, l.planReclaim())
}

// Reclaimed is how far local reclamation has gone; zero if it never did.
func (l *Log) Reclaimed() segment.Reclaim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reclaimed
}

// mayReclaim holds r against what stands. Under mu.
func (l *Log) mayReclaim(r segment.Reclaim) error {
	order := func(format string, args ...any) error {
		return fmt.Errorf("%w: reclaim through segment %d, seq %d: %s", ErrOrder, r.Segment, r.Seq, fmt.Sprintf(format, args...))
	}
	if r.Seq < l.reclaimed.Seq {
		return order("seq %d is reclaimed already", l.reclaimed.Seq)
	}
	if r.Segment >= l.durable.start.ID {
		return order("the newest segment is %d, and it stays: it knows the chain's last id and carries its consumers", l.durable.start.ID)
	}
	for _, s := range l.sealed {
		switch {
		case s.ID == r.Segment && r.Seq+1 != s.Next:
			return order("its last seq is %d", s.Next-1)
		case s.ID == r.Segment && (!l.hasCheck || s.End().Compare(l.checkpoint) > 0):
			return order("CHECKPOINT is at byte %d of segment %d", l.checkpoint.Byte, l.checkpoint.Segment)
		case s.ID > r.Segment && r.Seq >= s.Base:
			return order("segment %d begins at seq %d", s.ID, s.Base)
		case s.ID < r.Segment && r.Seq+1 < s.Next:
			return order("segment %d before it ends at seq %d", s.ID, s.Next-1)
		}
	}
	// One that does not stand here is covered whole by a checkpoint at or above it.
	if !l.hasCheck || r.Segment > l.checkpoint.Segment {
		return order("CHECKPOINT is at segment %d", l.checkpoint.Segment)
	}
	return nil
}

// writeReclaim holds side.
func (l *Log) writeReclaim(r segment.Reclaim) error {
	b, err := segment.EncodeReclaim(r)
	if err != nil {
		return err
	}
	path := filepath.Join(l.dir, segment.ReclaimFile)
	if err := ReplaceFile(l.fs, path, b); err != nil {
		// It may stand there all the same. Then the next open finds what it gives up
		// as leftovers, which is what was asked for.
		return fmt.Errorf("write %s: %w", path, l.freed(err))
	}
	l.mu.Lock()
	l.reclaimed = r
	l.mu.Unlock()
	return nil
}

// planReclaim is what still stands at or below the reclaim point.
func (l *Log) planReclaim() []SealedSegment {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.sealed) && l.sealed[n].ID <= l.reclaimed.Segment {
		n++
	}
	return append([]SealedSegment(nil), l.sealed[:n]...)
}

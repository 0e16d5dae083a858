package wal

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/strandline/strandline/segment"
)

// LastCheckpoint is what the shared tier is known to hold. Its Segment is 0 if
// no local segment tells which one its UUID named.
func (l *Log) LastCheckpoint() (Offset, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checkpoint, l.hasCheck
}

// Checkpoint records that the shared tier holds everything up to o: durable when
// it returns nil. An offset at or below the last one is a no-op; one beyond what
// is durable here is ErrOrder. It works on a poisoned log: what is published
// stays published.
func (l *Log) Checkpoint(ctx context.Context, o Offset) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	l.side.Lock()
	defer l.side.Unlock()
	l.mu.Lock()
	last, has, closing := l.checkpoint, l.hasCheck, l.closing
	err := l.stands(o)
	l.mu.Unlock()
	switch {
	case closing:
		return ErrClosed
	case has && o.Compare(last) <= 0:
		return nil
	case err != nil:
		return err
	}
	return l.writeCheckpoint(o)
}

// stands says whether o is a durable place of a segment that stands here. Under
// mu.
func (l *Log) stands(o Offset) error {
	if o.UUID == l.durable.uuid && o.Segment == l.durable.start.ID && o.Byte <= l.durable.end && o.Byte > segment.HeaderBytes {
		return nil
	}
	for _, s := range l.sealed {
		if o.UUID == s.UUID && o.Segment == s.ID && o.Byte <= s.Bytes && o.Byte > segment.HeaderBytes {
			return nil
		}
	}
	return fmt.Errorf("%w: checkpoint at byte %d of segment %d (%s), which does not stand here that far", ErrOrder, o.Byte, o.Segment, o.UUID)
}

// writeCheckpoint holds side.
func (l *Log) writeCheckpoint(o Offset) error {
	b := segment.EncodeCheckpoint(segment.Checkpoint{UUID: o.UUID, Offset: o.Byte})
	path := filepath.Join(l.dir, segment.CheckpointFile)
	if err := ReplaceFile(l.fs, path, b); err != nil {
		return fmt.Errorf("write %s: %w", path, l.freed(err))
	}
	l.mu.Lock()
	l.checkpoint, l.hasCheck = o, true
	l.mu.Unlock()
	return nil
}

// beginsAt records, before the first segment of an empty log is made, that the
// shared tier holds everything before it: else the segments below an id above 1
// would be missing at the next open. A crash right after it leaves an empty log.
func (l *Log) beginsAt(s segment.Start) error {
	l.side.Lock()
	defer l.side.Unlock()
	l.mu.Lock()
	err := l.usable()
	begins := l.head.start.ID == 0 && s.ID > 1
	l.mu.Unlock()
	if err != nil || !begins {
		return err
	}
	return l.writeCheckpoint(Offset{s.ID - 1, s.Prev, segment.HeaderBytes})
}

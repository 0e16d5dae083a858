package wal

import (
	"errors"
	"fmt"
)

// Zeros ahead of the writer: a file that was not one before gets blocks to
// overwrite. A write that makes the file longer commits the new length and blocks
// through the file system's journal in each fdatasync; one among zeros that were
// written before does not. The zeros go with a frame's own fdatasync, a piece at
// a time. That pays while writes are small: at 4 KiB it saves a third of each
// sync, at 16 KiB the zeros cost what they save.
const (
	// aheadFrom: a segment that stays smaller is not worth it.
	aheadFrom = 256 << 10
	// aheadBytes takes about a millisecond, every 64 writes of 4 KiB.
	aheadBytes = 256 << 10
	// aheadRun is the largest write that it pays for.
	aheadRun = 8 << 10
)

// fillAhead writes zeros behind a write of n bytes that ends at end, if the file
// ends about there. A crash leaves them, or a part, behind the last frame, where
// zeros are a clean end. If there is no room for them the file ends with the
// frames again; an error is one of taking them back.
func (l *Log) fillAhead(end, n int64) error {
	t := l.cfg.tune
	if l.cfg.Preallocate == PreallocateOff || end <= l.filled || end < t.aheadFrom || n > t.aheadRun || end+t.aheadBytes > l.cfg.SegmentBytes {
		return nil
	}
	if l.zeros == nil {
		l.zeros = make([]byte, t.aheadBytes)
	}
	_, err := l.file.WriteAt(l.zeros, end)
	if err == nil {
		l.filled = end + t.aheadBytes
		return nil
	}
	if terr := l.file.Truncate(end); terr != nil {
		return fmt.Errorf("%w; and the end behind the frames: %w", err, terr)
	}
	if err = l.freed(err); !errors.Is(err, ErrFull) {
		l.cfg.Logger.Warn("zeros ahead of the writer were refused", "err", err, "dir", l.dir)
	}
	l.filled = l.cfg.SegmentBytes // no more of them in this segment
	return nil
}

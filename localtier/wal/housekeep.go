package wal

import (
	"context"
	"errors"
	"math"

	"github.com/strandline/strandline/segment"
)

// NoFloor is a retain floor that holds nothing back.
const NoFloor = segment.ID(math.MaxUint64)

// Housekeep unlinks the segments that lie wholly below the checkpoint and whose
// id is below retain, and says which. The newest segment always stays: it knows
// the chain's last id. A segment that a reader has open stays readable to it.
func (l *Log) Housekeep(ctx context.Context, retain segment.ID) ([]segment.ID, error) {
	l.side.Lock()
	defer l.side.Unlock()
	l.mu.Lock()
	closing := l.closing
	plan := planHousekeep(l.sealed, l.durable.start.ID, l.checkpoint, retain)
	if !l.hasCheck || closing {
		plan = nil
	}
	l.mu.Unlock()
	if closing {
		return nil, ErrClosed
	}
	return l.removeSegments(ctx, plan)
}

// removeSegments unlinks segments that nothing needs here any more, oldest first,
// and makes that durable. It holds side.
func (l *Log) removeSegments(ctx context.Context, plan []SealedSegment) ([]segment.ID, error) {
	removed, spares, err := l.unlink(ctx, plan)
	if len(removed) > 0 {
		// A crash before this brings some of them back: they lie below CHECKPOINT,
		// where gaps are allowed, and the next pass takes them again.
		serr := l.fs.SyncDir(l.dir)
		if serr == nil {
			l.addSpares(spares)
		}
		err = errors.Join(err, classify(serr))
		l.metrics.removed.Add(int64(len(removed)))
	}
	return removed, err
}

// planHousekeep is the decision: the longest run of oldest segments that lies
// below everything that holds one back.
func planHousekeep(sealed []SealedSegment, newest segment.ID, checkpoint Offset, retain segment.ID) []SealedSegment {
	n := 0
	for n < len(sealed) && sealed[n].ID < newest && sealed[n].ID < retain && sealed[n].End().Compare(checkpoint) <= 0 {
		n++
	}
	return append([]SealedSegment(nil), sealed[:n]...)
}

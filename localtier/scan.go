package localtier

import (
	"context"
	"errors"
	"io"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// readThrough makes the table of a segment that stood here at the start, that came back
// from the bucket, or whose table was dropped for room. Appends go on meanwhile.
func (x *index) readThrough(ctx context.Context, seg *segmentIndex) error {
	x.scan.Lock()
	defer x.scan.Unlock()
	if x.hasTable(seg) {
		return nil // by who held scan before
	}
	t, next, err := tableOf(ctx, x.log, seg.id, seg.base)
	if errors.Is(err, wal.ErrNotFound) {
		// Housekept meanwhile: its rows are the bucket's to serve, and so are those before.
		x.forget(seg.id)
		return nil
	}
	if err != nil {
		return err
	}
	x.install(seg, t, next)
	return nil
}

// install gives a segment its table, with rows to before next.
func (x *index) install(seg *segmentIndex, t *frameTable, next segment.Seq) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if next < seg.next || seg.table != nil || x.byID(seg.id) != seg {
		return // it grew, or went, meanwhile, or has one: the next look knows
	}
	seg.next, seg.table = next, t
	x.held += t.n
	x.makeRoom(seg)
}

func (x *index) hasTable(seg *segmentIndex) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return seg.table != nil
}

// tableOf reads a segment through, every frame verified, and says where its rows lie.
func tableOf(ctx context.Context, log segmentOpener, id segment.ID, base segment.Seq) (t *frameTable, next segment.Seq, err error) {
	f, err := log.OpenSegment(id)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t = newFrameTable()
	sc, err := segment.NewScanner(f, f.Size())
	for err == nil {
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		var frame segment.Frame
		if frame, err = sc.Next(); err != nil || frame.Kind != segment.KindBatch {
			continue
		}
		var stream string
		var first segment.Seq
		if stream, first, _, err = segment.BatchSpan(frame.Payload); err == nil {
			//nolint:gosec // offsets and rows of a segment fit 32 bits
			t.add(stream, uint32(first-base), uint32(frame.Offset))
		}
	}
	if errors.Is(err, io.EOF) {
		return t, sc.NextSeq(), nil
	}
	return nil, 0, damaged(err, f, id)
}

package localtier

import (
	"context"
	"errors"
	"io"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// scanAll reads through the segments that stood here at the start, once, at the
// first read: opening for append reads none of them. Appends go on meanwhile.
func (x *index) scanAll(ctx context.Context) error {
	x.scan.Lock()
	defer x.scan.Unlock()
	for {
		seg := x.firstUnscanned()
		if seg == nil {
			return nil
		}
		frames, err := scanSegment(ctx, x.log, seg.id)
		if err != nil && !errors.Is(err, wal.ErrNotFound) {
			return err
		}
		// Housekept meanwhile: it has no local rows any more, and forget follows.
		x.mu.Lock()
		seg.frames, seg.scanned = frames, true
		x.mu.Unlock()
	}
}

func (x *index) firstUnscanned() *segmentIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, seg := range x.segs {
		if !seg.scanned {
			return seg
		}
	}
	return nil
}

func scanSegment(ctx context.Context, log segmentOpener, id segment.ID) (frames map[string][]frameAt, err error) {
	f, err := log.OpenSegment(id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	frames = make(map[string][]frameAt)
	sc, err := segment.NewScanner(f, f.Size())
	for err == nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var frame segment.Frame
		if frame, err = sc.Next(); err != nil || frame.Kind != segment.KindBatch {
			continue
		}
		var stream string
		var at frameAt
		var rows int
		if stream, at.first, rows, err = segment.BatchSpan(frame.Payload); err == nil {
			at.rows, at.off = uint32(rows), uint32(frame.Offset)
			frames[stream] = append(frames[stream], at)
		}
	}
	if errors.Is(err, io.EOF) {
		return frames, nil
	}
	return nil, damaged(err, f, id)
}

package wal

import (
	"context"
	"errors"
	"io"

	"github.com/strandline/strandline/segment"
)

// The newest segment is the only one that may end anywhere.

// liveRetries is how often a read-only open looks again at a tail that a live
// writer is moving before it believes that it is damaged.
const liveRetries = 4

// replayNewest delivers the newest segment and judges its tail.
func (r *recovery) replayNewest(ctx context.Context) error {
	var from int64
	for try := 0; ; try++ {
		err := r.withFile(r.newest.path, func(f File) (err error) {
			if r.newest.info, err = f.Stat(); err != nil {
				return err
			}
			from, err = r.readNewest(ctx, f, from)
			return err
		})
		if err == nil || !r.readOnly || !errors.Is(err, segment.ErrCorrupt) && !cameShort(err) || try == liveRetries {
			return err
		}
	}
}

// cameShort: a file ended before the size that it had a moment ago. A live writer does
// that when it seals: what stood behind the Seal is cut.
func cameShort(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

func (r *recovery) readNewest(ctx context.Context, f File, from int64) (int64, error) {
	s := *r.newest
	sc, err := r.scan(ctx, f, s, from)
	if sc == nil {
		return from, structural(s, err)
	}
	end := sc.Offset()
	var invalid *segment.InvalidFrameError
	if err != nil && !errors.As(err, &invalid) {
		return end, segment.InFile(err, s.path, s.id)
	}
	if end == segment.HeaderBytes {
		return from, structural(s, err) // read whole a moment ago
	}
	r.tail, err = segment.JudgeTail(f, s.info.Size, s.uuid, end, r.known())
	if err != nil && r.wentOn(f, s, end) {
		r.tail, err = segment.Tail{End: end}, nil
	}
	if err != nil {
		return end, segment.InFile(err, s.path, s.id)
	}
	r.end = position{start: s.start, uuid: s.uuid, open: true, end: end, frames: sc.Frames(), next: sc.NextSeq()}
	if seal := sc.Sealed(); seal != nil {
		r.end.open, r.end.frames = false, seal.Frames
		r.newest.seal = seal
	}
	return end, nil
}

// wentOn says that a live writer has appended at end since the scan came there:
// damage does not heal, so a frame that validates there now was not written yet
// when it did not, and the log ended there at that moment. The file is often
// longer than its frames, so that its size does not say how far they went.
func (r *recovery) wentOn(f File, s standing, end int64) bool {
	if !r.readOnly || r.known() > end {
		return false
	}
	b := make([]byte, segment.FrameHeaderBytes)
	if n, _ := f.ReadAt(b, end); n < len(b) || segment.FrameLen(b) > segment.FrameHeaderBytes+segment.MaxFrameBytes {
		return false // short or unreadable: the verdict stands
	}
	b = make([]byte, segment.FrameLen(b))
	n, _ := f.ReadAt(b, end) // likewise
	_, _, err := segment.ParseFrame(b[:n], s.uuid, end)
	return err == nil
}

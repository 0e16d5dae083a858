package localtier

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// pass is a shard scan's way through a segment that nobody read through yet, from its
// first row on: it gives out the rows and makes the table on the way, so that the file is
// read once. Every frame is verified as recovery does it, the Seal last. It stands in
// nobody's way meanwhile, whatever the reader does with a row; one that has enough before
// the end leaves no table, and whoever goes on where it stopped makes one (readThrough).
func (r *rowReader) pass(ctx context.Context, seg *segmentIndex, yield func(string, segment.Row) bool) (more bool, err error) {
	f, err := r.open(ctx, seg.id)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sc, err := segment.NewScanner(f, f.Size())
	if err != nil {
		return false, damaged(err, f, seg.id)
	}
	table, more, err := r.passFrames(ctx, sc, f, seg, yield)
	if err != nil || !more {
		return false, err
	}
	r.index.install(seg, table, sc.NextSeq())
	r.from = max(r.from, sc.NextSeq()) // behind rows of reserved streams
	return true, nil
}

// passFrames is the pass over an open segment. more is false if the reader has enough.
func (r *rowReader) passFrames(ctx context.Context, sc *segment.Scanner, f *wal.SegmentReader, seg *segmentIndex, yield func(string, segment.Row) bool) (*frameTable, bool, error) {
	t := newFrameTable()
	var b segment.Batch
	var room arena
	for {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		frame, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return t, true, nil
		}
		if err == nil && frame.Kind == segment.KindBatch {
			b.Stream = t.guess(frame.Payload) // decoding then makes no other string of it
			err = segment.DecodeBatchInto(room.keep(frame.Payload), &b)
		}
		if err != nil {
			return nil, false, damaged(err, f, seg.id)
		}
		if frame.Kind != segment.KindBatch {
			continue
		}
		if b.First > r.to {
			return nil, false, nil
		}
		//nolint:gosec // offsets and rows of a segment fit 32 bits
		t.add(b.Stream, uint32(b.First-seg.base), uint32(frame.Offset))
		if isReserved(b.Stream) {
			continue
		}
		if more, err := r.rows(&b, yield); err != nil || !more {
			return nil, false, err
		}
	}
}

// guess is the name of a stream of this table, if it stands where a batch has its own.
// It may be wrong: whoever decodes the batch knows.
func (t *frameTable) guess(batch []byte) string {
	if len(batch) == 0 {
		return ""
	}
	n, width := binary.Uvarint(batch[1:])
	if width <= 0 || n > uint64(len(batch)-1-width) {
		return ""
	}
	number, ok := t.numbers[string(batch[1+width:][:n])]
	if !ok {
		return ""
	}
	return t.names[number]
}

// arena is where bytes lie that are given out for good, many in one allocation.
type arena struct{ free []byte }

const (
	// arenaBytes are made at once: a row that is kept keeps them all.
	arenaBytes = 256 << 10
	// aloneBytes and more have an allocation of their own.
	aloneBytes = arenaBytes / 8
)

// keep copies p.
func (a *arena) keep(p []byte) []byte {
	if len(p) >= aloneBytes {
		return bytes.Clone(p)
	}
	if len(p) > len(a.free) {
		a.free = make([]byte, arenaBytes)
	}
	n := copy(a.free, p)
	kept := a.free[:n:n]
	a.free = a.free[n:]
	return kept
}

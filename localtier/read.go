package localtier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Read yields the rows of a stream from seq `from` to `to` (inclusive; 0: to the
// end) that this directory has, durable ones only, in order. They begin where the
// bucket's may end: rows that are not absorbed yet can be read only here.
//
// They are what the disk has: rows that a trim gave up since are among them, and it
// is for the caller to skip what lies below the stream's live_from in the catalog.
//
// *NotLocalError: `from` lies before what is local; read the rows before it from the
// bucket, and if that ends before First, again: they were absorbed meanwhile. A shard
// that was fenced, or whose lease ran out, serves no rows, for some may never enter the
// history. A row's bytes stay valid.
func (w *Writer) Read(ctx context.Context, stream string, from, to segment.Seq) iter.Seq2[segment.Row, error] {
	return func(yield func(segment.Row, error) bool) {
		s, err := w.route(ctx, stream)
		if err == nil {
			err = s.read(ctx, stream, from, to, func(r segment.Row) bool { return yield(r, nil) })
		}
		if err != nil {
			yield(segment.Row{}, err)
		}
	}
}

// Local says which seqs of the stream's chain are local: first to before next.
func (w *Writer) Local(ctx context.Context, stream string) (first, next segment.Seq, err error) {
	s, err := w.route(ctx, stream)
	if err != nil {
		return 0, 0, err
	}
	if err := s.unreadableNow(); err != nil {
		return 0, 0, err
	}
	s.index.settle()
	first, next = s.index.span()
	return first, next, nil
}

// unreadableNow: reads of unpublished rows stop together with appends.
func (s *shardLog) unreadableNow() error {
	if err := s.stoppedBy(); err != nil {
		return err
	}
	return s.leaseRefusal()
}

func (s *shardLog) read(ctx context.Context, stream string, from, to segment.Seq, yield func(segment.Row) bool) error {
	if err := s.unreadableNow(); err != nil {
		return err
	}
	s.index.settle()
	r := rowReader{index: &s.index, chain: s.chain, stream: stream, from: from, to: to, may: s.unreadableNow}
	return r.run(ctx, yield)
}

// rowReader yields a stream's rows in [from, to] from local segments.
type rowReader struct {
	index    *index
	chain    segment.Chain
	stream   string
	from, to segment.Seq
	may      func() error // asked before each frame's rows are given out
}

func (r *rowReader) run(ctx context.Context, yield func(segment.Row) bool) error {
	if err := r.index.scanAll(ctx); err != nil {
		return err
	}
	runs, floor := r.index.find(r.stream, r.from, r.to)
	if r.from < floor {
		return &NotLocalError{Chain: r.chain, First: floor}
	}
	for _, run := range runs {
		more, err := r.segment(ctx, run, yield)
		if errors.Is(err, wal.ErrNotFound) {
			// Housekept since it was found: the bucket has it.
			first, _ := r.index.span()
			return &NotLocalError{Chain: r.chain, First: first}
		}
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// segment yields the rows of one segment. more is false if the reader has enough.
func (r *rowReader) segment(ctx context.Context, run frameRun, yield func(segment.Row) bool) (more bool, err error) {
	f, err := r.index.log.OpenSegment(run.id)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, at := range run.frames {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		b, err := readFrame(f, run.id, at, r.stream)
		if err != nil {
			return false, err
		}
		if err := r.may(); err != nil {
			return false, err
		}
		for _, row := range b.Rows {
			if row.Seq < r.from || (r.to != 0 && row.Seq > r.to) {
				continue
			}
			if !yield(row) {
				return false, nil
			}
		}
	}
	return true, nil
}

// readFrame reads one batch frame and holds it against the index.
func readFrame(f *wal.SegmentReader, id segment.ID, at frameAt, stream string) (segment.Batch, error) {
	head := make([]byte, segment.FrameHeaderBytes)
	if _, err := f.ReadAt(head, int64(at.off)); err != nil {
		return segment.Batch{}, fmt.Errorf("read a frame of segment %d: %w", id, err)
	}
	n := segment.FrameLen(head)
	if n > segment.FrameHeaderBytes+segment.MaxFrameBytes {
		return segment.Batch{}, misread(f, id, at, "its length is over the cap")
	}
	buf := make([]byte, n)
	if _, err := f.ReadAt(buf, int64(at.off)); err != nil && !errors.Is(err, io.EOF) {
		return segment.Batch{}, fmt.Errorf("read a frame of segment %d: %w", id, err)
	}
	frame, _, err := segment.ParseFrame(buf, f.UUID, int64(at.off))
	if err != nil {
		return segment.Batch{}, misread(f, id, at, err.Error())
	}
	b, err := segment.DecodeBatch(frame.Payload)
	if err != nil {
		return b, segment.InFile(err, segment.FileName(id), id)
	}
	if b.Stream != stream || b.First != at.first {
		return b, misread(f, id, at, fmt.Sprintf("it holds stream %q from seq %d", b.Stream, b.First))
	}
	return b, nil
}

// damaged makes a scanner's finding about bytes that were read whole a
// *segment.CorruptionError of this file. An error of reading stays one.
func damaged(err error, f *wal.SegmentReader, id segment.ID) error {
	var invalid *segment.InvalidFrameError
	if errors.As(err, &invalid) {
		err = invalid.Corruption(f.UUID, id)
	}
	return segment.InFile(err, segment.FileName(id), id)
}

func misread(f *wal.SegmentReader, id segment.ID, at frameAt, reason string) error {
	return &segment.CorruptionError{File: segment.FileName(id), Segment: id, UUID: f.UUID, Offset: int64(at.off), Reason: reason}
}

// frameRun is a stream's frames in one segment.
type frameRun struct {
	id     segment.ID
	frames []frameAt
}

// find returns the frames that hold rows of [from, to], and the first local seq.
func (x *index) find(stream string, from, to segment.Seq) (runs []frameRun, floor segment.Seq) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, seg := range x.segs {
		all := seg.frames[stream]
		i := sort.Search(len(all), func(i int) bool { return all[i].first+segment.Seq(all[i].rows) > from })
		j := len(all)
		if to != 0 {
			j = sort.Search(len(all), func(i int) bool { return all[i].first > to })
		}
		if i < j {
			runs = append(runs, frameRun{seg.id, slices.Clone(all[i:j])})
		}
	}
	return runs, x.floor()
}

// span is what is local: from first to before next.
func (x *index) span() (first, next segment.Seq) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.floor(), x.end
}

// floor is the first seq that local segments hold, or would hold next; mu is held.
func (x *index) floor() segment.Seq {
	if len(x.segs) == 0 {
		return x.end
	}
	return x.segs[0].base
}

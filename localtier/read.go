package localtier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Read yields the rows of a stream from seq `from` to `to` (inclusive; 0: to the
// end) that this directory has, durable ones only, in order. They begin where the
// bucket's may end: rows that are not absorbed yet can be read only here. The
// reserved stream of a shard (segment.AuditStream) is read like any other.
//
// They are what the disk has above the chain's watermark. Rows that a trim of the
// stream gave up are among them, and it is for the caller to skip what lies below its
// live_from in the catalog.
//
// *NotLocalError: `from`, or the row after the last one delivered, lies before what is
// local, or at or below the watermark; read the rows before First from the bucket, and
// if that ends before First, again: they were absorbed meanwhile. What retention gave
// up is coldload.ErrTrimmed there. A shard that was fenced, or whose lease ran out,
// serves no rows, for some may never enter the history. A row's bytes stay valid, and
// are shared with the rows next to it: they must not be changed.
func (w *Writer) Read(ctx context.Context, stream string, from, to segment.Seq) iter.Seq2[segment.Row, error] {
	return func(yield func(segment.Row, error) bool) {
		s, err := w.routeRead(ctx, stream)
		if err == nil {
			err = s.read(ctx, stream, from, to, func(_ string, r segment.Row) bool { return yield(r, nil) })
		}
		if err != nil {
			yield(segment.Row{}, err)
		}
	}
}

// Local says which seqs of the stream's chain are local and above the watermark: first
// to before next.
func (w *Writer) Local(ctx context.Context, stream string) (first, next segment.Seq, err error) {
	s, err := w.routeRead(ctx, stream)
	if err != nil {
		return 0, 0, err
	}
	return s.localSpan()
}

// localSpan is what can be read here: first to before next.
func (s *shardLog) localSpan() (first, next segment.Seq, err error) {
	if err := s.unreadableNow(); err != nil {
		return 0, 0, err
	}
	s.index.settle()
	r := s.reader("", 0, 0)
	first, next = r.span()
	return first, next, nil
}

// routeRead is route for reads: those of reserved streams are allowed.
func (w *Writer) routeRead(ctx context.Context, stream string) (*shardLog, error) {
	if !isReserved(stream) {
		return w.route(ctx, stream)
	}
	if err := segment.CheckReserved(stream); err != nil {
		return nil, err
	}
	shard := segment.ShardOf(stream, w.opts.Topology.Shards)
	if s := w.shards[shard]; s != nil {
		return s, nil
	}
	return nil, &NotOwnerError{Stream: stream, Shard: shard}
}

func isReserved(stream string) bool { return strings.HasPrefix(stream, "~") }

// unreadableNow: reads of unpublished rows stop together with appends.
func (s *shardLog) unreadableNow() error {
	if err := s.stoppedBy(); err != nil {
		return err
	}
	return s.leaseRefusal()
}

func (s *shardLog) read(ctx context.Context, stream string, from, to segment.Seq, yield func(string, segment.Row) bool) error {
	if err := s.unreadableNow(); err != nil {
		return err
	}
	s.index.settle()
	r := s.reader(stream, from, to)
	err := r.run(ctx, yield)
	if segment.IsStructural(err) {
		s.corrupt.Add(1)
	}
	return err
}

func (s *shardLog) reader(stream string, from, to segment.Seq) rowReader {
	return rowReader{
		index: &s.index, chain: s.chain, stream: stream, from: from, to: to,
		may: s.unreadableNow, watermark: func() segment.Seq { return s.chainRow().WatermarkSeq },
	}
}

// rowReader yields rows in [from, to] from local segments: a stream's, or all but
// those of reserved streams.
type rowReader struct {
	index     *index
	chain     segment.Chain
	stream    string // "": a shard scan
	from, to  segment.Seq
	may       func() error // asked before each frame's rows are given out
	watermark func() segment.Seq
}

// span is what can be read: from first to before next.
func (r *rowReader) span() (first, next segment.Seq) {
	first, next = r.index.span()
	return max(first, r.watermark()+1), next
}

func (r *rowReader) run(ctx context.Context, yield func(string, segment.Row) bool) error {
	first, next := r.span()
	if r.from < first {
		return r.notLocal()
	}
	if r.to == 0 || r.to >= next {
		r.to = next - 1
	}
	h := r.index.holds.begin()
	defer h.end()
	for r.from <= r.to {
		more, err := r.next(ctx, h, yield)
		if errors.Is(err, errNotHere) {
			return r.notLocal()
		}
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// next yields what there is in the segment of row from, and moves from behind it.
func (r *rowReader) next(ctx context.Context, h *hold, yield func(string, segment.Row) bool) (more bool, err error) {
	if seg := r.index.unread(r.from, h); seg != nil && r.stream == "" {
		return r.pass(ctx, seg, yield)
	}
	v, err := r.index.look(ctx, r.from, r.stream, h)
	if err != nil {
		return false, err
	}
	if more, err = r.segment(ctx, &v, yield); more {
		r.from = v.next
	}
	return more, err
}

func (r *rowReader) notLocal() error {
	first, _ := r.span()
	return &NotLocalError{Chain: r.chain, First: first}
}

// segment yields the rows of one segment. more is false if the reader has enough.
func (r *rowReader) segment(ctx context.Context, v *view, yield func(string, segment.Row) bool) (more bool, err error) {
	numbers := v.all(r.from, r.to)
	if r.stream != "" {
		if v.chain.n == 0 {
			return true, nil
		}
		numbers = v.ofStream(r.from, r.to)
	}
	f, err := r.open(ctx, v.id)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	src := frameSource{file: f, id: v.id}
	var b segment.Batch
	for i := range numbers {
		stream := v.stream(i)
		if r.stream == "" && isReserved(stream) {
			continue
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		b.Stream = stream // decoding makes no other string of it
		if err := src.batch(v.frames.at(i).off, &b, v.first(i)); err != nil {
			return false, err
		}
		if more, err := r.rows(&b, yield); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// rows yields a frame's rows in [from, to].
func (r *rowReader) rows(b *segment.Batch, yield func(string, segment.Row) bool) (more bool, err error) {
	if err := r.may(); err != nil {
		return false, err
	}
	// Retention overtook the reader: its next row was given up.
	if max(r.from, b.First) <= r.watermark() {
		return false, r.notLocal()
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.Seq < r.from || row.Seq > r.to {
			continue
		}
		r.from = row.Seq + 1 // what comes next, whatever stops this
		if !yield(b.Stream, *row) {
			return false, nil
		}
	}
	return true, nil
}

const (
	// openTries and openPause wait out the moment between a Seal that is durable and
	// the sealed segment being listed.
	openTries = 100
	openPause = time.Millisecond
)

// open opens a segment that the index has.
func (r *rowReader) open(ctx context.Context, id segment.ID) (*wal.SegmentReader, error) {
	for try := 0; ; try++ {
		f, err := r.index.log.OpenSegment(id)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, wal.ErrNotFound):
			return nil, err
		case try == openTries || !r.index.stands(id):
			return nil, r.notHere(id)
		case !pause(ctx, openPause):
			return nil, context.Cause(ctx)
		}
	}
}

// notHere: the segment was housekept, maybe so lately that the index has it still.
func (r *rowReader) notHere(id segment.ID) error {
	r.index.forget(id)
	return r.notLocal()
}

// misread is a frame that is not what the index says stands there.
func misread(f *wal.SegmentReader, id segment.ID, off int64, format string, args ...any) error {
	return &segment.CorruptionError{File: segment.FileName(id), Segment: id, UUID: f.UUID, Offset: off, Reason: fmt.Sprintf(format, args...)}
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

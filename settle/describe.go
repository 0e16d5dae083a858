package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// errUncovered: the object that stands at the key holds no row of the run.
var errUncovered = errors.New("the object at this key does not hold these rows")

// cover is the rows of a run that an object is about to serve.
type cover struct {
	first, last segment.Seq
	refs        int           // refs[:refs] are touched
	rows        segment.Tally // as the sources have them
}

// describe says what of a run the durable object holds: the refs to swap, and the
// one to swap in, truncated at a whole row. The object's chunks and the sources
// must agree in rows and row sum, or nothing is swapped: a hole, a short body or
// another history never gets into the catalog (K8).
func (m *mover) describe(ctx context.Context, a *announced, d *durable, mem *member, r *run) (catalog.Run, error) {
	if err := sameRefs(r, mem.liveFrom); err != nil {
		return catalog.Run{}, err
	}
	chunks := chunksOf(d.footer, &r.refs[0], r.chunks[0].live.First, r.refs[len(r.refs)-1].Last)
	if len(chunks) == 0 {
		return catalog.Run{}, errUncovered
	}
	c, err := m.covered(ctx, mem, r, chunks[len(chunks)-1].Last)
	if err != nil {
		return catalog.Run{}, err
	}
	for len(chunks) > 1 && chunks[len(chunks)-1].First > c.last {
		chunks = chunks[:len(chunks)-1]
	}
	has, err := m.holds(ctx, a.key, chunks, c.first, c.last)
	if err != nil {
		return catalog.Run{}, err
	}
	if err := sameSpan(a.key, mem.stream, &c, &has); err != nil {
		return catalog.Run{}, err
	}
	if d.ours && c.last != r.refs[len(r.refs)-1].Last {
		return catalog.Run{}, fmt.Errorf("%s: own output ends at seq %d of %q, the run at %d", a.key, c.last, mem.stream, r.refs[len(r.refs)-1].Last)
	}
	return catalog.Run{Expect: r.refs[:c.refs], New: a.ref(r, chunks, &has)}, nil
}

// chunksOf are the chunks of an object with rows of a stream from first to last. The
// table is in order of stream, epoch and rows, which a footer's decoder holds: a pack may
// have as many chunks as there are streams, and each of its members asks.
func chunksOf(f *segment.Footer, of *catalog.Ref, first, last segment.Seq) []segment.Chunk {
	i, _ := slices.BinarySearchFunc(f.Chunks, segment.Pos{Epoch: of.Epoch, Seq: first}, func(c segment.Chunk, from segment.Pos) int {
		if o := strings.Compare(c.Stream, of.Stream); o != 0 {
			return o
		}
		return segment.Pos{Epoch: c.Epoch, Seq: c.Last}.Compare(from)
	})
	n := i
	for n < len(f.Chunks) && f.Chunks[n].Stream == of.Stream && f.Chunks[n].Epoch == of.Epoch && f.Chunks[n].First <= last {
		n++
	}
	return slices.Clone(f.Chunks[i:n])
}

// covered is the part of the run up to a row at end, or before it. An end inside a
// chunk needs its rows counted up to there.
//
// An output that begins inside its first ref, because the head of that is dead, ends
// with a ref: of such a run the catalog swaps whole ones only. What is left is moved
// next time.
func (m *mover) covered(ctx context.Context, mem *member, r *run, end segment.Seq) (cover, error) {
	c := cover{first: r.chunks[0].live.First}
	cut := c.first > r.refs[0].First
	var whole cover // up to the last ref covered to its end
	for i := range r.chunks {
		s := &r.chunks[i]
		if s.Last > end {
			if err := m.coveredIn(ctx, mem, s, end, cut, &c); err != nil {
				return c, err
			}
			break
		}
		c.rows.Add(s.live)
		c.last, c.refs = s.Last, s.of+1
		if s.Last == r.refs[s.of].Last {
			whole = c
		}
	}
	if cut {
		c = whole
	}
	if c.refs == 0 {
		return c, errUncovered
	}
	return c, nil
}

// coveredIn adds the rows up to end of the chunk that end lies in or before.
func (m *mover) coveredIn(ctx context.Context, mem *member, s *source, end segment.Seq, cut bool, c *cover) error {
	if s.live.First > end {
		if c.last != end {
			return &segment.CorruptionError{Reason: fmt.Sprintf("stream %q: an object at this key ends at seq %d, where the sources have no row", mem.stream, end)}
		}
		return nil
	}
	if cut {
		return nil
	}
	p, err := m.live(ctx, s, mem.liveFrom, nil)
	if err != nil {
		return err
	}
	_, head, err := segment.CutRows(p.raw, s.live.First, end)
	if err != nil {
		return segment.InFile(err, s.Key, 0)
	}
	c.rows.Add(head)
	c.last, c.refs = end, s.of+1
	return nil
}

// sameRefs holds the rows that were read against refs that span several chunks:
// those of a single one were held against it when it was read.
func sameRefs(r *run, liveFrom segment.Pos) error {
	sums := make([]segment.Tally, len(r.refs))
	for i := range r.chunks {
		sums[r.chunks[i].of].Add(r.chunks[i].live)
	}
	for i := range r.refs {
		if ref := &r.refs[i]; ref.Chunks > 1 && !straddles(ref, liveFrom) {
			if err := sameRows(ref, &sums[i]); err != nil {
				return segment.InFile(err, ref.Key, 0)
			}
		}
	}
	return nil
}

// holds counts the object's own rows from first to last. Chunks that lie wholly
// within go by their entries; one across an end is read.
func (m *mover) holds(ctx context.Context, key string, chunks []segment.Chunk, first, last segment.Seq) (segment.Tally, error) {
	var sum segment.Tally
	for i := range chunks {
		c := &chunks[i]
		if c.First >= first && c.Last <= last {
			sum.Add(c.Tally())
			continue
		}
		stored, _, err := m.dest.ReadRange(ctx, key, c.Offset, c.Stored)
		if err != nil {
			return sum, fmt.Errorf("read what stands at %s: %w", key, err)
		}
		raw, err := segment.DecodeChunk(c, stored)
		if err != nil {
			return sum, segment.InFile(err, key, 0)
		}
		_, t, err := segment.CutRows(raw, first, last)
		if err != nil {
			return sum, segment.InFile(err, key, 0)
		}
		sum.Add(t)
	}
	return sum, nil
}

// sameSpan holds the object's rows against the sources'. An object that ends
// inside a row, lacks one, or has another for the same seq differs in one of these.
func sameSpan(key, stream string, c *cover, has *segment.Tally) error {
	if has.First == c.rows.First && has.Last == c.last && has.Last == c.rows.Last && has.Rows == c.rows.Rows && has.RowSum == c.rows.RowSum {
		return nil
	}
	return &segment.CorruptionError{File: key, Reason: fmt.Sprintf(
		"stream %q: the object has %d rows %d to %d with sum %016x, the sources %d rows %d to %d with sum %016x; the swap is refused",
		stream, has.Rows, has.First, has.Last, has.RowSum, c.rows.Rows, c.rows.First, c.last, c.rows.RowSum)}
}

// ref is the ref to the output's rows. Several chunks are found by the footer.
func (a *announced) ref(r *run, chunks []segment.Chunk, rows *segment.Tally) catalog.Ref {
	n, first, last := r.refs[0], &chunks[0], &chunks[len(chunks)-1]
	n.First, n.Last = rows.First, rows.Last
	if below := r.chunks[0].below; below != 0 {
		n.PrevLast = segment.Pos{Epoch: n.Epoch, Seq: below}
	}
	n.Key, n.Kind, n.Class = a.key, refKind(a.job.kind), segment.ClassStandard
	n.Revision, n.Generation = int32(a.revision), first.Generation
	n.Chunks, n.Offset, n.Stored = uint32(len(chunks)), first.Offset, last.End()-first.Offset
	n.Codec, n.CRC, n.Sum, n.Raw = 0, 0, 0, 0
	for i := range chunks {
		n.Raw += chunks[i].Raw
	}
	if len(chunks) == 1 {
		n.Codec, n.CRC, n.Sum = first.Codec, first.CRC, first.Sum
	}
	n.Rows, n.RowSum, n.Bytes = rows.Rows, rows.RowSum, rows.Raw
	n.MinTime, n.MaxTime = rows.MinTime, rows.MaxTime
	return n
}

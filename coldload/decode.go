package coldload

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// isCorrupt: the object was read, and it is not what the ref says; a range beyond its
// end is a shorter object.
func isCorrupt(err error) bool {
	return errors.Is(err, ErrCorrupt) || segment.IsStructural(err) ||
		errors.Is(err, objstore.ErrCorrupt) || errors.Is(err, objstore.ErrRange)
}

// span follows one ref while its rows are delivered and proves at its end that
// they were all there: the row count and the row sum are the catalog's.
type span struct {
	ref   *catalog.Ref
	whole bool // the read began at or before the ref's first row
	rows  uint64
	sum   uint64
	last  segment.Seq
}

func (s *span) begin(ref *catalog.Ref, next segment.Seq) {
	*s = span{ref: ref, whole: next <= ref.First}
}

// deliver yields the rows of one decoded chunk that lie in the span and between
// next and to. It returns the seq after the last row it saw in the span, and
// false if the caller's loop is over.
func (s *span) deliver(raw []byte, next, to segment.Seq, yield func(Row) bool) (segment.Seq, bool, error) {
	for batch, err := range segment.Frames(raw) {
		if err != nil {
			return next, false, s.corrupt(next, err.Error())
		}
		if batch.Stream != s.ref.Stream {
			return next, false, s.corrupt(next, fmt.Sprintf("a frame of stream %q stands in its chunk", batch.Stream))
		}
		for i := range batch.Rows {
			row := &batch.Rows[i]
			if row.Seq < s.ref.First || row.Seq > s.ref.Last {
				continue
			}
			if row.Seq <= s.last {
				return next, false, s.corrupt(next, fmt.Sprintf("row %d follows row %d", row.Seq, s.last))
			}
			s.last = row.Seq
			s.rows++
			if s.whole {
				s.sum += segment.RowSum(*row)
			}
			if row.Seq < next {
				continue
			}
			if row.Seq > to || !yield(Row{Epoch: s.ref.Epoch, Row: *row}) {
				return next, false, nil
			}
			next = row.Seq + 1
		}
	}
	return next, true, nil
}

// end compares what was seen with what the catalog says of the span.
func (s *span) end(next segment.Seq) error {
	if s.last != s.ref.Last {
		return s.corrupt(next, fmt.Sprintf("its rows end at seq %d, the ref says %d", s.last, s.ref.Last))
	}
	if s.whole && (s.rows != s.ref.Rows || s.sum != s.ref.RowSum) {
		return s.corrupt(next, fmt.Sprintf("it holds %d rows of sum %016x, the ref says %d of %016x", s.rows, s.sum, s.ref.Rows, s.ref.RowSum))
	}
	return nil
}

func (s *span) corrupt(next segment.Seq, detail string) error {
	return &ReadError{
		Stream: s.ref.Stream, At: segment.Pos{Epoch: s.ref.Epoch, Seq: next}, Key: s.ref.Key,
		Kind: ErrCorrupt, Detail: detail,
	}
}

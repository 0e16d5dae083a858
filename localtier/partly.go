package localtier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// tickets are those of an append's frames; the last apart, for nearly every append has just it.
type tickets struct {
	earlier []wal.Ticket
	last    wal.Ticket
}

func (q *tickets) add(t wal.Ticket) {
	if q.last != (wal.Ticket{}) {
		q.earlier = append(q.earlier, q.last)
	}
	q.last = t
}

// all of them, in order; none if no frame was queued.
func (q *tickets) all() []wal.Ticket {
	if q.last == (wal.Ticket{}) {
		return nil
	}
	return append(slices.Clone(q.earlier), q.last)
}

// PartialError: the log took the first frames of an append and refused a later one, for want of
// disk or of room in its queue. Rows from 0 to Durable-1 of the call are durable, and will be
// published; none of the others is, or will be. It matches the cause's kinds, and ErrPartial.
type PartialError struct {
	Result  // where the durable rows stand
	Rows    int
	Durable int
	Err     error
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("the first %d of the append's %d rows are durable, as seqs %d to %d, and the rest was not taken: append the rest alone, all again would be there twice "+
		"(with a producer or a key an append is taken whole or not at all): %v", e.Durable, e.Rows, e.First, e.Last, e.Err)
}

// Unwrap lets errors.Is find the kind and the cause.
func (e *PartialError) Unwrap() []error { return []error{ErrPartial, e.Err} }

// partly says of an append that was refused which of its rows are durable all the same: those of
// the frames before the refused one, which may have gone with another write. A log that is
// poisoned knows of none what a restart will find.
func (s *shardLog) partly(ctx context.Context, first segment.Seq, frames [][]segment.Row, q tickets, err error) error {
	if errors.Is(err, wal.ErrPoisoned) {
		return err
	}
	durable, rows := 0, 0
	for i, t := range q.all() {
		if _, waited := t.Wait(ctx); waited != nil {
			if !isDone(t) {
				return fmt.Errorf("append: its first rows may still become durable: %w (%v)", waited, err) //nolint:errorlint // of err no kind may show, for its kinds say that nothing was written
			}
			break
		}
		durable += len(frames[i])
	}
	for i := range frames {
		rows += len(frames[i])
	}
	if durable == 0 {
		return err
	}
	return &PartialError{Result: s.result(first, first+segment.Seq(durable)-1), Rows: rows, Durable: durable, Err: err}
}

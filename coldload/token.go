package coldload

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Resume is Rows from the row after a token on: after the row that a reader got last,
// or an appender was answered with. If history forked before that row, so that rows which the
// reader saw are not in the chain, it yields nothing but *catalog.ForkedError.
func (r *Reader) Resume(ctx context.Context, stream string, tok segment.Token, to segment.Pos) iter.Seq2[Row, error] {
	return Checked(r.Rows(ctx, stream, tok.Pos().Next(), to), &tok, func(tok segment.Token) error {
		return r.Check(ctx, stream, tok)
	})
}

// Checked holds a token against the history, by Check or CheckShard, before the first row is
// given out. Not before the first row is here: it was absorbed, and with it the term that wrote
// it has begun, so the check knows of every fork that the row lies behind. What follows an
// absorbed row in the catalog is the same history. A nil token is not checked.
func Checked[R any](rows iter.Seq2[R, error], tok *segment.Token, check func(segment.Token) error) iter.Seq2[R, error] {
	if tok == nil {
		return rows
	}
	return func(yield func(R, error) bool) {
		checked := false
		ok := func() bool {
			if checked {
				return true
			}
			checked = true
			err := check(*tok)
			if err != nil {
				var none R
				yield(none, err)
			}
			return err == nil
		}
		for row, err := range rows {
			if !ok() || !yield(row, err) {
				return
			}
		}
		ok()
	}
}

// Check says whether a token stands in the history of the stream's chain:
// *catalog.ForkedError if not, *catalog.NoPositionError if it never can have. Who reads by
// another way than Resume (an owner's local rows) asks after the source is there and before
// a row of it is given out: an owner serves only once its term has begun, or goes on with
// the history that it published itself.
func (r *Reader) Check(ctx context.Context, stream string, tok segment.Token) error {
	tops, err := r.catalog.Topologies(ctx)
	if err != nil {
		return fmt.Errorf("look up position %s: %w", tok, err)
	}
	if top := catalog.EpochIn(tops, tok.Epoch); top != nil {
		return r.CheckShard(ctx, segment.ShardOf(stream, top.Shards), tok)
	}
	return &catalog.NoPositionError{Token: tok, Never: fmt.Sprintf("there is no epoch %d, see strandline topology show", tok.Epoch)}
}

// CheckShard is Check for a shard scan.
func (r *Reader) CheckShard(ctx context.Context, shard segment.Shard, tok segment.Token) error {
	chain := segment.Chain{Epoch: tok.Epoch, Shard: shard}
	terms, err := r.catalog.Terms(ctx, chain)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return fmt.Errorf("look up position %s in chain %s: %w", tok, chain, err)
	}
	return catalog.CheckToken(terms, tok)
}

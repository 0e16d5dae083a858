package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// absorbed gives what the bucket has. fresh: as of now, not of the last look.
func (f *follower) absorbed(ctx context.Context, fresh bool) error {
	for {
		more, err := f.slice(ctx, fresh)
		if late := f.out.join(); err == nil {
			err = late
		}
		if err != nil || !more {
			return err
		}
	}
}

// slice is a part of it, with a place of those who read from the bucket. It ends when the
// client does not take its rows: others wait for the place.
func (f *follower) slice(ctx context.Context, fresh bool) (more bool, err error) {
	t, err := f.tip(ctx, fresh)
	switch {
	case errors.Is(err, catalog.ErrNotFound) && f.src.mayCome():
		return false, nil
	case err != nil:
		return false, err
	case !f.pos.Less(t.next):
		if t.closed {
			err = errChainEnded
		}
		return false, err
	}
	if err := f.place(ctx); err != nil {
		return false, err
	}
	defer func() { <-f.places.catchUps }()
	f.out.patience = slicePatience
	end := time.Now().Add(sliceTime)
	terms := map[segment.Epoch]segment.Term{}
	for row, err := range f.src.cold(ctx, f.pos, t.next) {
		if err != nil {
			return f.passed(ctx, err)
		}
		term, err := f.term(ctx, terms, row.Epoch)
		if err != nil {
			return false, err
		}
		if err := f.give(&row, term); err != nil {
			return false, err
		}
		if f.out.late() || time.Now().After(end) {
			return true, nil
		}
	}
	f.pos = later(f.pos, t.next)
	return false, nil
}

func (f *follower) tip(ctx context.Context, fresh bool) (tip, error) {
	if fresh {
		return f.src.tip(ctx)
	}
	return f.tips.look(ctx, f.src.key(), f.src.tip)
}

// place waits until few enough read from the bucket.
func (f *follower) place(ctx context.Context) error {
	for {
		beat := time.NewTimer(time.Until(f.out.beatAt()))
		select {
		case f.places.catchUps <- struct{}{}:
			beat.Stop()
			return nil
		case <-beat.C:
			if err := f.out.beat(); err != nil {
				return err
			}
		case <-ctx.Done():
			beat.Stop()
			return context.Cause(ctx)
		}
	}
}

// passed: a trim is no loss if it gave up nothing that this follower had not seen.
func (f *follower) passed(ctx context.Context, err error) (more bool, _ error) {
	if !errors.Is(err, coldload.ErrTrimmed) && !errors.Is(err, coldload.ErrDeleted) {
		return false, err
	}
	if gone := (*coldload.ReadError)(nil); f.pos == (segment.Pos{}) && errors.As(err, &gone) {
		f.pos = gone.First // it asked for what is live, and waits for rows that come again
		return true, nil
	}
	next, ok, planErr := f.src.passed(ctx, f.pos)
	if planErr != nil {
		return false, planErr
	}
	if !ok {
		return false, err
	}
	f.pos = later(f.pos, next)
	return true, nil
}

// term is the one that a row from the bucket gets its token of: the newest that had begun
// when the row was absorbed, or later. So nobody can fork before the row.
func (f *follower) term(ctx context.Context, known map[segment.Epoch]segment.Term, epoch segment.Epoch) (segment.Term, error) {
	if term, ok := known[epoch]; ok {
		return term, nil
	}
	chain, err := f.src.chain(ctx, epoch)
	if err != nil {
		return 0, err
	}
	rows, err := f.Catalog.Terms(ctx, chain)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return 0, err
	}
	var term segment.Term
	for i := range rows {
		if rows[i].First != 0 {
			term = max(term, rows[i].Term)
		}
	}
	known[epoch] = term
	return term, nil
}

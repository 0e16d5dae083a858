package httpapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// local gives what the log of this process has.
func (f *follower) local(ctx context.Context, t *tail) error {
	chain := f.src.chainIn(t)
	if f.on != t {
		if err := f.enter(ctx, t, chain); err != nil || f.on == nil {
			return err
		}
	}
	for range maxTurns {
		_, next, err := t.writer.LocalShard(ctx, chain.Shard)
		if err != nil {
			return err
		}
		err = f.giveLocal(ctx, t, chain, next)
		var notLocal *localtier.NotLocalError
		switch {
		case errors.As(err, &notLocal):
			// What is not local any more was absorbed before: the bucket has it, below First.
			if err := f.absorbed(ctx, true); err != nil {
				return err
			}
			f.pos = later(f.pos, segment.Pos{Epoch: chain.Epoch, Seq: notLocal.First})
		case err != nil:
			return err
		default:
			f.pos = later(f.pos, segment.Pos{Epoch: chain.Epoch, Seq: next})
			f.claim = &segment.Token{Epoch: chain.Epoch, Term: t.terms[chain.Shard], Seq: next - 1}
			f.src.caughtUp()
			return nil
		}
	}
	return fmt.Errorf("%w: local segments went faster than they could be read; try again", catalog.ErrUnavailable)
}

// giveLocal gives the log's rows before next.
func (f *follower) giveLocal(ctx context.Context, t *tail, chain segment.Chain, next segment.Seq) error {
	if f.pos.Seq >= next {
		return nil
	}
	term := t.terms[chain.Shard]
	defer func() {
		// If the log is lost from here on, this is the token to ask for.
		if f.given.Epoch == chain.Epoch {
			f.claim = &segment.Token{Epoch: chain.Epoch, Term: term, Seq: max(f.given.Seq, f.pos.Seq-1)}
		}
	}()
	for row, err := range f.src.local(ctx, t, f.pos.Seq, next-1) {
		if err != nil {
			return err
		}
		if err := f.give(&row, term); err != nil {
			return err
		}
	}
	return nil
}

// enter goes from the bucket to a log: all of the epochs before, and of this one what is
// absorbed, the bucket has. It stays where it is while that cannot be said.
func (f *follower) enter(ctx context.Context, t *tail, chain segment.Chain) error {
	if _, _, err := t.writer.LocalShard(ctx, chain.Shard); err != nil {
		return err // before the catalog is asked for nothing
	}
	done, err := f.resolve(ctx)
	if err != nil {
		return err
	}
	if !done && f.claim.Epoch != chain.Epoch {
		return nil
	}
	// A claim that is not decided is this log's own, or of a term whose rows it goes on with:
	// an owner serves only once its term has begun, or with the history that it published itself.
	if done {
		if err := f.absorbed(ctx, true); err != nil {
			return err
		}
	}
	if f.pos.Epoch < chain.Epoch {
		live, err := f.src.liveIn(ctx, chain)
		if err != nil {
			return err
		}
		f.pos = later(segment.Pos{Epoch: chain.Epoch, Seq: 1}, live)
	}
	f.on = t
	return nil
}

// resolve asks whether what pos rests on became history. If history went on without rows
// that were given, that is a *catalog.ForkedError; if only without what was none of this follower's,
// it goes on from where the log was left.
func (f *follower) resolve(ctx context.Context) (done bool, err error) {
	if f.claim == nil {
		return true, nil
	}
	chain, err := f.src.chain(ctx, f.claim.Epoch)
	if err != nil {
		return false, err
	}
	row, err := f.Catalog.Chain(ctx, chain) // before the terms: they know of all that is absorbed here
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return false, err
	}
	err = f.src.check(ctx, *f.claim)
	var forked *catalog.ForkedError
	switch {
	case errors.As(err, &forked) && (f.given.Epoch != f.claim.Epoch || f.given.Seq < forked.Forked):
		f.pos = segment.Pos{Epoch: f.claim.Epoch, Seq: forked.Forked}
	case err != nil:
		return false, err
	case row.NextSeq <= f.claim.Seq:
		return false, nil
	}
	f.claim = nil
	return true, nil
}

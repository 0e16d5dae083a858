package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// A follower goes in rounds: give all that there is, wait until there may be more. Where
// this process owns the chain, a round reads the local log and the wait is the log's own;
// everywhere else a round reads the bucket, and a wait ends with the next look at the
// catalog. Between the two it goes back and forth as the ownership does: what it takes along is
// the position before which nothing is missing, and, as long as that rests on a log that another
// owner may have gone on without, the token that says so.

const (
	// beatEvery is how long a follower's connection is silent at most.
	beatEvery = 15 * time.Second
	// followPause is between two rounds on a log that many write to: one round takes what a
	// hundred commits brought as well as what one did.
	followPause = 20 * time.Millisecond
	// followPatience is how long a follower tries on when catalog or store do not answer.
	followPatience = 30 * time.Second
	// sliceTime is how long one follower reads from the bucket while others wait to.
	sliceTime = 10 * time.Second
)

var (
	errEnough = errors.New("as many rows as were asked for")
	errBeat   = errors.New("time for a heartbeat")
)

// follower is one request that goes on.
type follower struct {
	*server
	src source
	out *outlet

	// pos: all rows before it were given, or there are none for this follower. Zero: it
	// begins at the first live row, whichever that is by then.
	pos   segment.Pos
	given segment.Pos // the last row given, or that the client came with
	// claim is what pos rests on while it is not known to be history: a local log up to
	// there, or the token that the client came with. nil: pos is history.
	claim *segment.Token
	on    *tail // whose log pos is on; nil: the bucket
	left  int   // rows, to the limit

	round   time.Time // when the last one began
	failing time.Time // since when rounds fail; zero: they do not
}

// follow serves a request with follow=true.
func (s *server) follow(w http.ResponseWriter, r *http.Request, src source, b bounds) {
	if !take(s.places.follows, func() { s.followed(w, r, src, b) }) {
		busy(w)
	}
}

func (s *server) followed(w http.ResponseWriter, r *http.Request, src source, b bounds) {
	sse, err := wantsEvents(r.Header)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer s.tips.hold(src.key())()
	f := &follower{server: s, src: src, pos: b.from, left: b.limit, out: newOutlet(w, sse)}
	if b.token != nil {
		f.claim, f.given = b.token, b.token.Pos()
	}
	s.sayOwner(r.Context(), w, src)
	ctx, end := s.untilStop(r.Context())
	defer end()
	if err = f.run(ctx); errors.Is(err, errEnough) {
		err = f.out.flush()
	}
	switch {
	case err == nil || f.out.gone || r.Context().Err() != nil: // nobody is there to be told
	case !f.out.begun:
		s.fail(w, r, err)
	default:
		p := problemOf(err)
		s.log(w, r, p, err)
		f.out.fail(p)
	}
}

// untilStop ends with the request, or when the process begins to stop.
func (s *server) untilStop(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if s.Stopping == nil {
		return ctx, func() { cancel(nil) }
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.Stopping:
			cancel(fmt.Errorf("%w: follow on at another, or here in a moment, after the last token", errStopping))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}

// sayOwner tells a client who serves it, and where it would be served sooner.
func (s *server) sayOwner(ctx context.Context, w http.ResponseWriter, src source) {
	c, err := src.chain(ctx, s.Epoch)
	if err != nil {
		return // the rounds say it
	}
	s.servedBy(w, c)
	if s.Tail.owner(c) != nil {
		return
	}
	if row, err := s.Catalog.Chain(ctx, c); err == nil && row.Address != "" && !row.Closed {
		w.Header().Set(ownerHeader, row.Address)
	}
}

func (f *follower) run(ctx context.Context) error {
	for {
		f.round = time.Now()
		err := f.once(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			f.failing = time.Time{}
		case !f.out.begun || !passing(err):
			return err
		case f.failing.IsZero():
			f.failing = f.round
		case f.round.Sub(f.failing) > followPatience:
			return err
		}
		if err := f.out.begin(); err != nil {
			return err
		}
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
}

// passing faults are tried again.
func passing(err error) bool {
	return errors.Is(err, catalog.ErrUnavailable) || errors.Is(err, catalog.ErrAmbiguous) ||
		errors.Is(err, objstore.ErrUnavailable) || errors.Is(err, objstore.ErrShort) || errors.Is(err, context.DeadlineExceeded)
}

// stopped says that a local log is closed to readers, and the bucket is what there is.
func stopped(err error) bool {
	for _, kind := range []error{
		localtier.ErrNotOwner, localtier.ErrFenced, localtier.ErrLeaseLost, localtier.ErrClosed, localtier.ErrHalted,
		localtier.ErrChainClosed, localtier.ErrRolledBack, wal.ErrClosed,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// owner is the tail to follow now; nil: the bucket.
func (f *follower) owner() *tail {
	t := f.src.owner()
	if t == nil || f.pos.Epoch > t.epoch {
		return nil
	}
	return t
}

// once is one round.
func (f *follower) once(ctx context.Context) error {
	if t := f.owner(); t != nil {
		err := f.local(ctx, t)
		if !stopped(err) {
			return err
		}
	}
	f.on = nil
	if done, err := f.resolve(ctx); err != nil || !done {
		// Not decided yet: whoever has the chain has not absorbed as far as this follower is.
		return err
	}
	return f.absorbed(ctx, false)
}

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

// absorbed gives what the bucket has. fresh: as of now, not of the last look.
func (f *follower) absorbed(ctx context.Context, fresh bool) error {
	for {
		more, err := f.slice(ctx, fresh)
		if err != nil || !more {
			return err
		}
	}
}

// slice is a part of it, with a place of those who read from the bucket.
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
		if time.Now().After(end) {
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

// give sends a row on.
func (f *follower) give(row *coldload.ShardRow, term segment.Term) error {
	pos := segment.Pos{Epoch: row.Epoch, Seq: row.Seq}
	if pos.Less(f.pos) {
		return nil // it was given
	}
	tok := segment.Token{Epoch: row.Epoch, Term: term, Seq: row.Seq}
	if err := f.out.row(row, tok); err != nil {
		return err
	}
	f.pos, f.given = pos.Next(), pos
	if f.left--; f.left == 0 {
		return errEnough
	}
	return nil
}

// wait returns when there may be more. The connection is never silent for longer than a beat.
func (f *follower) wait(ctx context.Context) error {
	for {
		if err := f.out.flush(); err != nil {
			return err
		}
		err := f.waitOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, errBeat):
			return nil // what it says of the log, the next round sees, too
		}
		if err := f.out.beat(); err != nil {
			return err
		}
	}
}

func (f *follower) waitOnce(ctx context.Context) error {
	ctx, cancel := context.WithDeadlineCause(ctx, f.out.beatAt(), errBeat)
	defer cancel()
	if f.on == nil || !f.failing.IsZero() {
		_, left := f.tips.turn(f.src.key())
		return sleep(ctx, left)
	}
	if err := f.on.writer.Await(ctx, f.src.chainIn(f.on).Shard, f.pos.Seq); err != nil {
		return err
	}
	return sleep(ctx, followPause-time.Since(f.round))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func later(a, b segment.Pos) segment.Pos {
	if a.Less(b) {
		return b
	}
	return a
}

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/access"
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
	// slicePatience is how long it may wait for its client meanwhile, in all.
	slicePatience = time.Second
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
	case err == nil || f.out.gone || r.Context().Err() != nil && !errors.Is(err, access.ErrRevoked): // nobody is there to be told
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

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// reading is one range over rows: one answer after another, each behind the last row.
type reading struct {
	*Client
	q      call
	follow bool
	owner  bool   // rather at the shard's owner
	went   string // the owner that was gone to last
	limit  int    // rows; 0: none
	pulls  bool   // the rows behind a cursor: asked for again, they begin where they began

	yield func(Row, error) bool
	over  bool // the caller's loop ended, or the limit is met

	last  Row // delivered
	rows  int // delivered
	moved bool
	quiet time.Time // since when nothing came; zero: something just did
	wait  backoff
}

func (r *reading) run(ctx context.Context) error {
	for {
		r.ask()
		a, err := r.do(ctx, &r.q)
		if err != nil {
			return err
		}
		if r.toOwner(a) {
			continue
		}
		r.moved = false
		err = r.deliver(ctx, a)
		if r.over || err == nil && !r.follow {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", r.q.op, context.Cause(ctx))
		}
		pause, on := r.again(a, err)
		if !on {
			return fmt.Errorf("%s: %w", r.q.op, err)
		}
		r.log.Debug("going on behind the last row", "op", r.q.op, "server", a.server, "last", r.last.Position(), "err", err)
		r.tell(&r.q, err)
		if !sleep(ctx, pause) {
			return fmt.Errorf("%s: %w", r.q.op, context.Cause(ctx))
		}
	}
}

// ownerHeader names the shard's owner, if it is another process than the one that answers.
const ownerHeader = "Strandline-Owner"

// toOwner leaves an answer of another server for the owner's, once for each owner: one that does
// not answer is no reason not to read what is absorbed.
func (r *reading) toOwner(a *answer) bool {
	owner := a.header.Get(ownerHeader)
	if !r.owner || owner == "" || owner == r.went {
		return false
	}
	r.went = owner
	base, err := trusted(owner, a.server)
	if err != nil || base == a.server {
		return false
	}
	a.close()
	r.remember(r.q.place, base)
	return true
}

// ask sets where the next answer begins.
func (r *reading) ask() {
	if r.limit > 0 && !r.pulls {
		r.q.query.Set("limit", strconv.Itoa(r.limit-r.rows))
	}
	if r.rows > 0 && !r.pulls {
		r.q.query.Del("from")
		r.q.query.Set("after", r.last.Position())
	}
}

// again says whether to ask again after an answer that ended so, and after which pause.
func (r *reading) again(a *answer, err error) (time.Duration, bool) {
	var p *Problem
	switch {
	case errors.As(err, &p) && p.Status == http.StatusMisdirectedRequest:
		r.forgetPlace(r.q.place)
		if owner, err := trusted(p.Owner, a.server); err == nil {
			r.remember(r.q.place, owner)
		}
	case errors.As(err, &p) && errors.Is(p, ErrUnavailable):
	case err != nil && !errors.Is(err, ErrCut):
		return 0, false
	}
	if r.moved {
		r.wait, r.quiet = backoff{}, time.Time{}
	}
	switch {
	case p != nil && errors.Is(p, ErrUnavailable): // it answers: until the context ends
	case r.quiet.IsZero():
		r.quiet = time.Now()
	case time.Since(r.quiet) >= r.cfg.Patience:
		return 0, false
	}
	return r.wait.next(), true
}

// deliver passes an answer's rows on. nil: it ended whole.
func (r *reading) deliver(ctx context.Context, a *answer) error {
	defer a.close()
	silence := time.Duration(0)
	if r.follow {
		silence = r.cfg.Silence
	}
	in := newLines(a, silence)
	defer in.stop()
	for {
		row, err := in.next()
		if errors.Is(err, errEnd) {
			return nil
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, errAlive) {
			r.moved = true
			continue
		}
		if err == nil {
			err = r.take(row)
		}
		if err != nil || r.over {
			return err
		}
	}
}

// take delivers a row that comes behind the last one.
func (r *reading) take(row Row) error {
	if r.rows > 0 && !r.last.Pos().Less(row.Pos()) {
		if r.pulls && !r.moved {
			return nil // asked for again, and delivered before
		}
		return fmt.Errorf("%w: row %s of %q after row %s", ErrOrder, row.Pos(), row.Stream, r.last.Pos())
	}
	r.last, r.moved = row, true
	r.last.Row.Txn, r.last.Row.Payload = nil, nil
	r.rows++
	if !r.yield(row, nil) || r.rows == r.limit {
		r.over = true
	}
	return nil
}

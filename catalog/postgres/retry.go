package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/strandline/strandline/catalog"
)

const (
	// conflictTries bounds how often a verb that lost against others is run again. The
	// waits double up to conflictWait and are drawn at random, so that those who met do
	// not meet again: together some three seconds.
	conflictTries = 20
	conflictFirst = time.Millisecond
	conflictWait  = 250 * time.Millisecond
	// goneFor is how long a verb looks for a server that takes writes. A standby that is
	// promoted by a person or a cluster manager takes longer, and callers have waits of
	// their own, but a restart and a proxy's switch are over by then.
	goneFor   = 10 * time.Second
	goneFirst = 50 * time.Millisecond
	goneWait  = time.Second
	// endWait bounds the wait for an answer to COMMIT. It is not the caller's context: once
	// it is sent, its outcome is about to be known.
	endWait = 15 * time.Second
)

// read runs fn on one snapshot.
func (d *DB) read(ctx context.Context, verb string, fn func(*tx) error) error {
	return d.run(ctx, verb, beginRead, fn)
}

// write runs fn as one transaction. fn may run several times: it reads all that it
// decides by in its transaction, and sets its results anew.
func (d *DB) write(ctx context.Context, verb string, fn func(*tx) error) error {
	if d.readOnly {
		return fmt.Errorf("%w: %s", catalog.ErrReadOnly, verb)
	}
	return d.run(ctx, verb, beginWrite, fn)
}

func (d *DB) run(ctx context.Context, verb, begin string, fn func(*tx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.closing.RUnlock()
	fn = inSession(ctx, verb, fn)
	var lost, away backoff
	for {
		err := d.attempt(ctx, begin, fn)
		var wait time.Duration
		again := false
		switch {
		case err == nil:
			if d.newer.Load() != nil { // an older copy was put back
				d.newer.Store(nil)
			}
			return nil
		case catalog.KindOf(err) != nil:
			return err
		case conflicted(err):
			wait, again = lost.next(conflictFirst, conflictWait), lost.tries <= conflictTries
		case gone(err):
			d.pool.Reset() // idle connections lead to the same server
			wait, again = away.next(goneFirst, goneWait), away.spent <= d.goneFor
		}
		if !again || !sleep(ctx, wait) {
			return mapError(verb, d.refused(ctx, err))
		}
	}
}

// backoff counts tries and draws the wait before the next. spent is the time since the
// first, that wait included.
type backoff struct {
	tries int
	began time.Time
	spent time.Duration
}

func (b *backoff) next(first, most time.Duration) time.Duration {
	bound := min(first<<min(b.tries, 20), most)
	if b.tries++; b.tries == 1 {
		b.began = time.Now()
	}
	wait := bound/2 + rand.N(bound/2+1)
	b.spent = time.Since(b.began) + wait
	return wait
}

func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// attempt runs a verb once. An error that has no kind of the catalog's yet says that
// nothing happened.
func (d *DB) attempt(ctx context.Context, begin string, fn func(*tx) error) error {
	if err := ctx.Err(); err != nil { // a cancelled context starts nothing
		return err
	}
	c, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release() // one within a transaction is closed, and with it the transaction
	t := &tx{ctx: ctx, c: c.Conn(), begin: begin, clock: d.clock, hook: d.hook}
	err = fn(t)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		return d.end(ctx, t, c)
	}
	rollback(ctx, t, c, err)
	return err
}

// end commits. What is not known to have failed is ErrAmbiguous.
func (d *DB) end(ctx context.Context, t *tx, c *pgxpool.Conn) error {
	if t.begin == beginWrite {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), endWait)
		defer cancel()
		t.ctx = ctx
	}
	noticesOf(c.Conn()).forget()
	committing, err := t.end()
	switch {
	case err == nil:
		if said := noticesOf(c.Conn()).warning(); said != "" && t.begin == beginWrite {
			// The wait for the synchronous standby was cut short: the primary has it, and
			// loses it if it is lost now.
			return fmt.Errorf("%w: commit: %s", catalog.ErrAmbiguous, said)
		}
		return nil
	case !committing || t.begin == beginRead || certain(err):
		rollback(ctx, t, c, err)
		return err
	}
	return fmt.Errorf("%w: commit: %w", catalog.ErrAmbiguous, err)
}

// certain says that an error with a commit on the wire came before the commit: the
// server refused a statement, or nothing was sent. An answer that did not come, or that
// the server gave while it went down, says nothing.
func certain(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code {
		case codeReadOnly, codeCanceled, codeIdleInTx, codeTxTimeout, codeIdleSession:
			return true
		}
		return !gone(err) && e.Code[:2] != "57" && e.Code[:2] != "58"
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, errMoved) || catalog.KindOf(err) != nil
}

// rollback gives the connection back as it was. Where that fails the pool closes it.
func rollback(ctx context.Context, t *tx, c *pgxpool.Conn, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if gone(cause) {
		_ = c.Conn().Close(ctx) // it leads to a server that does not serve
		return
	}
	if t.begun && !c.Conn().IsClosed() {
		_, _ = c.Exec(ctx, "ROLLBACK")
	}
}

// acquire waits for a connection, but not for ever: a pool that is too small, or a verb
// that hangs, is to be seen.
func (d *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, d.acquireWait)
	defer cancel()
	c, err := d.pool.Acquire(waiting)
	if err != nil && d.serves && errors.Is(err, catalog.ErrInvalid) {
		// Somebody changed the server since Open, and may change it back: wait, and do not halt.
		// So the error is not wrapped: what is invalid would halt.
		return nil, fmt.Errorf("%w: %s", catalog.ErrUnavailable, err.Error())
	}
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		if d.pool.Stat().AcquiredConns() < d.pool.Config().MaxConns {
			return nil, fmt.Errorf("%w: no server of the DSN answered for %v; check that PostgreSQL runs and can be reached: %w", catalog.ErrUnavailable, d.acquireWait, err)
		}
		return nil, fmt.Errorf("%w: all %d connections were busy for %v; raise the pool's size, or look at pg_stat_activity for what holds them",
			catalog.ErrUnavailable, d.pool.Config().MaxConns, d.acquireWait)
	}
	return c, err
}

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/catalog"
)

// groupMax bounds how many verbs share one commit, and with it how long another
// process waits for its turn.
const groupMax = 256

// request is a verb on its way to the committer.
type request struct {
	fn    func(*tx) error
	state atomic.Int32 // queued -> started, or queued -> withdrawn
	done  chan error
}

const (
	queued int32 = iota
	started
	withdrawn
)

// committer owns the writing connection. Only its goroutine uses c and lock after
// run has begun.
type committer struct {
	c     *conn
	lock  *turnstile
	clock func() time.Time
	queue chan *request
	ended chan struct{}
	newer *newer
	// sick: a commit failed in a way that leaves the log's pages in doubt.
	sick bool
}

func newCommitter(c *conn, lock *turnstile, clock func() time.Time, n *newer) *committer {
	return &committer{c: c, lock: lock, clock: clock, newer: n, queue: make(chan *request, groupMax), ended: make(chan struct{})}
}

// do queues fn and waits. A context that ends before fn began withdraws it; after
// that its outcome is waited for, because it is about to be known.
func (w *committer) do(ctx context.Context, fn func(*tx) error) error {
	r := &request{fn: fn, done: make(chan error, 1)}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(queued, withdrawn) {
			return ctx.Err()
		}
		return <-r.done
	}
}

// run commits what is queued, in groups, until the queue is closed.
func (w *committer) run() {
	defer close(w.ended)
	group := make([]*request, 0, groupMax)
	for r := range w.queue {
		group = w.collect(append(group[:0], r))
		w.serve(group)
	}
}

// collect takes what waits already: what arrives during a commit is the next group.
func (w *committer) collect(group []*request) []*request {
	for len(group) < groupMax {
		select {
		case r, ok := <-w.queue:
			if !ok {
				return group
			}
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// serve runs a group under the outer lock, and answers.
func (w *committer) serve(group []*request) {
	if err := w.lock.lock(); err != nil {
		answerAll(group, err)
		return
	}
	errs, err := w.commit(group)
	if uerr := w.lock.unlock(); uerr != nil && err == nil {
		// Committed. The lock goes with the file at the latest; the next lock() says it.
		w.sick = true
	}
	for i, r := range group {
		if err != nil && errs[i] == nil {
			errs[i] = err
		}
		r.done <- errs[i]
	}
}

func answerAll(group []*request, err error) {
	for _, r := range group {
		r.done <- err
	}
}

// commit runs the group in one transaction. errs are the verbs' own; err is that of
// the whole, for all that have none.
//
// Verbs run without savepoints, which would copy every page that they touch. One
// whose guard fails has mostly written nothing, and needs no undoing. If one fails
// after a write, the whole is rolled back and run again, with savepoints.
func (w *committer) commit(group []*request) (errs []error, err error) {
	t := &tx{ctx: context.Background(), c: w.c}
	if err := w.heal(t); err != nil {
		return make([]error, len(group)), err
	}
	errs, dirty, err := w.attempt(t, group, w.bare)
	if dirty {
		errs, _, err = w.attempt(t, group, w.saved)
	}
	return errs, err
}

// attempt runs the group's verbs by each, and commits. dirty: one failed after a
// write that is not undone, so all of it was rolled back.
func (w *committer) attempt(t *tx, group []*request, each func(*tx, func(*tx) error) (own, whole error, dirty bool)) (errs []error, dirty bool, err error) {
	errs = make([]error, len(group))
	if err := t.control("BEGIN IMMEDIATE"); err != nil {
		return errs, false, mapError("begin", err)
	}
	if err := w.newer.check(t); err != nil {
		return errs, false, errors.Join(err, w.rollback(t))
	}
	t.now = w.clock()
	for i, r := range group {
		if !r.state.CompareAndSwap(queued, started) && r.state.Load() == withdrawn {
			continue
		}
		var whole error
		if errs[i], whole, dirty = each(t, r.fn); whole != nil || dirty {
			// SQLite gave the transaction up (disk full, I/O), or it needs another
			// attempt: nothing of it happened.
			return errs, dirty, errors.Join(whole, w.rollback(t))
		}
	}
	// A crash before the commit record is synced leaves nothing of the group; after
	// it, all of it, and callers that never got an answer call again.
	if err := t.control("COMMIT"); err != nil {
		mapped, ambiguous := mapCommit(err)
		w.sick = w.sick || ambiguous
		if rerr := w.rollback(t); rerr != nil {
			w.sick = true
		}
		return errs, false, mapped
	}
	return errs, false, nil
}

// bare runs a verb without a savepoint.
func (w *committer) bare(t *tx, fn func(*tx) error) (own, whole error, dirty bool) {
	t.wrote = false
	own = fn(t)
	return own, nil, own != nil && t.wrote
}

// saved runs a verb in a savepoint. own is its error; whole says that the
// transaction is lost.
func (w *committer) saved(t *tx, fn func(*tx) error) (own, whole error, dirty bool) {
	if err := t.control("SAVEPOINT verb"); err != nil {
		return nil, mapError("savepoint", err), false
	}
	if own = fn(t); own != nil {
		if err := t.control("ROLLBACK TO verb"); err != nil {
			return mapError("verb", own), mapError("a verb of the group lost the transaction", errors.Join(own, err)), false
		}
	}
	if err := t.control("RELEASE verb"); err != nil {
		return own, mapError("release", err), false
	}
	return own, nil, false
}

// rollback ends a transaction that may have ended itself.
func (w *committer) rollback(t *tx) error {
	err := t.control("ROLLBACK")
	if err != nil && kindOf(err) == nil {
		return nil // "no transaction is active": SQLite rolled back on its own
	}
	return mapError("rollback", err)
}

// heal, after a commit in doubt, carries the whole log into the database file and
// syncs that before anything is written again. A later commit on top of log pages
// that never reached the disk would be lost with them (the fsync lesson of 02).
func (w *committer) heal(t *tx) error {
	if !w.sick {
		return nil
	}
	var busy, log, done int64
	if _, err := t.one("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &log, &done); err != nil {
		return fmt.Errorf("%w: checkpoint after a failed commit: %w; nothing is written until it succeeds", catalog.ErrUnavailable, err)
	}
	if busy != 0 {
		return fmt.Errorf("%w: checkpoint after a failed commit: readers hold the log; nothing is written until it succeeds", catalog.ErrUnavailable)
	}
	w.sick = false
	return nil
}

// close ends the goroutine after what is queued, and closes the connection.
func (w *committer) close() error {
	close(w.queue)
	<-w.ended
	return errors.Join(w.c.close(), w.lock.close())
}

// prepare brings a file that this process opened up to date, under the outer lock.
func (w *committer) prepare(ctx context.Context, path string) (err error) {
	if err := w.lock.lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.lock.unlock()) }()
	v, err := w.c.userVersion(ctx)
	if err != nil {
		return err
	}
	if err := checkVersion(path, v); err != nil {
		return err
	}
	var mode string
	t := &tx{ctx: ctx, c: w.c}
	if _, err := t.one("PRAGMA journal_mode = WAL", nil, &mode); err != nil {
		return mapError("journal mode", err)
	}
	if mode != "wal" {
		return fmt.Errorf("%w: journal mode is %q, this file system does not take wal: put the catalog on a local disk", catalog.ErrInvalid, mode)
	}
	if err := w.c.pragma(ctx, fmt.Sprintf("wal_autocheckpoint = %d", checkpointPages)); err != nil {
		return err
	}
	return migrate(ctx, w.c, v)
}

// migrate runs what is missing, each version in a transaction of its own. A new file gets
// all of them in one: whoever opens it meanwhile finds nothing, or the whole.
func migrate(ctx context.Context, c *conn, from int) error {
	for v := from; v < schemaVersion; v++ {
		steps := migrations[v : v+1]
		if from == 0 {
			steps = migrations[:]
			v = schemaVersion - 1
		}
		script := fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA user_version = %d;\nCOMMIT;", strings.Join(steps, "\n"), v+1)
		if _, err := c.raw.ExecContext(ctx, script); err != nil {
			_, rerr := c.raw.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			if rerr != nil && kindOf(rerr) == nil {
				rerr = nil // no transaction is active
			}
			return errors.Join(mapError(fmt.Sprintf("migration to schema %d", v+1), err), rerr)
		}
	}
	return nil
}

func checkVersion(path string, v int) error {
	if v > schemaVersion {
		return fmt.Errorf("%w: catalog %s has schema %d, this build knows %d: a newer strandline wrote it; run that version or a newer one", catalog.ErrInvalid, path, v, schemaVersion)
	}
	return nil
}

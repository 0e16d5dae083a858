package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/strandline/strandline/catalog/internal/column"
)

// tx is what a verb works with: one transaction, and the one moment at which the verb
// judges all ages. Statements are queued, and sent together when an answer is needed: a
// queue is one round trip, however many statements it has. The first one carries BEGIN,
// and the reading of the clock last: behind the locks that it takes, for a verb that
// waited for a lock must not judge by the time at which it began to wait.
type tx struct {
	ctx   context.Context
	c     *pgx.Conn
	begin string
	clock func() time.Time // nil: the database's
	hook  *hook
	now   time.Time // zero until the first answer

	queue  pgx.Batch
	begun  bool
	timed  bool // the clock is read, or about to be
	checks bool // a queued statement may yet say that a row moved
}

// The two kinds of transactions (see doc.go).
const (
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED"
	beginRead  = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
)

// exec queues a statement whose answer nobody needs.
func (t *tx) exec(q string, args ...any) { t.queue.Queue(q, args...) }

// execAll queues a statement that has to change n rows; otherwise one of them moved since
// it was read, and the verb is run again.
func (t *tx) execAll(n int, q string, args ...any) {
	t.checks = true
	t.queue.Queue(q, args...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(n) {
			return fmt.Errorf("%w: %d of %d", errMoved, tag.RowsAffected(), n)
		}
		return nil
	})
}

// execN sends the queue and a statement, and returns the number of rows it changed.
func (t *tx) execN(q string, args ...any) (n int64, err error) {
	t.queue.Queue(q, args...).Exec(func(tag pgconn.CommandTag) error {
		n = tag.RowsAffected()
		return nil
	})
	return n, t.flush()
}

// errStop ends a query early, without an error.
var errStop = errors.New("stop")

// ask queues a query; row is called for every row of it when the queue is sent, and
// errStop from it drops the others.
func (t *tx) ask(q string, row func(scan column.Scan) error, args ...any) {
	t.queue.Queue(q, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := row(rows.Scan); errors.Is(err, errStop) {
				break
			} else if err != nil {
				return err
			}
		}
		rows.Close()
		return rows.Err()
	})
}

// query sends the queue and a query.
func (t *tx) query(q string, row func(scan column.Scan) error, args ...any) error {
	t.ask(q, row, args...)
	return t.flush()
}

// one asks for at most one row; ok is set if there is one.
func (t *tx) askOne(q string, args []any, ok *bool, dest ...any) {
	t.ask(q, func(scan column.Scan) error {
		if ok != nil {
			*ok = true
		}
		return scan(dest...)
	}, args...)
}

func (t *tx) one(q string, args []any, dest ...any) (ok bool, err error) {
	t.askOne(q, args, &ok, dest...)
	err = t.flush()
	return ok && err == nil, err
}

// know begins the transaction, if only for its clock.
func (t *tx) know() error {
	if t.timed {
		return nil
	}
	return t.flush()
}

// flush sends what is queued, and hands out the answers in order.
func (t *tx) flush() error {
	b := t.queue
	t.queue, t.checks = pgx.Batch{}, false
	if !t.begun {
		first := pgx.Batch{}
		first.Queue(t.begin)
		b.QueuedQueries = append(first.QueuedQueries, b.QueuedQueries...)
		t.begun = true
	}
	t.readClock(&b)
	if b.Len() == 0 {
		return nil
	}
	if t.hook != nil && t.hook.split {
		return t.apart(&b)
	}
	return t.hook.around(t, func() error { return t.c.SendBatch(t.ctx, &b).Close() })
}

// apart sends each statement in a round trip of its own.
func (t *tx) apart(b *pgx.Batch) error {
	for _, q := range b.QueuedQueries {
		one := pgx.Batch{QueuedQueries: []*pgx.QueuedQuery{q}}
		if err := t.hook.around(t, func() error { return t.c.SendBatch(t.ctx, &one).Close() }); err != nil {
			return err
		}
	}
	return nil
}

// hook is for tests: what happens around each round trip. One that before refuses is not
// sent.
type hook struct {
	split  bool // one round trip a statement, so that something may come between any two
	before func(t *tx) error
	after  func(t *tx, err error) error
}

func (h *hook) around(t *tx, send func() error) error {
	if h == nil {
		return send()
	}
	if err := h.before(t); err != nil {
		return err
	}
	return h.after(t, send())
}

func (t *tx) readClock(b *pgx.Batch) {
	if t.timed {
		return
	}
	t.timed = true
	if t.clock != nil {
		t.now = t.clock()
		b.Queue(moment, schemaVersion)
		return
	}
	b.Queue(moment, schemaVersion).QueryRow(func(row pgx.Row) error { return row.Scan(&t.now) })
}

// end sends the rest of the queue with the commit behind it. A crash of the server before
// its commit record is on disk leaves nothing of the verb; after it, all of it.
func (t *tx) end() (committing bool, err error) {
	if t.checks { // no commit before every answer is in
		if err := t.flush(); err != nil {
			return false, err
		}
	}
	if !t.begun && t.queue.Len() == 0 {
		return false, nil
	}
	committed := false
	t.readClock(&t.queue)
	t.queue.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		committed = tag.String() == "COMMIT"
		return nil
	})
	if err := t.flush(); err != nil {
		return true, err
	}
	if !committed {
		return false, fmt.Errorf("%w: the server rolled back", errMoved)
	}
	return true, nil
}

func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// plain is a text that a column takes: no NUL, and valid UTF-8.
func plain(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

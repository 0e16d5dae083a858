package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// conn is one connection with its prepared statements. One goroutine at a time.
type conn struct {
	raw   *sql.Conn
	stmts map[string]*sql.Stmt
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

func (c *conn) pragma(ctx context.Context, p string) error {
	_, err := c.raw.ExecContext(ctx, "PRAGMA "+p)
	return mapError("pragma "+p, err)
}

func (c *conn) userVersion(ctx context.Context) (int, error) {
	var v int
	err := c.raw.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	return v, mapError("schema version", err)
}

func (c *conn) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if s, ok := c.stmts[q]; ok {
		return s, nil
	}
	s, err := c.raw.PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	c.stmts[q] = s // texts are constants of this package: a bounded set
	return s, nil
}

// snapshot runs fn in a deferred transaction: one state for all its statements.
func (c *conn) snapshot(ctx context.Context, now time.Time, fn func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Neither its begin nor its end may be cut short, or the connection keeps it for the
	// next reader; both take no lock and no time.
	t := &tx{ctx: context.WithoutCancel(ctx), c: c, now: now}
	if err := t.begin(); err != nil {
		return err
	}
	t.ctx = ctx
	err := fn(t)
	t.ctx = context.WithoutCancel(ctx)
	return errors.Join(err, t.control("ROLLBACK"))
}

// tx is what a verb works with: one connection within a transaction, and the one
// moment at which the verb judges all ages.
type tx struct {
	ctx   context.Context
	c     *conn
	now   time.Time
	wrote bool // a statement that may have changed something was run
}

// begin begins a snapshot. The driver may interrupt a connection a moment after the
// query that was cancelled has returned, and so cut the end of the snapshot before this
// one: it is ended first, then.
func (t *tx) begin() error {
	err := t.control("BEGIN")
	if err == nil || t.control("ROLLBACK") != nil {
		return err
	}
	return t.control("BEGIN")
}

// control runs a statement that begins or ends something, and changes no row.
func (t *tx) control(q string) error {
	s, err := t.c.stmt(t.ctx, q)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(t.ctx)
	return err
}

func (t *tx) exec(q string, args ...any) error {
	_, err := t.execN(q, args...)
	return err
}

// execN returns the number of rows changed.
func (t *tx) execN(q string, args ...any) (int64, error) {
	t.wrote = true
	s, err := t.c.stmt(t.ctx, q)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// errStop ends a query early, without an error.
var errStop = errors.New("stop")

// query calls row for every row; errStop from it ends the query.
func (t *tx) query(q string, row func(scan func(...any) error) error, args ...any) (err error) {
	s, err := t.c.stmt(t.ctx, q)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(t.ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// one reads at most one row; ok is false if there is none.
func (t *tx) one(q string, args []any, dest ...any) (ok bool, err error) {
	err = t.query(q, func(scan func(...any) error) error {
		ok = true
		return errors.Join(scan(dest...), nil)
	}, args...)
	return ok && err == nil, err
}

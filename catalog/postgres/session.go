package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/strandline/strandline/catalog"
)

const sessionKey = "strandline session"

// A connection leads to one server for as long as it lives, so each is asked once which one
// that is. When a server was started tells it from every other one, from the standby that is
// promoted in its place, and from itself before a restart or a restore. What it does not tell
// is a restore into a server that goes on: an old dump, read into our schema.
const askSession = "SELECT extract(epoch FROM pg_postmaster_start_time())::text"

// rememberSession asks a new connection. An engine that does not know the function cannot
// tell its sessions apart.
func rememberSession(ctx context.Context, c *pgx.Conn) error {
	var s string
	err := c.QueryRow(ctx, askSession).Scan(&s)
	if code := codeOf(err); code == "42883" || code == "0A000" {
		err = nil
	}
	c.PgConn().CustomData()[sessionKey] = catalog.Session(s)
	return err
}

func sessionOf(c *pgx.Conn) catalog.Session {
	s, _ := c.PgConn().CustomData()[sessionKey].(catalog.Session)
	return s
}

// inSession holds a verb to the session that its caller bound it to, on the connection that
// its transaction runs on, and before the first statement: what is run again after a
// fail-over is so not made where commits are missing.
func inSession(ctx context.Context, verb string, fn func(*tx) error) func(*tx) error {
	return func(t *tx) error {
		if err := catalog.CheckSession(ctx, verb, func() catalog.Session { return sessionOf(t.c) }); err != nil {
			return err
		}
		return fn(t)
	}
}

// Session is that of the server which answers now.
func (d *DB) Session(ctx context.Context) (s catalog.Session, err error) {
	err = d.read(ctx, "Session", func(t *tx) error {
		s = sessionOf(t.c)
		return t.know()
	})
	return s, err
}

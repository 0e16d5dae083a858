package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// notices are the warnings that a connection's server sent since they were forgotten. A
// server whose wait for its synchronous standby is cut short (pg_cancel_backend, a client
// that gave up) answers COMMIT with success and a warning: the row is on the primary's disk
// and nowhere else. Who acknowledges on that loses it with the primary (I1). A verb that is
// called again after it keeps a row, so that its own COMMIT waits for the standby.
type notices struct{ said string }

const noticesKey = "strandline"

// hear is called on the goroutine that reads the connection's answers.
func hear(c *pgconn.PgConn, n *pgconn.Notice) {
	if all, ok := c.CustomData()[noticesKey].(*notices); ok && n.SeverityUnlocalized == "WARNING" && all.said == "" {
		all.said = n.Message + " (" + n.Code + ")"
	}
}

// reset gives a new connection its own.
func (*notices) reset(c *pgx.Conn) { c.PgConn().CustomData()[noticesKey] = &notices{} }

func noticesOf(c *pgx.Conn) *notices {
	if all, ok := c.PgConn().CustomData()[noticesKey].(*notices); ok {
		return all
	}
	return &notices{}
}

func (n *notices) forget()         { n.said = "" }
func (n *notices) warning() string { return n.said }

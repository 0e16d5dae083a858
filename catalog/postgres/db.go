package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/strandline/strandline/catalog"
)

// Options of a database.
type Options struct {
	// DSN is a URL or a list of key=value, as libpq takes it. Several hosts may be named;
	// of those the one that takes writes is used (target_session_attrs=read-write, unless
	// the DSN says otherwise).
	DSN string
	// Schema holds everything (default "strandline"); it is created if it is missing.
	Schema string
	// MustExist opens a catalog that stands: ErrNotFound, and nothing made, where there is no
	// schema. ReadOnly is that, brings no schema up, and refuses every writing verb.
	MustExist, ReadOnly bool
	// MaxConns bounds the pool (default 16). A verb holds one connection, and waits for one
	// as long as AcquireWait (default 10 s).
	MaxConns    int
	AcquireWait time.Duration
	// StatementTimeout bounds each statement (default 30 s), LockTimeout the wait for a
	// lock (default 10 s), both at the server.
	StatementTimeout time.Duration
	LockTimeout      time.Duration
	// Clock is for tests; nil is the database's.
	Clock func() time.Time
	// WindowRefs is for tests: what catalog.MaxWindowRefs is, if it is not 0.
	WindowRefs int
	// Tracer is for tests: it sees every statement.
	Tracer pgx.QueryTracer
}

const (
	// DefaultSchema holds the tables.
	DefaultSchema           = "strandline"
	defaultMaxConns         = 16
	defaultAcquireWait      = 10 * time.Second
	defaultStatementTimeout = 30 * time.Second
	defaultLockTimeout      = 10 * time.Second
	// idleTimeout ends a transaction whose process stalled between two statements: its
	// locks hold up others. No verb waits for anything but the database within one.
	idleTimeout = 30 * time.Second
	// connectTimeout bounds the attempt at each host of the DSN that says nothing of it.
	connectTimeout = 3 * time.Second
)

// DB implements catalog.Catalog.
type DB struct {
	pool        *pgxpool.Pool
	schema      string
	clock       func() time.Time // nil: the database's
	windowRefs  int
	acquireWait time.Duration
	goneFor     time.Duration
	hook        *hook // nil, but in tests
	readOnly    bool
	serves      bool                  // Open is done
	newer       atomic.Pointer[error] // what moment found

	closing sync.RWMutex // held for reading by every verb
	closed  bool
}

var _ catalog.Catalog = (*DB)(nil)

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open connects, refuses a server that does not keep what it acknowledged, and brings the
// schema up to this build's.
func Open(ctx context.Context, opt Options) (*DB, error) {
	opt = withDefaults(opt)
	if !schemaName.MatchString(opt.Schema) {
		return nil, catalog.Invalid("Open", "schema %q: lower-case letters, digits and _ may be", opt.Schema)
	}
	config, err := poolConfig(&opt)
	if err != nil {
		return nil, err
	}
	if opt.MustExist || opt.ReadOnly {
		if err := standing(ctx, config.ConnConfig, opt.Schema, opt.ReadOnly); err != nil {
			return nil, err
		}
	}
	if !opt.ReadOnly {
		if err := migrate(ctx, config.ConnConfig, opt.Schema, migrations); err != nil {
			return nil, err
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, mapError("open", err)
	}
	d := &DB{pool: pool, schema: opt.Schema, clock: opt.Clock, windowRefs: opt.WindowRefs, acquireWait: opt.AcquireWait, goneFor: goneFor, readOnly: opt.ReadOnly}
	if _, err := d.Now(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.serves = true
	return d, nil
}

func withDefaults(opt Options) Options {
	if opt.Schema == "" {
		opt.Schema = DefaultSchema
	}
	if opt.MaxConns <= 0 {
		opt.MaxConns = defaultMaxConns
	}
	if opt.AcquireWait <= 0 {
		opt.AcquireWait = defaultAcquireWait
	}
	if opt.StatementTimeout <= 0 {
		opt.StatementTimeout = defaultStatementTimeout
	}
	if opt.LockTimeout <= 0 {
		opt.LockTimeout = defaultLockTimeout
	}
	if opt.WindowRefs <= 0 {
		opt.WindowRefs = catalog.MaxWindowRefs
	}
	return opt
}

func poolConfig(opt *Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(opt.DSN)
	if err != nil {
		// The driver's error has the DSN without its password.
		return nil, catalog.Invalid("Open", "DSN: %v", err)
	}
	config.MaxConns = int32(min(opt.MaxConns, 1000))
	c := config.ConnConfig
	c.Tracer = opt.Tracer
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "strandline"
	}
	c.RuntimeParams["search_path"] = opt.Schema
	c.RuntimeParams["statement_timeout"] = millis(opt.StatementTimeout)
	c.RuntimeParams["lock_timeout"] = millis(opt.LockTimeout)
	c.RuntimeParams["idle_in_transaction_session_timeout"] = millis(idleTimeout)
	c.OnNotice = hear
	config.AfterConnect = prepareConn
	return config, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// prepareConn looks at every new connection, for after a fail-over it leads to another
// server.
func prepareConn(ctx context.Context, c *pgx.Conn) error {
	noticesOf(c).reset(c)
	var commits string
	if err := c.QueryRow(ctx, "SHOW synchronous_commit").Scan(&commits); err != nil {
		return err
	}
	if commits != "on" && commits != "remote_apply" {
		return fmt.Errorf("%w: PostgreSQL has synchronous_commit = %s, so a crash loses what it acknowledged; set it to on (ALTER SYSTEM, ALTER ROLE or ALTER DATABASE … SET synchronous_commit = on)",
			catalog.ErrInvalid, commits)
	}
	// What a session sets for itself stands, whatever ALTER SYSTEM and a reload say later.
	if _, err := c.Exec(ctx, "SET synchronous_commit = "+commits); err != nil {
		return err
	}
	if err := rememberSession(ctx, c); err != nil {
		return err
	}
	return steadyPlans(ctx, c)
}

// steadyPlans keeps the planner on the indexes that the verbs are written for. A table
// that has just been made has no statistics, and a plan that was made for a few rows is
// kept by the connection while millions come. What an engine does not know it ignores.
func steadyPlans(ctx context.Context, c *pgx.Conn) error {
	for _, p := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"} {
		if _, err := c.Exec(ctx, "SET "+p+" = off"); err != nil && codeOf(err) != "42704" {
			return err
		}
	}
	return nil
}

// Close waits for verbs under way.
func (d *DB) Close() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if !d.closed {
		d.closed = true
		d.pool.Close()
	}
	return nil
}

// enter keeps the database open while a verb runs.
func (d *DB) enter() error {
	d.closing.RLock()
	if d.closed {
		d.closing.RUnlock()
		return fmt.Errorf("%w: the catalog is closed", catalog.ErrUnavailable)
	}
	return nil
}

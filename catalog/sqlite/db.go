package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
)

// Options of a database.
type Options struct {
	// Path of the file; `-wal`, `-shm`, `-turnstile` and `-writer` lie beside it.
	Path string
	// ReadOnly refuses every writing verb and takes no lock that a writer waits for.
	// SQLite still needs to write the -shm file, or at least to read it and the -wal.
	ReadOnly bool
	// Create makes the file if it is missing; without it, ErrNotFound.
	Create bool
	// Clock is the database's clock; nil is time.Now.
	Clock func() time.Time
	// CacheBytes bounds the writer's page cache (default 128 MiB). Rows that scatter
	// over many streams need the index's upper part in memory.
	CacheBytes int64
	// Readers is the number of reading connections (default 2: on two cores more are
	// slower), each with a cache of an eighth of CacheBytes.
	Readers int
	// WindowRefs is for tests: what catalog.MaxWindowRefs is, if it is not 0.
	WindowRefs int
}

const (
	defaultCacheBytes = 128 << 20
	defaultReaders    = 2
	pageBytes         = 4096
	// checkpointPages is how long the log grows before it is carried over: 128 MiB. A
	// scattered batch dirties one to two pages a row, and pages that are dirtied again
	// before the checkpoint are carried over once: a fifth to a quarter less is written
	// than with 32 MiB. Twice as long saves a tenth more, and the commit that carries the
	// log over, which everyone waits for, may then have twice as much to carry.
	checkpointPages = 32768
	// busyMillis is what is waited for a writer that is not ours (the sqlite3 tool):
	// ours stand behind the turnstile.
	busyMillis = 5000
)

// DB implements catalog.Catalog.
type DB struct {
	opt     Options
	clock   func() time.Time
	pool    *sql.DB
	readers chan *conn
	writer  *committer // nil if read-only
	newer   newer
	file    os.FileInfo // as it was opened

	closing sync.RWMutex // held for reading by every verb
	closed  bool
}

var _ catalog.Catalog = (*DB)(nil)

// Open opens the file, brings its schema up to this build's, and starts the
// committer. Close ends it.
func Open(ctx context.Context, opt Options) (*DB, error) {
	d := &DB{opt: opt, clock: opt.Clock}
	if d.clock == nil {
		d.clock = time.Now
	}
	if d.opt.CacheBytes <= 0 {
		d.opt.CacheBytes = defaultCacheBytes
	}
	if d.opt.Readers <= 0 {
		d.opt.Readers = defaultReaders
	}
	if d.opt.WindowRefs <= 0 {
		d.opt.WindowRefs = catalog.MaxWindowRefs
	}
	if err := d.checkPath(); err != nil {
		return nil, err
	}
	if err := d.open(ctx); err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

func (d *DB) checkPath() error {
	if d.opt.Path == "" {
		return catalog.Invalid("Open", "no path")
	}
	if d.opt.ReadOnly && d.opt.Create {
		return catalog.Invalid("Open", "read-only and create")
	}
	abs, err := filepath.Abs(d.opt.Path)
	if err != nil {
		return catalog.Invalid("Open", "path %q: %v", d.opt.Path, err)
	}
	d.opt.Path, d.newer.path = abs, abs
	if _, err := os.Stat(abs); errors.Is(err, os.ErrNotExist) && !d.opt.Create {
		return fmt.Errorf("%w: catalog %s; check the path, or start a writer or `strandline up`, which makes it", catalog.ErrNotFound, abs)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: catalog %s: %w", catalog.ErrUnavailable, abs, err)
	}
	return checkFS(filepath.Dir(abs))
}

func (d *DB) open(ctx context.Context) error {
	mode := "rw"
	if d.opt.ReadOnly {
		mode = "ro"
	} else if d.opt.Create {
		mode = "rwc"
	}
	u := url.URL{Scheme: "file", Path: d.opt.Path, RawQuery: fmt.Sprintf("mode=%s&_pragma=busy_timeout(%d)", mode, busyMillis)}
	pool, err := sql.Open("sqlite", u.String())
	if err != nil {
		return mapError("open "+d.opt.Path, err)
	}
	d.pool = pool
	if !d.opt.ReadOnly {
		if err := d.openWriter(ctx); err != nil {
			return err
		}
	}
	d.readers = make(chan *conn, d.opt.Readers)
	for range d.opt.Readers {
		c, err := d.openReader(ctx)
		if err != nil {
			return err
		}
		d.readers <- c
	}
	if d.file, err = os.Stat(d.opt.Path); err != nil {
		return mapError("open "+d.opt.Path, err)
	}
	return nil
}

func (d *DB) openWriter(ctx context.Context) error {
	lock, err := openTurnstile(d.opt.Path)
	if err != nil {
		return err
	}
	c, err := d.connect(ctx, d.opt.CacheBytes)
	if err != nil {
		return errors.Join(err, lock.close())
	}
	w := newCommitter(c, lock, d.clock, &d.newer)
	if err := w.prepare(ctx, d.opt.Path); err != nil {
		return errors.Join(err, c.close(), lock.close())
	}
	d.writer = w
	go w.run()
	return nil
}

func (d *DB) openReader(ctx context.Context) (*conn, error) {
	c, err := d.connect(ctx, d.opt.CacheBytes/8)
	if err != nil {
		return nil, d.explainReadOnly(err)
	}
	v, err := c.userVersion(ctx)
	if err == nil {
		err = checkVersion(d.opt.Path, v)
	}
	if err == nil && v == 0 {
		err = fmt.Errorf("%w: catalog %s is empty: whoever makes it is not done yet, or it is no catalog", catalog.ErrNotFound, d.opt.Path)
	}
	if err == nil && v < schemaVersion {
		err = fmt.Errorf("%w: catalog %s has schema %d, this build reads %d; open it once for writing to bring it up", catalog.ErrInvalid, d.opt.Path, v, schemaVersion)
	}
	if err == nil {
		err = c.pragma(ctx, "query_only = 1")
	}
	if err != nil {
		return nil, errors.Join(d.explainReadOnly(err), c.close())
	}
	return c, nil
}

// explainReadOnly says what SQLite needs to read a file in WAL mode: to write the
// -shm file, or to find it and the -wal as a process that died left them. A file that
// was closed well has neither, so somebody has to make them. (immutable=1 would open
// it, and read nonsense as soon as anyone writes.)
func (d *DB) explainReadOnly(err error) error {
	if !d.opt.ReadOnly || !errors.Is(err, catalog.ErrUnavailable) && !errors.Is(err, catalog.ErrReadOnly) {
		return err
	}
	if ctxErr(err) {
		return err // the caller's doing, not the file's
	}
	return fmt.Errorf("%w: reading %s needs a -shm file beside it, and this user may not write in that directory: run as one who may, or read a copy (%s)",
		catalog.ErrUnavailable, d.opt.Path, err.Error())
}

// connect opens one connection with the pragmas that all have.
func (d *DB) connect(ctx context.Context, cache int64) (*conn, error) {
	raw, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, mapError("open "+d.opt.Path, err)
	}
	c := &conn{raw: raw, stmts: map[string]*sql.Stmt{}}
	for _, p := range []string{
		fmt.Sprintf("cache_size = %d", max(cache/pageBytes, 64)),
		"temp_store = MEMORY", "synchronous = FULL", "trusted_schema = 0",
	} {
		if err := c.pragma(ctx, p); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// Close waits for verbs under way.
func (d *DB) Close() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return d.release()
}

func (d *DB) release() error {
	var errs []error
	for range len(d.readers) {
		errs = append(errs, (<-d.readers).close())
	}
	if d.writer != nil {
		errs = append(errs, d.writer.close())
	}
	if d.pool != nil {
		errs = append(errs, d.pool.Close())
	}
	return errors.Join(errs...)
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

// read runs fn on a snapshot.
func (d *DB) read(ctx context.Context, verb string, fn func(*tx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.closing.RUnlock()
	var c *conn
	select {
	case c = <-d.readers:
	case <-ctx.Done():
		return mapError(verb, ctx.Err())
	}
	defer func() { d.readers <- c }()
	return mapError(verb, c.snapshot(ctx, d.clock(), func(t *tx) error {
		if err := d.newer.check(t); err != nil {
			return err
		}
		return d.inSession(ctx, verb, fn)(t)
	}))
}

// write runs fn as one transaction, or as part of one with its own savepoint.
func (d *DB) write(ctx context.Context, verb string, fn func(*tx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.closing.RUnlock()
	if d.writer == nil {
		return fmt.Errorf("%w: %s", catalog.ErrReadOnly, verb)
	}
	return mapError(verb, d.writer.do(ctx, d.inSession(ctx, verb, fn)))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/postgres"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
)

// catalogURLs is what --catalog takes, for help texts and errors.
const catalogURLs = "sqlite:///path/catalog.db (a local file, for the processes of one machine), or " +
	"postgres://user@host,host:5433/database for any number of machines (add ?sslmode=verify-full): of several hosts the one that takes " +
	"writes is used; the password from PGPASSWORD, PGPASSFILE or ~/.pgpass"

// Bounds of --catalog-max-conns: a process needs one for what it does itself, and one for
// what it is asked meanwhile.
const (
	defaultMaxConns = 16
	leastMaxConns   = 2
	mostMaxConns    = 1000
)

// openCatalog opens the catalog of a URL. What is not asked to be made is not: a mistyped
// URL founds nothing.
func (b *backendFlags) openCatalog(ctx context.Context, t *tier, m mode) error {
	open := b.openSQLite
	if isPostgres(b.catalog) {
		open = b.openPostgres
	}
	cat, err := open(ctx, m)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, catalog.ErrNotFound) {
		return fmt.Errorf("%w: no catalog at %s; start one with strandline up or strandline writer", check.ErrNoDeployment, shownCatalog(b.catalog))
	}
	if err != nil {
		return err
	}
	t.catalog = cat
	t.closers = append(t.closers, cat.Close)
	return nil
}

// readsOnly: this mode changes nothing.
func (m mode) readsOnly() bool { return m == modeRead || m == modeCold }

func (b *backendFlags) openSQLite(ctx context.Context, m mode) (catalog.Catalog, error) {
	u, err := url.Parse(b.catalog)
	if err != nil || u.Scheme != "sqlite" || u.Host != "" || u.Path == "" {
		return nil, usage("--catalog %q: give %s", shownCatalog(b.catalog), catalogURLs)
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Path: u.Path, ReadOnly: m.readsOnly(), Create: m == modeCreate})
	if err != nil {
		return nil, err // not the nil *sqlite.DB in an interface
	}
	return db, nil
}

// isPostgres looks at the scheme only: the rest is the driver's to read, several hosts and
// all.
func isPostgres(raw string) bool {
	scheme, _, _ := strings.Cut(raw, "://")
	return scheme == "postgres" || scheme == "postgresql"
}

func (b *backendFlags) openPostgres(ctx context.Context, m mode) (catalog.Catalog, error) {
	if b.maxConns < leastMaxConns || b.maxConns > mostMaxConns {
		return nil, usage("--catalog-max-conns %d: give %d to %d", b.maxConns, leastMaxConns, mostMaxConns)
	}
	db, err := postgres.Open(ctx, postgres.Options{DSN: b.catalog, MaxConns: b.maxConns, ReadOnly: m.readsOnly(), MustExist: m != modeCreate})
	if errors.Is(err, catalog.ErrInvalid) {
		return nil, usage("--catalog %s: %w", shownCatalog(b.catalog), err)
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/strandline/strandline/catalog"
)

// Migrations go forward only; standing ones are never edited.
//
//go:embed migrations/*.sql
var embedded embed.FS

var migrations = func() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return sub
}()

// schemaVersion is the number of the last migration.
const schemaVersion = 1

// migrate brings the schema up to the last of these migrations. It connects by itself:
// building an index may take longer than any verb's statement.
func migrate(ctx context.Context, config *pgx.ConnConfig, schema string, from fs.FS) (err error) {
	config = config.Copy()
	config.OnNotice = nil // "already exists, skipping"
	for _, bound := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		delete(config.RuntimeParams, bound)
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	var away backoff
	for {
		err := migrateOn(ctx, db, schema, from)
		if err == nil || catalog.KindOf(err) != nil || !gone(err) && !conflicted(err) {
			return mapError("open", err)
		}
		// The server is being replaced, or another process makes the schema at this moment.
		if wait := away.next(goneFirst, goneWait); away.spent > goneFor || !sleep(ctx, wait) {
			return mapError("open", err)
		}
	}
}

func migrateOn(ctx context.Context, db *sql.DB, schema string, from fs.FS) error {
	// A user that may not create schemas uses one that was made for it.
	var stands bool
	if err := db.QueryRowContext(ctx, "SELECT count(*) > 0 FROM information_schema.schemata WHERE schema_name = $1", schema).Scan(&stands); err != nil {
		return err
	}
	if !stands {
		if _, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
			return err
		}
	}
	p, err := provider(db, from)
	if err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	switch {
	case err != nil:
		return err
	case have > want:
		return newer(schema, have)
	case have == want:
		return nil // no lock is taken at an ordinary start
	}
	_, err = p.Up(ctx)
	return err
}

// newer refuses what this build does not know.
func newer(schema string, have int64) error {
	return fmt.Errorf("%w: schema %s of the catalog has version %d, this build knows %d: a newer strandline wrote it; run that version or a newer one",
		catalog.ErrInvalid, schema, have, int64(schemaVersion))
}

// provider runs one process at a time through the migrations, each in a transaction of
// its own: one that is cut leaves the version that stood.
func provider(db *sql.DB, from fs.FS) (*goose.Provider, error) {
	const poll, tries = time.Second, 300 // another process may be building an index
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(uint64(poll/time.Second), tries))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, from, goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
}

package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/postgres"
	"github.com/strandline/strandline/internal/pgserver"
	"github.com/strandline/strandline/segment"
)

// TestMustExist: what was not asked to be made is not.
func TestMustExist(t *testing.T) {
	ctx, dsn := context.Background(), pgserver.NewDatabase(t)
	for _, o := range []postgres.Options{{MustExist: true}, {ReadOnly: true}} {
		o.DSN = dsn
		if d, err := postgres.Open(ctx, o); !errors.Is(err, catalog.ErrNotFound) {
			t.Fatalf("%+v: %v %v", o, d, err)
		}
	}
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }() // read only
	var schemas int
	if err := c.QueryRow(ctx, "SELECT count(*) FROM pg_namespace WHERE nspname = 'strandline'").Scan(&schemas); err != nil || schemas != 0 {
		t.Fatalf("a schema was made: %d %v", schemas, err)
	}
}

// TestReadOnly reads, refuses to write, and leaves another version alone.
func TestReadOnly(t *testing.T) {
	ctx, dsn := context.Background(), pgserver.NewDatabase(t)
	made, err := postgres.Open(ctx, postgres.Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	id := segment.UUID{6: 0x70, 8: 0x80, 15: 1}
	if _, err := made.Init(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := postgres.Open(ctx, postgres.Options{DSN: dsn, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := d.Settings(ctx); err != nil || s.Deployment != id {
		t.Errorf("%+v %v", s, err)
	}
	if err := d.Audit(ctx, "a", "b", "c"); !errors.Is(err, catalog.ErrReadOnly) {
		t.Errorf("a writing verb: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }() // its work is done by then
	if _, err := c.Exec(ctx, "INSERT INTO strandline.goose_db_version (version_id, is_applied) VALUES (999, true)"); err != nil {
		t.Fatal(err)
	}
	if d, err := postgres.Open(ctx, postgres.Options{DSN: dsn, ReadOnly: true}); !errors.Is(err, catalog.ErrInvalid) {
		t.Errorf("another version: %v %v", d, err)
	}
}

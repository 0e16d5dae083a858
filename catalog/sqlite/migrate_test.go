package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// TestMigrateFrom1 opens a file as the first schema left it: its epochs keep
// everything, its rows stand, and the verbs of the newer schema run on it.
func TestMigrateFrom1(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "catalog.db")
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	const epoch = `INSERT INTO topology VALUES (1, 2, 'express', '["b"]', 1, 'open');
INSERT INTO chain VALUES (1, 0, zeroblob(16), '', 0, 0, 0, 1, zeroblob(16), 0, 1, 1, 1, 0, 1, 0, 0, '[]', 0, 0, 1);`
	if _, err := raw.ExecContext(ctx, schema1+epoch+"PRAGMA user_version = 1;"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	// A reader alone changes nothing, and says what to do.
	if _, err := Open(ctx, Options{Path: path, ReadOnly: true}); err == nil {
		t.Fatal("read-only: opened an older schema")
	}
	for range 2 { // once migrated, it is left alone
		d, err := Open(ctx, Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		var v int
		if err := d.read(ctx, "version", func(t *tx) error { _, err := t.one("PRAGMA user_version", nil, &v); return err }); err != nil || v != schemaVersion {
			t.Fatalf("schema %d, %v", v, err)
		}
		tops, err := d.Topologies(ctx)
		if err != nil || len(tops) != 1 || tops[0].Retention != (catalog.Retention{}) || !tops[0].Retention.Keeps() || tops[0].State != catalog.TopologyOpen {
			t.Fatalf("%+v, %v", tops, err)
		}
		if _, err := d.Chain(ctx, segment.Chain{Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d := openAt(t, path, nil)
	want := catalog.Retention{Mode: catalog.RetentionInterest, Rows: 7}
	if _, err := d.SetRetention(ctx, 1, want); err != nil {
		t.Fatal(err)
	}
	if tops, err := d.Topologies(ctx); err != nil || tops[0].Retention != want {
		t.Fatalf("%+v, %v", tops, err)
	}
}

// TestMigrateFrom2: packs, and long refs, that stood before their indexes are found by them.
func TestMigrateFrom2(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "catalog.db")
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	const rows = `INSERT INTO topology VALUES (1, 1, 'express', '["b"]', 1, 'open', '{}');
INSERT INTO chain VALUES (1, 0, zeroblob(16), '', 0, 0, 0, 4, zeroblob(16), 0, 9007, 1, 1, 0, 1, 0, 0, '[]', 0, 0, 1);
INSERT INTO stream VALUES (1, 'a', 0, 0, 1, 9006, 0, 0, 0, '');
INSERT INTO object VALUES (1, 'pack/00000001.00000000/0000000000000001-0000000000000002', 'pack', 'standard', 0, 0);
INSERT INTO object VALUES (2, 'pack/00000001.00000000/0000000000000003-0000000000000003', 'pack', 'standard', 0, 1);
INSERT INTO ref VALUES (1, 1, 1, 4, 0, 0, 0, 1, 1, 0, 50, 100, 1, 0, 0, 4, 0, 100, 0, 0);
INSERT INTO ref VALUES (1, 1, 5, 9006, 0, 1, 4, 2, 1, 0, 50, 100, 1, 0, 0, 2, 0, 100, 0, 0);`
	if _, err := raw.ExecContext(ctx, schema1+schema2+rows+"PRAGMA user_version = 2;"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	d := openAt(t, path, nil)
	for generation, want := range []segment.Key{{ID: 1, LastID: 2}, {ID: 3, LastID: 3}} {
		w, err := d.PackWindow(ctx, segment.Chain{Epoch: 1}, uint32(generation), 8)
		key := segment.PackKey(segment.Chain{Epoch: 1}, want.ID, want.LastID, 0)
		if err != nil || len(w.Packs) != 1 || w.Packs[0] != key || len(w.Refs) != 1 || w.Refs[0].Key != key {
			t.Fatalf("generation %d: %+v, %v", generation, w, err)
		}
	}
	across, _, err := d.RefsAcross(ctx, segment.Chain{Epoch: 1}, 4711, nil, 0)
	if err != nil || len(across) != 1 || across[0].Last != 9006 {
		t.Fatalf("%+v, %v", across, err)
	}
	if tops, err := d.Topologies(ctx); err != nil || len(tops) != 1 || !tops[0].Retention.Keeps() {
		t.Fatalf("%+v, %v", tops, err)
	}
	checkPlans(t, d)
}

// TestMigrationIsWhole: one that is cut leaves the version that stood.
func TestMigrationIsWhole(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "catalog.db")
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	// The column that the second schema adds is there already, so it fails.
	if _, err := raw.ExecContext(ctx, schema1+"ALTER TABLE topology ADD COLUMN retention TEXT; PRAGMA user_version = 1;"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(ctx, Options{Path: path}); err == nil {
		t.Fatal(fmt.Errorf("migrated over a column that stood: %w", d.Close()))
	}
	raw, err = sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var v int
	if err := raw.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v); err != nil || v != 1 {
		t.Errorf("schema %d, %v", v, err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file that is being made, or is no catalog, is none: whoever waits for a founder goes on
// waiting, and nobody is told to bring it up.
func TestEmptyFileIsNoCatalog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(t.Context(), Options{Path: path, ReadOnly: true}); !errors.Is(err, catalog.ErrNotFound) {
		t.Fatalf("%v, %v", d, err)
	}
}

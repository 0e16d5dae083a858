package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/strandline/strandline/catalog"
)

// setVersion does what a newer build's migration ends with.
func setVersion(t *testing.T, path string, v int) {
	t.Helper()
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }() // its work is done by then
	if _, err := raw.ExecContext(context.Background(), fmt.Sprintf("PRAGMA user_version = %d", v)); err != nil {
		t.Fatal(err)
	}
}

// TestNewerWhileOpen: a schema that a newer build changed under a process that runs is
// noticed by its next verb, whether that reads or writes; nothing is changed from then on.
func TestNewerWhileOpen(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "catalog.db")
	writes := openAt(t, path, nil)
	reads, err := Open(ctx, Options{Path: path, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reads.Close() }() // read only
	verbs := map[string]struct {
		d    *DB
		verb func() error
	}{
		"a read":                   {writes, func() error { _, err := writes.Topologies(ctx); return err }},
		"a read, opened read-only": {reads, func() error { _, err := reads.Topologies(ctx); return err }},
		"a write":                  {writes, func() error { return writes.Audit(ctx, "kind", "subject", "detail") }},
	}
	for name, v := range verbs {
		t.Run(name, func(t *testing.T) {
			if err := v.verb(); err != nil || v.d.Newer() != nil {
				t.Fatalf("before: %v, %v", err, v.d.Newer())
			}
			setVersion(t, path, schemaVersion+1)
			err := v.verb()
			if !errors.Is(err, catalog.ErrNewer) || !errors.Is(err, catalog.ErrUnavailable) || !errors.Is(catalog.KindOf(err), catalog.ErrNewer) {
				t.Errorf("a newer schema: %v", err)
			}
			if !errors.Is(v.d.Newer(), catalog.ErrNewer) {
				t.Errorf("nothing tells of it: %v", v.d.Newer())
			}
			setVersion(t, path, schemaVersion) // an older copy was put back
			if err := v.verb(); err != nil || v.d.Newer() != nil {
				t.Errorf("afterwards: %v, %v", err, v.d.Newer())
			}
		})
	}
	rows, err := writes.AuditRows(ctx, 0, 10)
	if err != nil || len(rows) != 2 {
		t.Errorf("%d rows of the writes before and after, %v: want 2", len(rows), err)
	}
}

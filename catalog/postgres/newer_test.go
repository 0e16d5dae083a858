package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/postgres"
	"github.com/strandline/strandline/internal/pgserver"
)

// TestNewerWhileOpen: a schema that a newer build changed under a process that runs is
// noticed by its next verb, whether that reads or writes, and whatever its clock is; nothing
// is changed from then on, be it by a verb of one round trip, COMMIT included.
func TestNewerWhileOpen(t *testing.T) {
	ctx, dsn := context.Background(), pgserver.NewDatabase(t)
	open := func(o postgres.Options) *postgres.DB {
		o.DSN = dsn
		d, err := postgres.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() }) // nothing is under way
		return d
	}
	writes, clocked, reads := open(postgres.Options{}), open(postgres.Options{Clock: time.Now}), open(postgres.Options{ReadOnly: true})
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }() // its work is done by then
	exec := func(q string) {
		t.Helper()
		if _, err := c.Exec(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	verbs := map[string]struct {
		d    *postgres.DB
		verb func() error
	}{
		"a read":                    {writes, func() error { _, err := writes.Topologies(ctx); return err }},
		"a read, opened read-only":  {reads, func() error { _, err := reads.Topologies(ctx); return err }},
		"a read by another clock":   {clocked, func() error { _, err := clocked.Topologies(ctx); return err }},
		"a write in one round trip": {writes, func() error { return writes.Arm(ctx, catalog.DutySweep, "a", "", 0) }},
		"a write":                   {writes, func() error { return writes.Audit(ctx, "kind", "subject", "detail") }},
		"a write by another clock":  {clocked, func() error { return clocked.Audit(ctx, "kind", "subject", "detail") }},
		"the clock":                 {writes, func() error { _, err := writes.Now(ctx); return err }},
	}
	for name, v := range verbs {
		t.Run(name, func(t *testing.T) {
			if err := v.verb(); err != nil || v.d.Newer() != nil {
				t.Fatalf("before: %v, %v", err, v.d.Newer())
			}
			exec("INSERT INTO strandline.goose_db_version (version_id, is_applied) VALUES (999, true)")
			err := v.verb()
			if !errors.Is(err, catalog.ErrNewer) || !errors.Is(err, catalog.ErrUnavailable) || !errors.Is(catalog.KindOf(err), catalog.ErrNewer) {
				t.Errorf("a newer schema: %v", err)
			}
			if !errors.Is(v.d.Newer(), catalog.ErrNewer) {
				t.Errorf("nothing tells of it: %v", v.d.Newer())
			}
			exec("DELETE FROM strandline.goose_db_version WHERE version_id = 999") // an older copy was put back
			if err := v.verb(); err != nil || v.d.Newer() != nil {
				t.Errorf("afterwards: %v, %v", err, v.d.Newer())
			}
		})
	}
	rows, err := writes.AuditRows(ctx, 0, 10)
	if err != nil || len(rows) != 4 {
		t.Errorf("%d rows of the two writes, before and after, %v: want 4", len(rows), err)
	}
	exec("INSERT INTO strandline.goose_db_version (version_id, is_applied) VALUES (999, true)")
	exec("ALTER TABLE strandline.topology RENAME COLUMN class TO kind")
	if _, err := writes.Topologies(ctx); !errors.Is(err, catalog.ErrNewer) {
		t.Errorf("a statement that the newer schema does not take: %v", err)
	}
}

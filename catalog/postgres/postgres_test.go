package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/internal/pgserver"
)

// openWith opens a catalog, in a database of the test's own unless the options name one.
func openWith(t testing.TB, opt Options) *DB {
	t.Helper()
	if opt.DSN == "" {
		opt.DSN = pgserver.NewDatabase(t)
	}
	d, err := Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

// opener makes an empty catalog for each test of a suite: a schema in one database.
func opener(t *testing.T) func(*testing.T, catalogtest.Options) *DB {
	dsn := pgserver.NewDatabase(t)
	var n atomic.Int64 // tests of a suite may run side by side
	return func(t *testing.T, o catalogtest.Options) *DB {
		return openWith(t, Options{DSN: dsn, Schema: fmt.Sprintf("s%d", n.Add(1)), MaxConns: 8, Clock: o.Clock, WindowRefs: o.WindowRefs})
	}
}

func TestConformance(t *testing.T) {
	open := opener(t)
	catalogtest.Run(t, func(t *testing.T, o catalogtest.Options) catalog.Catalog { return open(t, o) })
}

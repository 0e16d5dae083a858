package postgres

import (
	"context"
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

func TestConformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T, o catalogtest.Options) catalog.Catalog {
		return openWith(t, Options{Clock: o.Clock, WindowRefs: o.WindowRefs})
	})
}

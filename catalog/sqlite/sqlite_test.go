package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
)

func openAt(t testing.TB, path string, clock func() time.Time) *DB {
	t.Helper()
	d, err := Open(context.Background(), Options{Path: path, Create: true, Clock: clock})
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
	catalogtest.Run(t, func(t *testing.T, clock func() time.Time) catalog.Catalog {
		d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), clock)
		t.Cleanup(func() { checkPlans(t, d) }) // before it is closed
		return d
	})
}

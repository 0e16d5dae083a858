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
	return openWith(t, Options{Path: path, Clock: clock})
}

func openWith(t testing.TB, opt Options) *DB {
	t.Helper()
	opt.Create = true
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
		d := openWith(t, Options{Path: filepath.Join(t.TempDir(), "catalog.db"), Clock: o.Clock, WindowRefs: o.WindowRefs})
		t.Cleanup(func() { checkPlans(t, d) }) // before it is closed
		return d
	})
}

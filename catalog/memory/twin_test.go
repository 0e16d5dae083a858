//go:build !race

// SQLite under the race detector takes minutes, and the two are called one after the other.

package memory

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/catalog/sqlite"
)

// TestTwin runs the suite on two catalogs at once, this one and SQLite's: every verb
// goes to both, and has to give the same answer, rows, order, versions and ids
// included. So whatever the suite does not look at is compared as well.
func TestTwin(t *testing.T) {
	calls := 0
	t.Run("suite", func(t *testing.T) {
		catalogtest.Run(t, func(t *testing.T, o catalogtest.Options) catalog.Catalog {
			db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "catalog.db"), Create: true, Clock: o.Clock, WindowRefs: o.WindowRefs})
			if err != nil {
				t.Fatal(err)
			}
			mem := New(Options{Clock: o.Clock, WindowRefs: o.WindowRefs})
			w := catalogtest.NewTwin(t, mem, db)
			t.Cleanup(func() {
				w.CompareAll()
				checkIndexes(t, mem)
				calls += w.Calls()
				if err := errors.Join(db.Close(), mem.Close()); err != nil {
					t.Error(err)
				}
			})
			return w
		})
	})
	if calls < 10_000 {
		t.Errorf("only %d verbs were compared", calls)
	}
	t.Logf("%d verbs compared", calls)
}

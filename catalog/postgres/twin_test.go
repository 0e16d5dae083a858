//go:build !race

// The suite runs under the race detector by itself (TestConformance).

package postgres

import (
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/catalog/memory"
)

// TestTwin runs the suite on this catalog and on the one in memory at once.
func TestTwin(t *testing.T) {
	calls := 0
	open := opener(t)
	t.Run("suite", func(t *testing.T) {
		catalogtest.Run(t, func(t *testing.T, o catalogtest.Options) catalog.Catalog {
			mem := memory.New(memory.Options{Clock: o.Clock, WindowRefs: o.WindowRefs})
			w := catalogtest.NewTwin(t, mem, open(t, o))
			t.Cleanup(func() {
				w.CompareAll()
				calls += w.Calls()
				if err := mem.Close(); err != nil {
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

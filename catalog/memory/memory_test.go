package memory

import (
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
)

func TestConformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T, o catalogtest.Options) catalog.Catalog {
		c := New(Options{Clock: o.Clock, WindowRefs: o.WindowRefs})
		t.Cleanup(func() {
			checkIndexes(t, c)
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return c
	})
}

// checkIndexes: every order over the rows has the same rows, and nothing of a verb
// that is over is left to be undone.
func checkIndexes(t *testing.T, c *Catalog) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.t
	if x.ref.n != x.refName.n || x.ref.n != x.refLast.n {
		t.Errorf("refs: %d by stream, %d by key, %d by last", x.ref.n, x.refName.n, x.refLast.n)
	}
	for k, r := range x.ref.all() {
		byKey, _ := x.refName.get(objectOf(r))
		last, _ := x.refLast.get(lastOf(r))
		if keyOf(r) != k || byKey != r || last != r {
			t.Errorf("ref %v stands elsewhere in another order", k)
		}
	}
	if x.marker.n != x.markerDue.n {
		t.Errorf("markers: %d, %d by due time", x.marker.n, x.markerDue.n)
	}
	for k, m := range x.marker.all() {
		if due, _ := x.markerDue.get(dueOf(m)); due != m {
			t.Errorf("marker %v is not where it is due", k)
		}
	}
	for k, s := range x.slot.all() {
		if owed, ok := x.owed.get(k); ok != s.owed || ok && owed != s {
			t.Errorf("slot %v: owed %v", k, s.owed)
		}
	}
	if x.stream.n != x.streamName.n {
		t.Errorf("streams: %d, %d by name", x.stream.n, x.streamName.n)
	}
	for _, s := range x.stream.all() {
		if named, _ := x.streamName.get(s.Name); named != s {
			t.Errorf("stream %q stands elsewhere by name", s.Name)
		}
	}
	if len(x.ref.undo)+len(x.marker.undo)+len(x.slot.undo)+len(x.chain.undo) != 0 {
		t.Error("a verb left something to undo")
	}
}

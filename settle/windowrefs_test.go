package settle

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/objstore/memstore"
)

// boundRefs is a tier whose windows end with so many refs.
func boundRefs(t *testing.T, n int) *tier {
	return newTierWith(t, memstore.Options{}, func(clock func() time.Time) catalog.Catalog {
		return memory.New(memory.Options{Clock: clock, WindowRefs: n})
	})
}

// A window that its refs end is a batch like any other, due by what the chain says: what
// was left out of it is the next batch, until nothing is owed.
func TestSettleGoesOnBehindItsRefs(t *testing.T) {
	x := boundRefs(t, 3)
	for range 5 {
		x.slot(write{stream: "a", rows: 2, size: 10}, write{stream: "b", rows: 2, size: 10})
	}
	x.clock.advance(time.Hour)
	s := x.settler(Config{SettleAge: time.Hour})
	for i, slots := range []int{2, 2, 1} {
		if rep := x.once(s); rep.Slots != slots || rep.Resolved != slots || rep.Outputs != 1 {
			t.Fatalf("batch %d: %+v, want %d slots", i, rep, slots)
		}
	}
	if rep := x.once(s); rep.Idle != IdleEmpty || x.markers() != 0 {
		t.Errorf("in the end: %+v, %d settle markers", rep, x.markers())
	}
}

// A merge that its refs end takes two packs at least, and passes over one that reaches
// the bound by itself.
func TestPackMergePassesOverManyRefs(t *testing.T) {
	x := boundRefs(t, 4)
	s := x.settler(Config{SettleAge: -1, PackFan: 4})
	for i := range 4 {
		ws := []write{{stream: "a", rows: 2, size: 10}, {stream: "b", rows: 2, size: 10}}
		if i == 0 {
			ws = append(ws, write{stream: "c", rows: 2, size: 10}, write{stream: "d", rows: 2, size: 10})
		}
		x.slot(ws...)
		x.once(s)
	}
	large := x.keyOf("c")
	rep, err := s.RunMarker(t.Context(), x.taken(catalog.DutyPackMerge), "settler-1")
	must(t, err)
	if rep.Idle != "" || rep.Outputs != 1 || x.keyOf("c") != large {
		t.Errorf("report %+v; %s was merged into %s", rep, large, x.keyOf("c"))
	}
	if n := x.kinds()[catalog.RefPack]; n != 8 {
		t.Errorf("%d refs to packs: four of the large one, two of the merged one, two of the last", n)
	}
}

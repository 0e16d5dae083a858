package check_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// express are the manners of a directory bucket: no order, short pages and empty ones,
// whole directories only.
func express(seed uint64) memstore.Options {
	return memstore.Options{Shuffle: seed, PageSize: 2, EmptyPages: true, DirectoryPrefix: true}
}

// alike are stream names of which one is another's prefix, in the key or before (K38).
var alike = []string{"x", "x1", "x~1", "x-", "x%2F", "x.y"}

// life takes a tier through settle, trim, teardown, reap and the sweeps, and returns what
// stands at its end, by kind, and what a reader has of the streams that are left.
func life(t *testing.T, opt memstore.Options) (map[string]check.Count, map[string]int) {
	t.Helper()
	x := audittest.New(t, opt)
	for round := range 4 {
		var writes []audittest.Write
		for i, name := range alike {
			writes = append(writes, audittest.Write{Stream: name, Rows: 4 + i, Size: 40 + 500*(i%2)})
		}
		x.Slot(writes...)
		if round%2 == 1 {
			x.RunDry()
			x.MustBeClean()
		}
	}
	for _, name := range []string{"x", "x~1"} {
		_, err := x.DB.DeleteStream(t.Context(), name)
		x.Must(err)
	}
	_, err := x.DB.TrimStream(t.Context(), "x1", segment.Pos{Epoch: 1, Seq: 20})
	x.Must(err)
	for range 3 {
		x.RunDry()
		x.Clock.Advance(25 * audittest.OrphanGrace) // sweeps and folds are daily
	}
	x.RunDry()
	x.MustBeClean()
	counts, err := check.Census(t.Context(), x.Classes)
	x.Must(err)
	return counts, rowsLeft(t, x)
}

func rowsLeft(t *testing.T, x *audittest.Tier) map[string]int {
	t.Helper()
	r, err := coldload.New(x.DB, x.Classes, coldload.Config{Clock: x.Clock.Now})
	x.Must(err)
	left := map[string]int{}
	for _, name := range alike {
		for _, err := range r.Rows(t.Context(), name, segment.Pos{}, segment.Pos{}) {
			if errors.Is(err, coldload.ErrDeleted) || errors.Is(err, coldload.ErrTrimmed) {
				break
			}
			x.Must(err)
			left[name]++
		}
	}
	return left
}

// TestK39WholeTier: a tier on a store that lists as S3 Express does ends as one on an
// ordered store: the same rows, the same objects, nothing owed.
func TestK39WholeTier(t *testing.T) {
	counts, rows := life(t, memstore.Options{})
	if rows["x-"] == 0 || counts["stream"].Objects+counts["pack"].Objects == 0 {
		t.Fatalf("nothing is left to compare: %v %v", counts, rows)
	}
	for seed := uint64(1); seed <= 4; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c, r := life(t, express(seed))
			if !maps.Equal(rows, r) {
				t.Errorf("rows %v, ordered %v", r, rows)
			}
			for kind, want := range counts {
				if c[kind].Objects != want.Objects {
					t.Errorf("%s: %d objects, ordered %d", kind, c[kind].Objects, want.Objects)
				}
			}
		})
	}
}

// TestK39FirstStart: a bucket in use is refused by whatever key it lists first, and one's
// own is not.
func TestK39FirstStart(t *testing.T) {
	for seed := uint64(1); seed <= 8; seed++ {
		store, err := objstore.New(memstore.New(express(seed)), objstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		classes := objstore.Classes{"express": {store}}
		open := func(name string) *sqlite.DB {
			db, err := sqlite.Open(t.Context(), sqlite.Options{Path: t.TempDir() + "/" + name, Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db
		}
		cat := open("a.db")
		id, err := check.Ensure(t.Context(), cat, classes)
		if err != nil || id == uuid.Nil {
			t.Fatal(id, err)
		}
		for _, key := range []string{"a/1", "zz/1", "rw/1", "meta/other"} {
			if _, err := store.PutOnce(t.Context(), key, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if again, err := check.Ensure(t.Context(), cat, classes); err != nil || again != id {
			t.Errorf("seed %d: its own bucket: %v, %v", seed, again, err)
		}
		if _, err := check.Ensure(t.Context(), open("b.db"), classes); !errors.Is(err, check.ErrNotMine) {
			t.Errorf("seed %d: an empty catalog over a bucket in use: %v", seed, err)
		}
	}
}

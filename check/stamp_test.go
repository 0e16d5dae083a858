package check_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

func newCatalog(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "catalog.db"), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func storeOn(t *testing.T, d objstore.Driver) *objstore.Store {
	t.Helper()
	s, err := objstore.New(d, objstore.Config{Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func bucket(t *testing.T) *objstore.Store {
	t.Helper()
	return storeOn(t, memstore.New(memstore.Options{}))
}

func classes(stores ...*objstore.Store) objstore.Classes { return objstore.Classes{"standard": stores} }

func TestFirstStart(t *testing.T) {
	ctx, db, c := t.Context(), newCatalog(t), classes(bucket(t), bucket(t))
	c["express"] = objstore.Set{bucket(t)}
	if err := check.Verify(ctx, db, c); !errors.Is(err, check.ErrNoDeployment) {
		t.Fatalf("nothing there: %v", err)
	}
	id, err := check.Ensure(ctx, db, c)
	if err != nil || id == uuid.Nil {
		t.Fatal(id, err)
	}
	again, err := check.Ensure(ctx, db, c)
	if err != nil || again != id {
		t.Fatalf("the second start: %v, %v", again, err)
	}
	if err := check.Verify(ctx, db, c); err != nil {
		t.Fatal(err)
	}
	if err := check.Verify(ctx, db, classes(bucket(t))); !errors.Is(err, check.ErrNotMine) {
		t.Fatalf("no stamp: %v", err)
	}
	if err := check.Verify(ctx, db, objstore.Classes{"standard": c["express"]}); !errors.Is(err, check.ErrNotMine) {
		t.Fatalf("wrong class: %v", err)
	}
	if _, err := check.Ensure(ctx, db, objstore.Classes{"standard": c["express"]}); !errors.Is(err, check.ErrNotMine) {
		t.Fatalf("wrong class: %v", err)
	}
}

func TestForeign(t *testing.T) {
	ctx, mine, theirs := t.Context(), classes(bucket(t)), classes(bucket(t))
	a, b := newCatalog(t), newCatalog(t)
	for cat, c := range map[*sqlite.DB]objstore.Classes{a: mine, b: theirs} {
		if _, err := check.Ensure(ctx, cat, c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := check.Ensure(ctx, a, theirs); !errors.Is(err, check.ErrNotMine) {
		t.Fatal(err)
	}
	if err := check.Verify(ctx, a, theirs); !errors.Is(err, check.ErrNotMine) {
		t.Fatal(err)
	}
	// An empty catalog over a used bucket: it stays empty.
	empty := newCatalog(t)
	if _, err := check.Ensure(ctx, empty, mine); !errors.Is(err, check.ErrNotMine) {
		t.Fatal(err)
	}
	if _, err := empty.Settings(ctx); !errors.Is(err, catalog.ErrNotFound) {
		t.Fatalf("a refused start founded something: %v", err)
	}
}

func TestUsedWithoutStamp(t *testing.T) {
	ctx, db, s := t.Context(), newCatalog(t), bucket(t)
	if _, err := db.Init(ctx, uuid.New()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutOnce(ctx, "holiday.jpg", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := check.Ensure(ctx, db, classes(s)); !errors.Is(err, check.ErrNotMine) {
		t.Fatal(err)
	}
	if _, err := s.Head(ctx, segment.StampKey()); !errors.Is(err, objstore.ErrNotFound) {
		t.Fatalf("it was stamped: %v", err)
	}
}

func TestUnreadableStamp(t *testing.T) {
	ctx, db, s := t.Context(), newCatalog(t), bucket(t)
	if _, err := s.PutOnce(ctx, segment.StampKey(), []byte("{"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Init(ctx, uuid.New()); err != nil {
		t.Fatal(err)
	}
	if err := check.Verify(ctx, db, classes(s)); err == nil {
		t.Fatal("verified")
	}
	if _, err := check.Ensure(ctx, db, classes(s)); err == nil {
		t.Fatal("taken over")
	}
}

// TestEmptiedBucket: a disk that is not mounted, or the wrong prefix: the catalog
// has rows, the bucket nothing.
func TestEmptiedBucket(t *testing.T) {
	ctx, x := t.Context(), tier(t)
	s := bucket(t)
	if _, err := check.Ensure(ctx, x.Catalog, classes(s)); !errors.Is(err, check.ErrNotMine) {
		t.Fatal(err)
	}
	if _, err := s.Head(ctx, segment.StampKey()); !errors.Is(err, objstore.ErrNotFound) {
		t.Fatalf("it was stamped: %v", err)
	}
	// A class that nothing was written to yet may join.
	if _, err := check.Ensure(ctx, x.Catalog, objstore.Classes{"express": {s}}); err != nil {
		t.Fatal(err)
	}
}

// TestFoundingCrashes: whatever call of the first start is the last, the next start
// ends with one deployment, stamped everywhere.
func TestFoundingCrashes(t *testing.T) {
	for _, kind := range []faultstore.Kind{faultstore.Crash, faultstore.CrashAfter} {
		for i := 1; ; i++ {
			ctx, db := t.Context(), newCatalog(t)
			hit, first := false, true
			d := faultstore.Wrap(memstore.New(memstore.Options{}), func(c faultstore.Call) faultstore.Fault {
				if !first || c.N != i {
					return faultstore.Fault{}
				}
				hit = true
				return faultstore.Fault{Kind: kind}
			})
			c := classes(storeOn(t, d), bucket(t))
			top := catalog.Topology{Epoch: 1, Shards: 2, Class: "standard", Buckets: []string{"x", "y"}, Settle: true, State: catalog.TopologyOpen}
			start := func() error {
				if _, err := check.Ensure(ctx, db, c); err != nil {
					return err
				}
				_, err := check.EnsureEpoch(ctx, db, c, top)
				return err
			}
			if err := start(); err == nil && hit {
				t.Fatalf("call %d failed and the start did not", i)
			}
			first = false
			d.Revive()
			if err := start(); err != nil {
				t.Fatalf("after a crash at call %d: %v", i, err)
			}
			if err := check.Verify(ctx, db, c); err != nil {
				t.Fatal(err)
			}
			for _, s := range c["standard"] {
				if _, err := s.Head(ctx, segment.TopologyKey(1)); err != nil {
					t.Fatal(err)
				}
			}
			if !hit {
				break
			}
		}
	}
}

func TestEnsureEpoch(t *testing.T) {
	ctx, db, c := t.Context(), newCatalog(t), classes(bucket(t))
	if _, err := check.Ensure(ctx, db, c); err != nil {
		t.Fatal(err)
	}
	top := catalog.Topology{Epoch: 1, Shards: 2, Class: "standard", Buckets: []string{"x"}, Settle: true, State: catalog.TopologyOpen}
	for range 2 {
		if got, err := check.EnsureEpoch(ctx, db, c, top); err != nil || got.Shards != 2 {
			t.Fatal(got, err)
		}
	}
	other := top
	other.Shards = 3
	if _, err := check.EnsureEpoch(ctx, db, c, other); !errors.Is(err, catalog.ErrConflict) {
		t.Fatalf("other constants: %v", err)
	}
	// A bucket whose record says otherwise.
	second := newCatalog(t)
	if _, err := check.EnsureEpoch(ctx, second, c, other); !errors.Is(err, check.ErrNotMine) {
		t.Fatalf("a record of other constants: %v", err)
	}
	if tops, err := second.Topologies(ctx); err != nil || len(tops) != 0 {
		t.Fatalf("a catalog that forgot the epoch made it with other constants than its record has: %v, %v", tops, err)
	}
	if got, err := check.EnsureEpoch(ctx, second, c, top); err != nil || got.Shards != 2 {
		t.Fatalf("a catalog that forgot the epoch, as its record says: %v, %v", got, err)
	}
	elsewhere := top
	elsewhere.Epoch, elsewhere.Class = 2, "express"
	if _, err := check.EnsureEpoch(ctx, db, c, elsewhere); err == nil {
		t.Fatal("a class without a bucket")
	}
	if tops, err := db.Topologies(ctx); err != nil || len(tops) != 1 {
		t.Fatalf("a refused epoch was created: %v, %v", tops, err)
	}
}

// TestFoundAtOnce: processes that found together agree, whoever is first at what.
func TestFoundAtOnce(t *testing.T) {
	for range 20 {
		ctx, db, c := t.Context(), newCatalog(t), classes(bucket(t), bucket(t))
		var wg sync.WaitGroup
		ids, errs := make([]segment.UUID, 4), make([]error, 4)
		for i := range ids {
			wg.Go(func() { ids[i], errs[i] = check.Ensure(ctx, db, c) })
		}
		wg.Wait()
		for i := range ids {
			if errs[i] != nil || ids[i] != ids[0] {
				t.Fatal(ids, errs)
			}
		}
	}
}

// TestFoundBetween: the other process founds everything between this one's look at
// the catalog and its look at the bucket.
func TestFoundBetween(t *testing.T) {
	for _, op := range []objstore.Op{objstore.OpList, objstore.OpGet} {
		ctx, db, mem := t.Context(), newCatalog(t), memstore.New(memstore.Options{})
		var id segment.UUID
		once := sync.OnceFunc(func() {
			var err error
			if id, err = check.Ensure(ctx, db, classes(storeOn(t, mem))); err != nil {
				t.Error(err)
			}
			if _, err := storeOn(t, mem).PutOnce(ctx, segment.TopologyKey(1), []byte("{}"), nil); err != nil {
				t.Error(err)
			}
		})
		d := faultstore.Wrap(mem, func(c faultstore.Call) faultstore.Fault {
			if c.Op != op {
				return faultstore.Fault{}
			}
			return faultstore.Fault{Before: once}
		})
		if got, err := check.Ensure(ctx, db, classes(storeOn(t, d))); err != nil || got != id {
			t.Fatalf("at %s: %v, %v", op, got, err)
		}
	}
}

// TestStartBesideAStoreWithoutWrites: what stands is only read, so that a full store, or
// one that throttles its PUTs, keeps no writer from its local rows.
func TestStartBesideAStoreWithoutWrites(t *testing.T) {
	ctx, db := t.Context(), newCatalog(t)
	full := false
	d := faultstore.Wrap(memstore.New(memstore.Options{}), func(c faultstore.Call) faultstore.Fault {
		if full && c.Op == objstore.OpPut {
			return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrNoSpace}
		}
		return faultstore.Fault{}
	})
	c := classes(storeOn(t, d))
	top := catalog.Topology{Epoch: 1, Shards: 2, Class: "standard", Buckets: []string{"x"}, Settle: true, State: catalog.TopologyOpen}
	start := func() error {
		if _, err := check.Ensure(ctx, db, c); err != nil {
			return err
		}
		_, err := check.EnsureEpoch(ctx, db, c, top)
		return err
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	full = true
	if err := start(); err != nil {
		t.Fatal(err)
	}
	next := top
	next.Epoch = 2
	if _, err := check.EnsureEpoch(ctx, db, c, next); !errors.Is(err, objstore.ErrNoSpace) {
		t.Fatalf("a new epoch without its record: %v", err)
	}
}

// TestRecordDamagedOnTheWay: a bit that flips in one answer is read again; bytes that stay
// wrong are damage.
func TestRecordDamagedOnTheWay(t *testing.T) {
	ctx, db := t.Context(), newCatalog(t)
	wrong := 0
	d := faultstore.Wrap(memstore.New(memstore.Options{}), func(c faultstore.Call) faultstore.Fault {
		if c.Op != objstore.OpGet || wrong == 0 {
			return faultstore.Fault{}
		}
		wrong--
		return faultstore.Fault{Kind: faultstore.WrongBytes}
	})
	c := classes(storeOn(t, d))
	top := catalog.Topology{Epoch: 1, Shards: 2, Class: "standard", Buckets: []string{"x"}, Settle: true, State: catalog.TopologyOpen}
	if _, err := check.Ensure(ctx, db, c); err != nil {
		t.Fatal(err)
	}
	if _, err := check.EnsureEpoch(ctx, db, c, top); err != nil {
		t.Fatal(err)
	}
	epoch := func() error { _, err := check.EnsureEpoch(ctx, db, c, top); return err }
	for name, start := range map[string]func() error{"stamp": func() error { return check.Verify(ctx, db, c) }, "epoch": epoch} {
		if wrong = 1; start() != nil {
			t.Errorf("%s: one damaged answer is taken for damage", name)
		}
		wrong = 2
		if err := start(); !errors.Is(err, segment.ErrCorrupt) {
			t.Errorf("%s: %v, want the damage told", name, err)
		}
	}
}

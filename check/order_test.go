package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
)

type named struct {
	objstore.Driver
	name string
}

func (n named) Name() string { return n.name }

// The first bucket decides: a set that puts another before it is refused, by whoever
// starts; one that does without a bucket, or reaches one elsewhere, is not.
func TestOrderOfBuckets(t *testing.T) {
	ctx, db := t.Context(), newCatalog(t)
	a := storeOn(t, named{memstore.New(memstore.Options{}), "mem:a"})
	b := storeOn(t, named{memstore.New(memstore.Options{}), "mem:b"})
	moved := storeOn(t, named{a.Driver(), "mem:a-elsewhere"})
	if _, err := check.Ensure(ctx, db, classes(a, b)); err != nil {
		t.Fatal(err)
	}
	top := catalog.Topology{Epoch: 1, Shards: 1, Class: "standard", Buckets: []string{"mem:a", "mem:b"}, Settle: true, State: catalog.TopologyOpen}
	if _, err := check.EnsureEpoch(ctx, db, classes(a, b), top); err != nil {
		t.Fatal(err)
	}
	start := func(c objstore.Classes) error {
		_, err := check.Ensure(ctx, db, c)
		if verify := check.Verify(ctx, db, c); errors.Is(verify, check.ErrNotMine) != errors.Is(err, check.ErrNotMine) {
			t.Fatalf("founder %v, reader %v", err, verify)
		}
		return err
	}
	for _, set := range []objstore.Set{{a, b}, {a}, {b}, {moved, b}} {
		if err := start(objstore.Classes{"standard": set}); err != nil {
			t.Fatal(err)
		}
	}
	err := start(classes(b, a))
	if !errors.Is(err, check.ErrNotMine) || !strings.Contains(err.Error(), "mem:a decides") {
		t.Fatalf("the wrong order: %v", err)
	}
}

package objcache_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// rows are all rows of a stream as text.
func rows(t *testing.T, x *tiertest.Tier, classes objstore.Classes, stream string) (out []string) {
	t.Helper()
	r, err := coldload.New(x.Catalog, classes, coldload.Config{Clock: x.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range r.Rows(t.Context(), stream, segment.Pos{}, segment.Pos{}) {
		if err != nil {
			t.Fatalf("%s: %v", stream, err)
		}
		out = append(out, fmt.Sprintf("%d %d %s", row.Seq, row.Time, row.Payload))
	}
	return out
}

// Cold reads of a tier through two instances: slots, packs and stream objects give the
// rows that the bucket gives, the second time without one request to it, also when an
// instance dies and when objects were settled away under the cache.
func TestColdReadsThroughTwoInstances(t *testing.T) {
	x := tiertest.New(t, nil)
	streams := []string{"large", "small-1", "small-2"}
	writes := []tiertest.Write{{Stream: "large", Rows: 300, Size: 5000}, {Stream: "small-1", Rows: 20, Size: 100}, {Stream: "small-2", Rows: 1, Size: 10}}
	for range 4 {
		x.Slot(writes...)
	}
	a, b := startNode(t, x.Mem, testBucket), startNode(t, x.Mem, testBucket)
	direct := count(x.Mem)
	immutable := func(key string) bool {
		k, err := segment.ParseKey(key)
		return err == nil && (k.Kind == segment.KeySlot || k.Kind == segment.KeyPack || k.Kind == segment.KeyStream)
	}
	driver := objcache.Wrap(direct, objcache.Config{
		Instances: []string{a.addr, b.addr}, Bucket: testBucket, Reads: true, Cacheable: immutable, Rest: time.Hour, AnswerTimeout: 30 * time.Second,
	})
	store, err := objstore.New(driver, objstore.Config{Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	cached := objstore.Classes{string(segment.ClassStandard): {store}}
	equal := func(when string) {
		t.Helper()
		for _, s := range streams {
			if got, want := rows(t, x, cached, s), rows(t, x, x.Classes, s); len(want) == 0 || !slices.Equal(got, want) {
				t.Fatalf("%s: %s has %d rows through the cache, %d in the bucket", when, s, len(got), len(want))
			}
		}
	}
	asked := func() int64 { return a.store.gets.Load() + b.store.gets.Load() + direct.gets.Load() }
	settled := func() {
		for _, n := range []*node{a, b} {
			waitFor(t, func() bool { s := n.cache.Stats(); return s.Unkept == 0 && s.Busy == 0 })
		}
	}
	hot := func(when string) {
		t.Helper()
		equal(when)
		settled()
		before := asked()
		equal(when + ", hot")
		if n := asked() - before; n != 0 {
			t.Errorf("%s: %d requests to the bucket for what is cached", when, n)
		}
	}
	hot("slots")
	x.Settle(1 << 20)
	hot("settled")

	// The slots go as the auditor takes them: through the cache.
	slots := x.Keys(segment.KeySlot)
	x.CondemnSlots()
	x.Clock.Advance(2 * tiertest.ReadGrace)
	res, err := store.Delete(t.Context(), slots)
	if err != nil || len(slots) != 4 {
		t.Fatal(slots, err)
	}
	for _, r := range res {
		if r.Err != nil {
			t.Error(r)
		}
	}
	if n := len(x.Keys(segment.KeySlot)); n != 0 || direct.deletes.Load() != 0 {
		t.Errorf("%d slots left, %d direct deletes", n, direct.deletes.Load())
	}
	hot("slots deleted")

	dying := a // which of them has keys depends on their ports
	if a.cache.Stats().Blocks == 0 {
		dying = b
	}
	dying.down()
	before := asked()
	equal("one instance is down")
	if asked() == before {
		t.Error("it had no keys: the test shows nothing")
	}
	if v := x.Mem.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in 30 s")
		}
	}
}

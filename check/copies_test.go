package check_test

import (
	"strings"
	"testing"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// twoBuckets is a tier with three slots, of which the second bucket has a copy of two.
func twoBuckets(t *testing.T) (x *tiertest.Tier, keys []string, second *objstore.Store, mem *memstore.Driver) {
	t.Helper()
	x = tiertest.New(t, nil)
	mem = memstore.New(memstore.Options{Clock: x.Clock.Now, Shuffle: 11, PageSize: 2, DirectoryPrefix: true})
	second, err := objstore.New(mem, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	x.Classes["standard"] = append(x.Classes["standard"], second)
	for i := range 3 {
		keys = append(keys, x.Slot(tiertest.Write{Stream: "a", Rows: 10, Size: 40}))
		if i < 2 {
			put(t, second, keys[i], x.Mem.Dump()[keys[i]])
		}
	}
	return x, keys, second, mem
}

func put(t *testing.T, s *objstore.Store, key string, body []byte) {
	t.Helper()
	if _, err := s.PutOnce(t.Context(), key, body, nil); err != nil {
		t.Fatal(err)
	}
}

// TestMissingCopies are told, and are neither damage nor garbage.
func TestMissingCopies(t *testing.T) {
	x, keys, second, _ := twoBuckets(t)
	r := must(t, x)
	if r.Verdict != check.Clean || r.MissingTotal != 1 || r.Missing[0] != (check.MissingCopy{Key: keys[2], Bucket: second.Name()}) {
		t.Fatalf("%+v", *r)
	}
	put(t, second, keys[2], x.Mem.Dump()[keys[2]])
	if r := must(t, x); r.Verdict != check.Clean || r.MissingTotal != 0 {
		t.Fatalf("%+v", *r)
	}
	// Settled rows are in the first bucket alone, by design.
	x.Settle(1)
	if r := must(t, x); r.Verdict != check.Clean || r.MissingTotal != 0 {
		t.Fatalf("%+v", *r)
	}
}

// TestCopiesWithoutAFirst: refs' rows are damage of the first bucket, whatever the copy
// says; what no ref names waits for its trim, and below trimmed it is a stray.
func TestCopiesWithoutAFirst(t *testing.T) {
	x, keys, second, mem := twoBuckets(t)
	ahead := segment.SlotKey(x.Chain, 4)
	put(t, second, ahead, []byte("a copy of what was lost before it was absorbed"))
	r := must(t, x)
	if r.Verdict != check.Garbage || r.GarbageTotal != 1 || r.Garbage[0].Key != ahead || r.Garbage[0].State != check.Pending {
		t.Fatalf("%+v", *r)
	}
	if _, err := mem.Delete(t.Context(), []string{ahead}); err != nil {
		t.Fatal(err)
	}
	put(t, x.Store, ahead, []byte("published"))
	put(t, second, ahead, []byte("published"))
	if r := must(t, x); r.Verdict != check.Clean || r.Waiting != 2 {
		t.Fatalf("a slot on its way: %+v", *r)
	}
	x.Settle(1)
	x.CondemnSlots()
	x.DeleteSlots()
	// The second bucket's deletes failed: the cursor would not have moved. It did, so
	// these landed late.
	r = must(t, x)
	strays := 0
	for _, g := range r.Garbage {
		if g.Bucket == second.Name() && g.State == check.Leaked && (g.Key == keys[0] || g.Key == keys[1]) {
			strays++
		}
	}
	if strays != 2 || r.DamageTotal != 0 {
		t.Fatalf("%+v", *r)
	}
}

// TestFirstLost: the first bucket lost a slot that refs name. Its rows are read from the
// copy: that is told, and is no damage. Once the copy is gone, too, or rotten, it is.
func TestFirstLost(t *testing.T) {
	x, keys, second, mem := twoBuckets(t)
	copied := mem.Dump()[keys[0]]
	x.Delete(keys[0])
	r := must(t, x)
	if r.Verdict != check.Rotten || r.DamageTotal != 0 || r.RottenTotal != 1 || r.Rotten[0].Key != keys[0] || r.Rotten[0].SoundIn != second.Name() {
		t.Fatalf("%+v", *r)
	}
	for _, copied := range [][]byte{nil, flipIn(t, copied, "a")} { // in a chunk: its footer is whole
		if _, err := mem.Delete(t.Context(), []string{keys[0]}); err != nil {
			t.Fatal(err)
		}
		if copied != nil {
			put(t, second, keys[0], copied)
		}
		r = must(t, x)
		if r.Verdict != check.Damage || r.DamageTotal != 1 || r.RottenTotal != 0 || r.Damage[0].Key != keys[0] || r.Damage[0].Last != 10 {
			t.Fatalf("%+v", *r)
		}
		if r = deep(t, x); r.Verdict != check.Damage || r.DamageTotal != 1 {
			t.Fatalf("told twice, once a bucket: %+v", *r)
		}
	}
}

// TestRottenCopy: a byte of a copy turned. A walk of footers cannot see it, a deep one
// does, and it is no damage.
func TestRottenCopy(t *testing.T) {
	x, keys, second, mem := twoBuckets(t)
	body := mem.Dump()[keys[1]]
	if _, err := mem.Delete(t.Context(), []string{keys[1]}); err != nil {
		t.Fatal(err)
	}
	put(t, second, keys[1], flipIn(t, body, "a"))
	if r := must(t, x); r.Verdict != check.Clean {
		t.Fatalf("%+v", *r)
	}
	r := deep(t, x)
	if r.Verdict != check.Rotten || r.RottenTotal != 1 || r.Rotten[0].Key != keys[1] || r.Rotten[0].SoundIn != x.Store.Name() || !strings.Contains(r.Rotten[0].Why, "chunk") {
		t.Fatalf("%+v", *r)
	}
}

// flipIn turns a bit of a stream's chunk.
func flipIn(t *testing.T, body []byte, stream string) []byte {
	t.Helper()
	for _, c := range chunksOf(t, body) {
		if c.Stream == stream {
			return flip(body, int(c.Offset))
		}
	}
	t.Fatalf("no chunk of %q", stream)
	return nil
}

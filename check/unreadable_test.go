package check_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// cutting is a store of which a disk lost bytes: it answers a GET with headers, and the
// body ends where the lost byte would come.
type cutting struct {
	objstore.Driver
	at   map[string]int64 // the lost byte of a key; set before the reads
	all  bool             // no object can be read, nor the stamp
	ill  map[string]bool  // a GET of these keys is answered with a fault of the store's own, a 500
	hits *atomic.Int64
	// stamped runs at each read of the stamp, if set.
	stamped func()
}

func (c *cutting) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if key == segment.StampKey() && c.stamped != nil {
		c.stamped()
	}
	if c.all && (key == segment.StampKey() || key == objectOfA) {
		c.hits.Add(1)
		return nil, objstore.Info{}, &objstore.Error{Op: "get", Key: key, Kind: objstore.ErrDenied}
	}
	if c.ill[key] {
		c.hits.Add(1)
		return nil, objstore.Info{}, &objstore.Error{Op: "get", Key: key, Kind: objstore.ErrUnavailable}
	}
	body, info, err := c.Driver.Get(ctx, key, r, ifMatch)
	lost, ok := c.at[key]
	if err != nil || !ok {
		return body, info, err
	}
	off, n, err := r.Resolve(info.Size)
	if err != nil || lost < off || lost >= off+n {
		return body, info, err
	}
	c.hits.Add(1)
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, lost-off), body}, info, nil
}

// cut returns a wrapper of drivers, and what to lose.
func cut() (*cutting, func(objstore.Driver) objstore.Driver) {
	c := &cutting{at: map[string]int64{}, hits: &atomic.Int64{}}
	return c, func(d objstore.Driver) objstore.Driver {
		c.Driver = d
		return c
	}
}

// unread fails unless the report names just these objects as unreadable.
func unread(t *testing.T, r *check.Report, keys ...string) {
	t.Helper()
	if len(r.Unreadable) != len(keys) || r.UnreadableTotal != int64(len(keys)) {
		t.Fatalf("want %q: %+v", keys, r.Unreadable)
	}
	for i, key := range keys {
		if u := r.Unreadable[i]; u.Key != key || u.Bucket == "" || !strings.Contains(u.Why, "cut short") {
			t.Errorf("want %q: %+v", key, u)
		}
	}
}

// TestUnreadableHidesNothing: an object whose footer cannot be read is told apart, and the
// walk finds what comes after it.
func TestUnreadableHidesNothing(t *testing.T) {
	for _, deep := range []bool{false, true} {
		c, wrap := cut()
		x := tierOn(t, memstore.Options{}, wrap)
		settled(x)
		leaked := segment.StreamKey("a", 1, 999, 0)
		x.Put(leaked, []byte("leaked"))
		c.at[leaked] = 5 // of what nobody names, nothing is read
		c.at[objectOfA] = int64(len(x.Mem.Dump()[objectOfA])) - 1
		r := walk(t, x, x.Catalog, check.Config{Deep: deep})
		unread(t, r, objectOfA)
		if r.Verdict != check.Unreadable || r.DamageTotal+r.RottenTotal != 0 || r.LeakedTotal != 1 || c.hits.Load() == 0 {
			t.Fatalf("%+v", *r)
		}
		want := span(x, "z z", "")
		replace(x, want.Key, []byte("what is this"))
		r = walk(t, x, x.Catalog, check.Config{Deep: deep, Concurrency: 4})
		damagedIn(t, r, want)
		unread(t, r, objectOfA)
	}
}

// damagedIn is damaged beside other findings.
func damagedIn(t *testing.T, r *check.Report, want check.DamageItem) {
	t.Helper()
	if r.Verdict != check.Damage || r.DamageTotal != 1 || r.Damage[0].Key != want.Key || r.Damage[0].First != want.First {
		t.Fatalf("want %+v: %+v", want, *r)
	}
}

// TestUnreadableChunk: damage in the chunks beside it is found.
func TestUnreadableChunk(t *testing.T) {
	c, wrap := cut()
	x, object, _ := settledTier(t, wrap)
	chunks := chunksOf(t, x.Mem.Dump()[object])
	if len(chunks) < 3 {
		t.Fatalf("%d chunks", len(chunks))
	}
	c.at[object] = chunks[0].Offset + 5
	r := walk(t, x, x.Catalog, check.Config{})
	if r.Verdict == check.Unreadable {
		t.Fatalf("%+v", *r) // nobody asked for chunks
	}
	r = walk(t, x, x.Catalog, check.Config{Deep: true})
	unread(t, r, object)
	if r.DamageTotal != 0 || r.Verdict != check.Unreadable {
		t.Fatalf("%+v", *r)
	}
	delete(c.at, object)
	x.Slot(tiertest.Write{Stream: "a", Rows: 3, Size: 200 << 10}, tiertest.Write{Stream: "b", Rows: 3, Size: 200 << 10}) // chunks of one read
	object = slotKey(8)
	chunks = chunksOf(t, x.Mem.Dump()[object])
	if len(chunks) < 3 || chunks[1].Stream != "a" || chunks[2].Stream != "b" {
		t.Fatalf("%+v", chunks)
	}
	c.at[object] = chunks[2].Offset + 5
	turn(t, x.Mem, object, func([]byte) int { return int(chunks[1].Offset) + 9 })
	r = walk(t, x, x.Catalog, check.Config{Deep: true})
	unread(t, r, object)
	damagedIn(t, r, check.DamageItem{Key: object, First: chunks[1].First})
}

// TestUnreadableSlot: a slot that no ref names, and one that is owed.
func TestUnreadableSlot(t *testing.T) {
	c, wrap := cut()
	x := tierOn(t, memstore.Options{}, wrap)
	c.at[slotKey(2)] = 0
	unread(t, walk(t, x, x.Catalog, check.Config{}), slotKey(2))
	delete(c.at, slotKey(2))
	x.Settle(1)
	c.at[slotKey(2)] = 0
	unread(t, walk(t, x, x.Catalog, check.Config{}), slotKey(2))
	c.at[slotKey(2)] = 100 // a chunk, not the footer
	unread(t, walk(t, x, x.Catalog, check.Config{Deep: true}), slotKey(2))
}

// TestExplainUnreadable: of an object or a chunk that cannot be read the rest is told.
func TestExplainUnreadable(t *testing.T) {
	c, wrap := cut()
	x, object, _ := settledTier(t, wrap)
	size := int64(len(x.Mem.Dump()[object]))
	explainer := &check.Explainer{Catalog: x.Catalog, Classes: x.Classes}
	row := check.RowQuestion{Stream: "a", Pos: segment.Pos{Epoch: 1, Seq: 1}, Read: true}
	says := func(e *check.Explanation, err error) {
		t.Helper()
		if err != nil || e.Situation != check.IsUnreadable || !strings.Contains(e.Text(), "could not be read") ||
			!strings.Contains(e.Text(), "cut short") || !strings.Contains(e.Text(), "backup") {
			t.Fatalf("%v: %+v", err, e)
		}
	}
	c.at[object] = size - 1
	says(explainer.Row(t.Context(), row))
	e, err := explainer.Key(t.Context(), object)
	says(e, err)
	if e.Key.LiveRefs != 1 || e.Key.LiveRows != 18 {
		t.Fatalf("%+v", e.Key)
	}
	c.at[object] = 5
	says(explainer.Row(t.Context(), row))
	// What nobody needs is explained as what it is.
	leaked := segment.StreamKey("a", 1, 999, 0)
	x.Put(leaked, []byte("leaked"))
	c.at[leaked] = 0
	if e, err := explainer.Key(t.Context(), leaked); err != nil || e.Situation != check.IsLeaked || !strings.Contains(e.Text(), "could not be read") {
		t.Fatalf("%+v, %v", e, err)
	}
	if c.hits.Load() == 0 {
		t.Fatal("nothing was cut")
	}
}

// TestUnreadableLoss: without an operator's word a read that was cut short proves nothing;
// with it, only if every look ends so and the bucket answers.
func TestUnreadableLoss(t *testing.T) {
	c, wrap := cut()
	x, object, _ := settledTier(t, wrap)
	prove := func() (*check.Loss, error) {
		return check.ProveUnreadable(t.Context(), x.Catalog, x.Classes, object, "a")
	}
	chunks := chunksOf(t, x.Mem.Dump()[object])
	x.Put(segment.StampKey(), []byte("{}"))
	if _, err := prove(); !errors.Is(err, check.ErrNotLost) {
		t.Fatal(err)
	}
	c.at[object] = chunks[1].Offset + 5
	if _, err := check.ProveLoss(t.Context(), x.Catalog, x.Classes, object, "a"); !errors.Is(err, objstore.ErrShort) || !strings.Contains(err.Error(), "--unreadable") {
		t.Fatal(err)
	}
	loss, err := prove()
	if err != nil || loss.Rows != 18 || loss.SoundRows != 18-chunks[1].Rows || len(loss.Looks) != 3 {
		t.Fatalf("%+v, %v", loss, err)
	}
	// The third look finds the footer gone as well, the first two did not.
	stamps := 0
	c.stamped = func() {
		if stamps++; stamps == 2 {
			c.at[object] = int64(len(x.Mem.Dump()[object])) - 1
		}
	}
	if _, err := prove(); !errors.Is(err, check.ErrNotSame) {
		t.Fatal(err)
	}
	c.stamped = nil
	c.at[segment.StampKey()] = 0
	if loss, err := prove(); loss != nil || !errors.Is(err, objstore.ErrShort) || !strings.Contains(err.Error(), "stamp") {
		t.Fatalf("%+v, %v", loss, err)
	}
	delete(c.at, segment.StampKey())
	c.all = true
	if loss, err := prove(); loss != nil || !errors.Is(err, objstore.ErrDenied) {
		t.Fatalf("%+v, %v", loss, err)
	}
}

// TestUnreadableBucket: if the bucket does not answer at all, there is no report.
func TestUnreadableBucket(t *testing.T) {
	c, wrap := cut()
	x := tierOn(t, memstore.Options{}, wrap)
	settled(x)
	c.all = true
	if r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{}); err == nil || r != nil || c.hits.Load() == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestLossOfAFaultyObject: a store that answers for an object with a fault may have its bytes, so
// no word gives them up; the refusal says what to do, if it is this object and not the store.
func TestLossOfAFaultyObject(t *testing.T) {
	c, wrap := cut()
	x, object, _ := settledTier(t, wrap)
	x.Put(segment.StampKey(), []byte("{}"))
	prove := map[string]func() (*check.Loss, error){
		"without a word": func() (*check.Loss, error) {
			return check.ProveLoss(t.Context(), x.Catalog, x.Classes, object, "a")
		},
		"with one": func() (*check.Loss, error) {
			return check.ProveUnreadable(t.Context(), x.Catalog, x.Classes, object, "a")
		},
	}
	const advice = "delete it with those tools in every bucket"
	for name, prove := range prove {
		c.ill = map[string]bool{object: true}
		if loss, err := prove(); loss != nil || !errors.Is(err, objstore.ErrUnavailable) || !strings.Contains(err.Error(), advice) || strings.Contains(err.Error(), "--unreadable") {
			t.Errorf("%s: %+v, %v", name, loss, err)
		}
		c.ill[segment.StampKey()] = true
		if loss, err := prove(); loss != nil || !errors.Is(err, objstore.ErrUnavailable) || strings.Contains(err.Error(), advice) {
			t.Errorf("%s, and the store is away: %+v, %v", name, loss, err)
		}
	}
	c.ill = nil
	x.Delete(object) // as the advice has it
	if loss, err := prove["without a word"](); err != nil || loss.Rows != 18 {
		t.Errorf("%+v, %v", loss, err)
	}
	if c.hits.Load() == 0 {
		t.Error("no fault was met")
	}
}

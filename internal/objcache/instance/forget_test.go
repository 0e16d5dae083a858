package instance

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
)

func (x *rig) delete(keys ...string) {
	x.Helper()
	res, err := x.cache.Delete(x.Context(), testBucket, keys)
	x.ok(err)
	for i, r := range res {
		x.ok(r.Err)
		if r.Key != keys[i] {
			x.Fatalf("%s in the place of %s", r.Key, keys[i])
		}
	}
}

func (x *rig) gone(key string) {
	x.Helper()
	if b, _, err := x.read(key, objstore.Whole); !errors.Is(err, objstore.ErrNotFound) {
		x.Fatalf("%s is deleted: %d bytes, %v", key, len(b), err)
	}
}

// K30: deleted bytes are never served after the delete.
func TestK30DeletedIsGone(t *testing.T) {
	x := newRig(t, Config{})
	for _, k := range []string{"seg/a", "seg/b", "seg/c"} {
		x.put(k, 3*mib)
		x.same(k, objstore.Whole)
	}
	x.settled()
	x.delete("seg/a", "seg/b", "seg/never")
	x.gone("seg/a")
	x.gone("seg/b")
	x.same("seg/c", objstore.Whole)
	if n := len(x.files()); n != 3 {
		t.Errorf("%d files: those of the deleted keys stand", n)
	}
	x.reopen() // not even another process finds them
	x.gone("seg/a")
	if n := x.asked(func() { x.same("seg/c", objstore.Whole) }); n != 0 {
		t.Errorf("%d GETs for what was not deleted", n)
	}
}

// K30: a fill that is under way when its key is deleted brings nothing back, wherever
// the delete falls.
func TestK30DeleteDuringFills(t *testing.T) {
	for name, when := range map[string]func(hold, held func()) faultstore.Fault{
		"before the GET": func(hold, held func()) faultstore.Fault { return faultstore.Fault{Before: func() { held(); hold() }} },
		"after the GET":  func(hold, held func()) faultstore.Fault { return faultstore.Fault{After: func() { held(); hold() }} },
	} {
		t.Run(name, func(t *testing.T) {
			x := newRig(t, Config{})
			want := x.put("seg/a", 4*mib)
			gate, at := make(chan struct{}), make(chan struct{})
			var once sync.Once
			x.setFault(func(c faultstore.Call) faultstore.Fault {
				if c.Op != objstore.OpGet {
					return faultstore.Fault{}
				}
				return when(func() { <-gate }, func() { once.Do(func() { close(at) }) })
			})
			var reader sync.WaitGroup
			reader.Go(func() { // it began before the delete: the bytes or "not there", both are right
				b, _, err := x.read("seg/a", objstore.Whole)
				if err == nil && !bytes.Equal(b, want) || err != nil && !errors.Is(err, objstore.ErrNotFound) {
					t.Errorf("%d bytes, %v", len(b), err)
				}
			})
			<-at
			x.delete("seg/a")
			x.setFault(nil)
			x.gone("seg/a") // does not join the fill that is older than the delete
			close(gate)
			reader.Wait()
			x.settled()
			x.gone("seg/a")
			if n := len(x.files()); n != 0 {
				t.Errorf("%d files of a deleted key", n)
			}
		})
	}
}

// K30: what is read between the eviction and the store's delete is not kept.
func TestK30ReadDuringDelete(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", 2*mib)
	gate, at := make(chan struct{}), make(chan struct{})
	x.setFault(func(c faultstore.Call) faultstore.Fault {
		if c.Op != objstore.OpDelete {
			return faultstore.Fault{}
		}
		return faultstore.Fault{Before: func() { close(at); <-gate }}
	})
	var deleter sync.WaitGroup
	deleter.Go(func() { x.delete("seg/a") })
	<-at
	x.same("seg/a", objstore.Whole) // it still stands
	x.until("the fill ends", func() bool { s := x.cache.Stats(); return s.Unkept+s.Blocks == 2 })
	if n := len(x.files()); n != 0 {
		t.Errorf("%d files of a key that is being deleted: a kill now, and the next process serves them", n)
	}
	close(gate)
	deleter.Wait()
	x.settled()
	x.gone("seg/a")
	if n := len(x.files()); n != 0 {
		t.Errorf("%d files of a deleted key", n)
	}
}

// K30: a file that is being written when its key is deleted is gone before the store is
// asked: not even a kill of this process leaves one of a deleted key.
func TestK30DeleteWaitsForWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t, Config{})
		x.put("seg/a", mib)
		gate, asked := make(chan struct{}), make(chan int, 1)
		x.cache.write = func(path string, header, content []byte) error {
			<-gate
			return writeFile(path, header, content)
		}
		x.same("seg/a", objstore.Whole)
		x.setFault(func(c faultstore.Call) faultstore.Fault {
			if c.Op == objstore.OpDelete {
				return faultstore.Fault{Before: func() { asked <- len(x.files()) }}
			}
			return faultstore.Fault{}
		})
		var deleter sync.WaitGroup
		deleter.Go(func() { x.delete("seg/a") })
		synctest.Wait() // the file waits for the gate, the delete for the file
		if len(asked) > 0 {
			t.Error("the store was asked while a file was being written")
		}
		close(gate)
		deleter.Wait()
		if n := <-asked; n != 0 {
			t.Errorf("%d files when the store was asked", n)
		}
		x.setFault(nil)
		x.gone("seg/a")
	})
}

// K30: a key never has two contents. If the store's object is another all the same, no
// block of the old one is served beside it.
func TestK30ETagMismatchDropsAllBlocks(t *testing.T) {
	x := newRig(t, Config{})
	x.put("rw/a", 3*mib) // the one prefix that the store lets us overwrite
	x.same("rw/a", span(0, 2*mib))
	x.settled()
	body := bytes.Repeat([]byte("other"), 3*mib/5)
	_, err := x.mem.Put(t.Context(), "rw/a", bytes.NewReader(body), int64(len(body)), objstore.PutOptions{})
	x.ok(err)
	if _, _, err := x.read("rw/a", objstore.Whole); !errors.Is(err, ErrChanged) { // block 2 is a miss, under the old ETag
		t.Fatalf("two contents in one read: %v", err)
	}
	x.settled()
	if n := len(x.files()); n != 0 {
		t.Errorf("%d files of the old content", n)
	}
	x.same("rw/a", objstore.Whole)
	x.settled()
	// A reader who knows another ETag than the cache: neither is trusted.
	if _, err := x.cache.Read(t.Context(), testBucket, "rw/a", objstore.Whole, "stale"); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if s := x.cache.Stats(); s.Changed != 2 || s.Blocks != 0 {
		t.Errorf("%+v", s)
	}
}

// A delete that the store refuses is told so, key by key, and what stands can be cached again.
func TestDeleteAnswersPerKey(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", mib)
	x.put("seg/b", mib)
	x.same("seg/b", objstore.Whole)
	x.setFault(func(c faultstore.Call) faultstore.Fault {
		return faultstore.Fault{Kind: faultstore.DeleteFails, Err: objstore.ErrDenied, Keys: func(k string) bool { return k == "seg/b" }}
	})
	res, err := x.cache.Delete(t.Context(), testBucket, []string{"seg/a", "seg/b"})
	if err != nil || len(res) != 2 || res[0].Err != nil || !errors.Is(res[1].Err, objstore.ErrDenied) {
		t.Fatalf("%+v, %v", res, err)
	}
	x.setFault(nil)
	x.gone("seg/a")
	x.same("seg/b", objstore.Whole)
	x.settled()
	if n := x.asked(func() { x.same("seg/b", objstore.Whole) }); n != 0 {
		t.Errorf("%d GETs", n)
	}
	if _, err := x.cache.Delete(t.Context(), "other", []string{"seg/b"}); !errors.Is(err, ErrOtherBucket) {
		t.Error(err)
	}
	x.same("seg/b", objstore.Whole)
}

// What is not cached is not deleted here either, and nothing beside it in the call.
func TestKeysThatAreNotCached(t *testing.T) {
	x := newRig(t, Config{Keys: func(k string) bool { return k != "rw/head" }})
	x.put("rw/head", 10)
	x.put("seg/a", 10)
	if _, err := x.cache.Delete(t.Context(), testBucket, []string{"seg/a", "rw/head"}); !errors.Is(err, objstore.ErrInvalid) {
		t.Error(err)
	}
	if _, _, err := x.read("rw/head", objstore.Whole); !errors.Is(err, objstore.ErrInvalid) {
		t.Error(err)
	}
	if n := len(x.mem.Keys()); n != 2 {
		t.Errorf("%d objects stand", n)
	}
	x.same("seg/a", objstore.Whole)
}

// Readers, deletes and evictions at once, on few keys: whoever reads after a delete gets
// nothing, and the index ends empty.
func TestK30RacesOfReadsAndDeletes(t *testing.T) {
	x := newRig(t, Config{})
	const rounds = 30
	for i := range rounds {
		key := "seg/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		want := x.put(key, 2*mib+i)
		var all sync.WaitGroup
		for j := range 8 {
			all.Go(func() {
				b, _, err := x.read(key, objstore.Whole)
				if err == nil && !bytes.Equal(b, want) || err != nil && !errors.Is(err, objstore.ErrNotFound) {
					t.Errorf("reader %d: %d bytes, %v", j, len(b), err)
				}
			})
		}
		all.Go(func() { x.ok(x.cache.Evict(testBucket, []string{key})) })
		all.Go(func() {
			x.delete(key)
			x.gone(key)
		})
		all.Wait()
	}
	x.settled()
	x.until("the index is empty", func() bool { s := x.cache.Stats(); return s.Blocks == 0 && s.Bytes == 0 && s.Objects == 0 })
	if n := len(x.files()); n != 0 {
		t.Errorf("%d files", n)
	}
}

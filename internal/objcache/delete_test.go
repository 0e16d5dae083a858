package objcache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
)

// K30: what was deleted through the cache is not served by it.
func TestK30DeleteThroughInstances(t *testing.T) {
	x := newRig(t, 2, nil)
	keys := []string{"rw/head"}
	x.put("rw/head", 5)
	for i := range 20 {
		k := fmt.Sprintf("seg/%d", i)
		keys = append(keys, k, fmt.Sprintf("seg/none%d", i))
		x.put(k, mib)
		x.same(k, objstore.Whole)
	}
	x.settled(20)
	for _, r := range x.delete(keys...) {
		if r.Err != nil {
			t.Error(r)
		}
	}
	for _, k := range keys {
		x.gone(k)
	}
	if n := len(x.mem.Keys()); n != 0 {
		t.Errorf("%d objects left", n)
	}
	a, b := x.nodes[0].store.deletes.Load(), x.nodes[1].store.deletes.Load()
	if a != 1 || b != 1 || x.direct.deletes.Load() != 1 {
		t.Errorf("deletes: %d and %d through instances, %d direct (the head's)", a, b, x.direct.deletes.Load())
	}
	if s := x.driver.Stats(); s.Deletes != 40 || s.Direct != 0 || s.Owed != 0 {
		t.Errorf("%+v", s)
	}
}

// K30: an instance is down when its keys are deleted. The store does it, the keys wait,
// nobody reads them of it, and when it is back it forgets them.
func TestK30InstanceDownAtDelete(t *testing.T) {
	var ahead atomic.Int64
	x := newRig(t, 1, func(c *objcache.Config) {
		c.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	for _, k := range []string{"seg/a", "seg/b"} {
		x.put(k, 2*mib)
		x.same(k, objstore.Whole)
	}
	x.settled(4)
	x.nodes[0].down()
	for _, r := range x.delete("seg/a") {
		x.ok(r.Err)
	}
	if s := x.driver.Stats(); s.Owed != 1 || s.Direct != 1 {
		t.Fatalf("%+v", s)
	}
	x.gone("seg/a")
	at, gate := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(gate) })
	defer release()
	var once sync.Once
	x.nodes[0].set(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.PathEvict {
				once.Do(func() { close(at) })
				<-gate
			}
			h.ServeHTTP(w, r)
		})
	})
	x.nodes[0].up(t)
	<-at
	if n := x.nodes[0].cache.Stats().Blocks; n != 4 {
		t.Fatalf("%d blocks: the test shows nothing", n)
	}
	ahead.Store(int64(time.Hour)) // the breaker would let it be asked
	x.gone("seg/a")               // it has the key still, and is not asked for it
	if s := x.driver.Stats(); s.Reads != 2 {
		t.Errorf("%+v: it was asked", s)
	}
	release()
	x.until("the key is evicted", func() bool { s := x.driver.Stats(); return s.Owed == 0 && s.Evicted == 1 })
	if n := x.nodes[0].cache.Stats().Blocks; n != 2 {
		t.Errorf("%d blocks: those of the other key stay", n)
	}
	x.gone("seg/a")
	x.until("it is asked again", func() bool { x.same("seg/b", objstore.Whole); return x.driver.Stats().Reads > 2 })
}

// The instance acted and its answer is lost: the direct delete settles it. If that
// fails as well, nobody knows.
func TestLostAnswers(t *testing.T) {
	lose := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.PathDelete {
				h.ServeHTTP(hidden{w, http.Header{}}, r)
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		})
	}
	for name, c := range map[string]struct {
		fault faultstore.Fault
		want  error
	}{
		"settled":         {faultstore.Fault{}, nil},
		"store refuses":   {faultstore.Fault{Kind: faultstore.NotApplied}, objstore.ErrAmbiguous},
		"per key refused": {faultstore.Fault{Kind: faultstore.DeleteFails, Err: objstore.ErrDenied}, objstore.ErrAmbiguous},
	} {
		t.Run(name, func(t *testing.T) {
			x := newRig(t, 1, nil)
			x.put("seg/a", 10)
			x.nodes[0].set(lose)
			x.direct.setFault(func(call faultstore.Call) faultstore.Fault {
				if call.Op == objstore.OpDelete {
					return c.fault
				}
				return faultstore.Fault{}
			})
			if r := x.delete("seg/a"); !errors.Is(r[0].Err, c.want) {
				t.Errorf("%v, want %v", r[0].Err, c.want)
			}
			if s := x.driver.Stats(); s.Direct != 1 || s.Failures == 0 {
				t.Errorf("%+v", s)
			}
			x.until("the key is evicted", func() bool { return x.driver.Stats().Owed == 0 })
		})
	}
}

type hidden struct {
	http.ResponseWriter
	h http.Header
}

func (h hidden) Header() http.Header         { return h.h }
func (h hidden) Write(b []byte) (int, error) { return len(b), nil }
func (h hidden) WriteHeader(int)             {}

// The call as a whole fails with the store's own kind if no instance can have acted.
func TestNothingAppliedIsSaidSo(t *testing.T) {
	x := newRig(t, 1, nil)
	x.put("seg/a", 10)
	x.nodes[0].down()
	x.direct.setFault(func(call faultstore.Call) faultstore.Fault { return faultstore.Fault{Kind: faultstore.NotApplied} })
	if _, err := x.driver.Delete(t.Context(), []string{"seg/a"}); !errors.Is(err, objstore.ErrUnavailable) || errors.Is(err, objstore.ErrAmbiguous) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x.direct.setFault(nil)
	if _, err := x.driver.Delete(ctx, []string{"seg/a"}); !errors.Is(err, objstore.ErrUnavailable) {
		t.Error(err)
	}
	if n := x.direct.deletes.Load(); n != 1 {
		t.Errorf("%d deletes: a finished context starts none", n)
	}
}

// An instance that may read and not delete: the keys go directly, one by one exact.
func TestInstanceThatMayNotDelete(t *testing.T) {
	x := newRig(t, 1, nil)
	x.put("seg/a", mib)
	x.put("seg/b", mib)
	x.same("seg/a", objstore.Whole)
	x.nodes[0].store.setFault(func(call faultstore.Call) faultstore.Fault {
		return faultstore.Fault{Kind: faultstore.DeleteFails, Err: objstore.ErrDenied}
	})
	for _, r := range x.delete("seg/a", "seg/b") {
		x.ok(r.Err)
	}
	x.gone("seg/a")
	x.until("they are evicted after the direct delete", func() bool { s := x.driver.Stats(); return s.Owed == 0 && s.Evicted == 2 })
	x.nodes[0].store.setFault(nil)
	x.gone("seg/a")
}

// An instance of another bucket deletes nothing and has nothing to forget.
func TestInstanceOfAnotherBucket(t *testing.T) {
	x := newRig(t, 1, func(c *objcache.Config) { c.Bucket = "other/standard" })
	x.put("seg/a", 10)
	x.same("seg/a", objstore.Whole)
	for _, r := range x.delete("seg/a") {
		x.ok(r.Err)
	}
	if x.direct.deletes.Load() != 1 || x.nodes[0].store.deletes.Load() != 0 || x.nodes[0].store.gets.Load() != 0 {
		t.Error("an instance of another bucket acted")
	}
	x.until("nothing is owed", func() bool { return x.driver.Stats().Owed == 0 })
}

// An answer that leaves keys out, or names others, is none.
func TestInexactAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"fewer": `{"fates":[]}`, "another": `{"fates":[{"key":"seg/b"}]}`, "more": `{"fates":[{"key":"seg/a"},{"key":"seg/a"}]}`, "none": ``, "page": `<html>`,
	} {
		t.Run(name, func(t *testing.T) {
			x := newRig(t, 1, nil)
			x.put("seg/a", 10)
			x.nodes[0].set(func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != wire.PathDelete {
						h.ServeHTTP(w, r)
						return
					}
					fmt.Fprint(w, answer)
				})
			})
			for _, r := range x.delete("seg/a") {
				x.ok(r.Err)
			}
			if x.direct.deletes.Load() != 1 || len(x.mem.Keys()) != 0 {
				t.Error("an answer that proves nothing was taken for a delete")
			}
			x.until("evicted", func() bool { return x.driver.Stats().Owed == 0 })
		})
	}
}

// The queue is bounded, and what is left of it when the process ends is counted.
func TestQueueIsBounded(t *testing.T) {
	x := newRig(t, 1, func(c *objcache.Config) { c.QueueKeys, c.Rest = 3, time.Hour })
	x.nodes[0].down()
	for i := range 5 {
		x.delete(fmt.Sprintf("seg/%d", i))
	}
	if s := x.driver.Stats(); s.Owed != 3 || s.Dropped != 2 {
		t.Errorf("%+v", s)
	}
	x.ok(x.driver.Close())
	if s := x.driver.Stats(); s.Dropped != 5 {
		t.Errorf("%+v", s)
	}
}

// Close tells an instance that is back what it is owed.
func TestCloseTriesOnceMore(t *testing.T) {
	x := newRig(t, 1, func(c *objcache.Config) { c.Rest = time.Hour })
	x.put("seg/a", mib)
	x.same("seg/a", objstore.Whole)
	x.settled(1)
	x.nodes[0].down()
	x.delete("seg/a")
	x.until("the first try failed", func() bool { return x.driver.Stats().Owed == 1 })
	x.nodes[0].up(t)
	x.ok(x.driver.Close())
	if s := x.driver.Stats(); s.Owed != 0 || s.Evicted != 1 {
		t.Errorf("%+v", s)
	}
	if n := x.nodes[0].cache.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks of a deleted key", n)
	}
}

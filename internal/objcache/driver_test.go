package objcache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/objstore/storetest"
)

// The wrapped driver is a driver like any other, whatever is cacheable: what the
// suite overwrites is not.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) objstore.Driver {
		mem := memstore.New(memstore.Options{MayReadDeleted: func(string) bool { return true }})
		n := startNode(t, mem, testBucket)
		d := objcache.Wrap(mem, objcache.Config{
			Instances: []string{n.addr}, Bucket: testBucket, Reads: true, Cacheable: func(k string) bool { return !strings.HasPrefix(k, "rw/") },
		})
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	})
}

func TestReadsThroughTwoInstances(t *testing.T) {
	x := newRig(t, 2, nil)
	for i := range 16 {
		x.put(fmt.Sprintf("seg/%d", i), mib+i)
	}
	ranges := []objstore.Range{objstore.Whole, {}, {Offset: 5, Length: 1 << 19}, objstore.Suffix(100), {Offset: mib / 2, Length: -1}, objstore.Suffix(1 << 30)}
	for range 2 { // 16 keys: that one instance has them all is as good as out of the question
		for i := range 16 {
			for _, r := range ranges {
				x.same(fmt.Sprintf("seg/%d", i), r)
			}
		}
		x.settled(31)
	}
	for i, n := range x.nodes {
		if n.store.gets.Load() == 0 {
			t.Errorf("instance %d was not asked", i)
		}
	}
	if n := x.nodes[0].store.gets.Load() + x.nodes[1].store.gets.Load(); n > 32 || x.direct.gets.Load() != 0 {
		t.Errorf("%d GETs of instances, %d direct, for 16 objects", n, x.direct.gets.Load())
	}
	x.put("rw/head", 10)
	x.same("rw/head", objstore.Whole)
	if x.direct.gets.Load() != 1 {
		t.Error("a key that is not cacheable was asked of an instance")
	}
}

// What an instance refuses, the store decides: its own answer comes back.
func TestRefusalsAreTheStores(t *testing.T) {
	x := newRig(t, 1, nil)
	x.put("seg/a", 100)
	x.same("seg/a", objstore.Whole)
	for _, c := range []struct {
		name, key, match string
		r                objstore.Range
		kind             error
	}{
		{"absent", "seg/none", "", objstore.Whole, objstore.ErrNotFound},
		{"beyond", "seg/a", "", objstore.Range{Offset: 100, Length: 1}, objstore.ErrRange},
		{"empty", "seg/a", "", objstore.Range{Offset: 5}, objstore.ErrRange},
		{"changed", "seg/a", "other", objstore.Whole, objstore.ErrPrecondition},
	} {
		before := x.direct.gets.Load()
		body, _, err := x.driver.Get(t.Context(), c.key, c.r, c.match)
		if err == nil {
			x.ok(body.Close())
		}
		if !errors.Is(err, c.kind) || x.direct.gets.Load() != before+1 {
			t.Errorf("%s: %v after %d GETs of the store", c.name, err, x.direct.gets.Load()-before)
		}
	}
	if s := x.driver.Stats(); s.Failures != 0 {
		t.Errorf("a refusal is no failure: %+v", s)
	}
	body, _, err := x.driver.Get(t.Context(), "seg/a", objstore.Whole, "")
	x.ok(err)
	x.ok(body.Close()) // not read
}

// Judgements are never answered by a cache.
func TestWithoutReadsTheStoreIsAsked(t *testing.T) {
	x := newRig(t, 1, func(c *objcache.Config) { c.Reads = false })
	x.put("seg/a", 100)
	for range 3 {
		x.same("seg/a", objstore.Whole)
	}
	if x.direct.gets.Load() != 3 || x.nodes[0].store.gets.Load() != 0 {
		t.Errorf("%d direct, %d through the instance", x.direct.gets.Load(), x.nodes[0].store.gets.Load())
	}
	x.delete("seg/a")
	if x.nodes[0].store.deletes.Load() != 1 || x.direct.deletes.Load() != 0 {
		t.Error("the delete did not go through the instance")
	}
}

// spoiled answers that readers must not notice, but for the store's GET.
func TestSpoiledAnswers(t *testing.T) {
	for name, spoil := range map[string]func(w http.ResponseWriter, r *http.Request, h http.Handler){
		"cut body":     rewrite(func(b []byte) []byte { return b[:len(b)/2] }),
		"wrong byte":   rewrite(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }),
		"wrong frame":  rewrite(func(b []byte) []byte { b[0] ^= 1; return b }),
		"empty body":   rewrite(func([]byte) []byte { return nil }),
		"another page": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { fmt.Fprint(w, "<html>login</html>") },
		"500":          func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(500) },
		"busy":         func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(503) },
		"dies at once": func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
		"silent":       func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() },
		"silent in the middle": func(w http.ResponseWriter, r *http.Request, h http.Handler) {
			rewrite(func(b []byte) []byte { return b[:wire.FrameBytes+100] })(hanging{w, r}, r, h)
		},
		"another object": func(w http.ResponseWriter, r *http.Request, h http.Handler) {
			r.URL.Path = wire.PathObjects + "seg/b"
			h.ServeHTTP(w, r)
		},
		"other bucket": func(w http.ResponseWriter, r *http.Request, h http.Handler) {
			r.Header.Set(wire.HeaderBucket, "other")
			h.ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newRig(t, 1, func(c *objcache.Config) {
				if strings.HasPrefix(name, "silent") {
					c.AnswerTimeout = 50 * time.Millisecond
				}
			})
			x.put("seg/a", 2*mib)
			x.put("seg/b", 2*mib+1)
			x.nodes[0].set(func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { spoil(w, r, h) })
			})
			x.same("seg/a", objstore.Whole)
			x.same("seg/a", objstore.Range{Offset: 100, Length: mib})
			if x.direct.gets.Load() == 0 {
				t.Error("the store was not asked: nothing was spoiled")
			}
		})
	}
}

// hanging sends what it is given and then nothing more, until the client leaves.
type hanging struct {
	http.ResponseWriter
	r *http.Request
}

func (h hanging) Write(b []byte) (int, error) {
	n, err := h.ResponseWriter.Write(b)
	_ = http.NewResponseController(h.ResponseWriter).Flush()
	<-h.r.Context().Done()
	return n, err
}

// rewrite changes an answer's body and leaves its head.
func rewrite(change func([]byte) []byte) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, h http.Handler) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(change(rec.Body.Bytes()))
		panic(http.ErrAbortHandler)
	}
}

// One of two instances dies in the middle of a read: the rest comes from the store, and
// the reader gets every byte.
func TestInstanceDiesInMidRead(t *testing.T) {
	x := newRig(t, 2, func(c *objcache.Config) { c.Rest = time.Hour })
	want := x.put("seg/a", 32*mib)
	body, info, err := x.driver.Get(t.Context(), "seg/a", objstore.Whole, "")
	x.ok(err)
	got := make([]byte, len(want))
	_, err = io.ReadFull(body, got[:3*mib])
	x.ok(err)
	for _, n := range x.nodes {
		if n.store.gets.Load() > 0 {
			n.down()
		}
	}
	_, err = io.ReadFull(body, got[3*mib:])
	x.ok(err)
	if n, err := body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes more, %v", n, err)
	}
	x.ok(body.Close())
	if string(got) != string(want) || info.Size != int64(len(want)) {
		t.Error("other bytes")
	}
	if x.direct.gets.Load() != 1 {
		t.Errorf("%d GETs of the store for the rest", x.direct.gets.Load())
	}
	x.same("seg/a", objstore.Whole) // it is left alone now
	if s := x.driver.Stats(); s.Failures != 1 || s.Fallbacks != 2 {
		t.Errorf("%+v", s)
	}
	for i := range 20 { // the other one still serves its keys
		x.put(fmt.Sprintf("seg/more%d", i), 10)
		x.same(fmt.Sprintf("seg/more%d", i), objstore.Whole)
	}
	if s := x.driver.Stats(); s.Reads < 2 || s.Reads > 20 {
		t.Errorf("%+v", s)
	}
}

// It dies in the middle, and the object is gone meanwhile: short, never a made-up end.
func TestInstanceDiesAndObjectIsGone(t *testing.T) {
	x := newRig(t, 1, nil)
	x.put("seg/a", 32*mib)
	body, _, err := x.driver.Get(t.Context(), "seg/a", objstore.Whole, "")
	x.ok(err)
	_, err = io.ReadFull(body, make([]byte, mib))
	x.ok(err)
	x.nodes[0].down()
	_, err = x.mem.Delete(t.Context(), []string{"seg/a"})
	x.ok(err)
	_, err = io.Copy(io.Discard, body)
	if !errors.Is(err, objstore.ErrShort) {
		t.Error(err)
	}
	x.ok(body.Close())
}

// An instance that is down costs one failed connection, then none until its time is over.
func TestBrokenInstanceIsLeftAlone(t *testing.T) {
	now := time.Unix(0, 0)
	var mu sync.Mutex
	x := newRig(t, 1, func(c *objcache.Config) {
		c.Rest = time.Minute
		c.Clock = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	x.put("seg/a", 100)
	x.nodes[0].down()
	for range 5 {
		x.same("seg/a", objstore.Whole)
	}
	if s := x.driver.Stats(); s.Failures != 1 || s.Fallbacks != 5 {
		t.Errorf("%+v", s)
	}
	x.nodes[0].up(t)
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	x.same("seg/a", objstore.Whole)
	if s := x.driver.Stats(); s.Reads != 1 || s.Failures != 1 {
		t.Errorf("%+v: it is back and was not asked", s)
	}
}

func TestCancelledReadBlamesNobody(t *testing.T) {
	x := newRig(t, 1, nil)
	x.put("seg/a", 100)
	at := make(chan struct{})
	x.nodes[0].set(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(at); <-r.Context().Done() })
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-at; cancel() }()
	if _, _, err := fetch(ctx, x.driver, "seg/a", objstore.Whole); !errors.Is(err, objstore.ErrUnavailable) {
		t.Error(err)
	}
	x.nodes[0].set(nil)
	x.same("seg/a", objstore.Whole)
	if s := x.driver.Stats(); s.Failures != 0 || s.Reads != 1 {
		t.Errorf("%+v", s)
	}
}

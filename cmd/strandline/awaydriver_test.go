package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	catmem "github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// TestAwayBucketIsHeldBeforeUse: no call of any kind reaches a bucket before it answered and
// was found to be ours; then all do. It is looked for now and then, not by every call.
func TestAwayBucketIsHeldBeforeUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New(memstore.Options{})
		looks, met := 0, false
		answer := objstore.ErrUnavailable
		a := newAway(t.Context(), inner, answer, nil)
		defer func() { _ = a.Close() }() // of a store in memory
		a.hold = func(context.Context, objstore.Driver) (objstore.Capabilities, error) {
			looks++
			return objstore.Capabilities{MaxDeleteSet: 7}, answer
		}
		err := a.onceMet(t.Context(), func(_ context.Context, _ objstore.Driver, c objstore.Capabilities) error {
			met = c.MaxDeleteSet == 7
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		calls := map[string]func() error{
			"put": func() error {
				_, err := a.Put(ctx, "k", bytes.NewReader([]byte("x")), 1, objstore.PutOptions{})
				return err
			},
			"get":    func() error { _, _, err := a.Get(ctx, "k", objstore.Range{}, ""); return err },
			"head":   func() error { _, err := a.Head(ctx, "k"); return err },
			"list":   func() error { _, err := a.List(ctx, "", "", "", 1); return err },
			"delete": func() error { _, err := a.Delete(ctx, []string{"k"}); return err },
			"create": func() error { _, err := a.CreateUpload(ctx, "k", nil); return err },
			"list uploads": func() error {
				_, err := a.ListUploads(ctx, "")
				return err
			},
			"abort": func() error { return a.Abort(ctx, "k", "id") },
		}
		all := func(kind error) {
			t.Helper()
			for name, call := range calls {
				if err := call(); !errors.Is(err, kind) {
					t.Errorf("%s: %v, want %v", name, err, kind)
				}
			}
		}
		all(objstore.ErrUnavailable)
		if looks != 0 {
			t.Errorf("%d looks right after the start", looks)
		}
		time.Sleep(awayEvery)
		answer = check.ErrNotMine // it is back, and another deployment's
		all(check.ErrNotMine)
		if page, err := inner.List(ctx, "", "", "", 10); err != nil || len(page.Objects) != 0 || looks != 1 || met {
			t.Errorf("%d looks, used: %v, %v", looks, page.Objects, err)
		}
		time.Sleep(awayEvery)
		answer = nil
		if err := calls["put"](); err != nil || !met || a.reach(ctx) != nil || looks != 2 {
			t.Errorf("%v after %d looks", err, looks)
		}
		if err := calls["head"](); err != nil {
			t.Error(err)
		}
	})
}

// TestAwayBucketIsUsedWithNothingOwed: what has to be done before a bucket is used is done also if
// it is asked for while a look is under way, or by one who has not seen yet that it is here.
func TestAwayBucketIsUsedWithNothingOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t.Context(), memstore.New(memstore.Options{}), objstore.ErrUnavailable, nil)
		defer func() { _ = a.Close() }() // of a store in memory
		a.hold = func(context.Context, objstore.Driver) (objstore.Capabilities, error) {
			return objstore.Capabilities{MaxDeleteSet: 7}, nil
		}
		var done []string
		does := func(what string, then func() error) metFunc {
			return func(_ context.Context, _ objstore.Driver, c objstore.Capabilities) error {
				if c.MaxDeleteSet == 7 {
					done = append(done, what)
				}
				return then()
			}
		}
		nothing := func() error { return nil }
		err := a.onceMet(t.Context(), does("before the look", func() error {
			if a.here.Load() {
				t.Error("it is used before all is done")
			}
			return a.onceMet(t.Context(), does("during the look", nothing))
		}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(awayEvery)
		if err := a.reach(t.Context()); err != nil {
			t.Fatal(err)
		}
		failed := errors.New("failed")
		if err := a.onceMet(t.Context(), does("behind it", func() error { return failed })); !errors.Is(err, failed) {
			t.Errorf("asked for once the bucket is here: %v", err)
		}
		if want := []string{"before the look", "during the look", "behind it"}; !slices.Equal(done, want) {
			t.Errorf("done: %q", done)
		}
	})
}

// TestAwayBucketThatHangs: a look at a bucket that takes calls and stays silent holds up the
// call that began it for a moment, and no other; it ends with Close, and not with that call.
func TestAwayBucketThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool // looks read it
		hangs.Store(true)
		a := newAway(t.Context(), memstore.New(memstore.Options{}), objstore.ErrUnavailable, nil)
		a.hold = func(ctx context.Context, _ objstore.Driver) (objstore.Capabilities, error) {
			if hangs.Load() {
				<-ctx.Done()
				return objstore.Capabilities{}, fmt.Errorf("%w: %w", objstore.ErrUnavailable, context.Cause(ctx))
			}
			return objstore.Capabilities{}, nil
		}
		took := func(most time.Duration) {
			t.Helper()
			began := time.Now()
			if err := a.reach(t.Context()); !errors.Is(err, objstore.ErrUnavailable) || time.Since(began) > most {
				t.Errorf("%v after %v, at most %v", err, time.Since(began), most)
			}
		}
		time.Sleep(awayEvery)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.reach(ended); !errors.Is(err, context.Canceled) || !errors.Is(err, objstore.ErrUnavailable) {
			t.Error(err)
		}
		took(0) // the look of the caller who left goes on
		time.Sleep(awayPatience)
		took(0)
		time.Sleep(awayEvery)
		took(awayPause)
		took(0)
		time.Sleep(awayPatience + awayEvery)
		hangs.Store(false)
		if err := a.reach(t.Context()); err != nil {
			t.Error(err)
		}
		b := newAway(t.Context(), memstore.New(memstore.Options{}), objstore.ErrUnavailable, nil)
		b.hold = a.hold
		hangs.Store(true)
		time.Sleep(awayEvery)
		began := time.Now()
		_ = b.reach(t.Context()) // begins a look
		if err := errors.Join(a.Close(), b.Close()); err != nil || time.Since(began) > awayPause {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// named is a second store in memory.
type named struct{ *memstore.Driver }

func (named) Name() string { return "memory://gone" }

// TestAwayBucketIsCachedOnceMet: the object cache is asked for what a bucket has that was away
// at the start, from the moment on at which it is used; not before, for it has no name there.
func TestAwayBucketIsCachedOnceMet(t *testing.T) {
	ctx := t.Context()
	asked := make(chan string, 64)
	instance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path
		w.WriteHeader(http.StatusServiceUnavailable) // the bucket has to give it
	}))
	defer instance.Close()
	slot := segment.SlotKey(segment.Chain{Epoch: 1}, 1)
	first, gone := memstore.New(memstore.Options{}), named{memstore.New(memstore.Options{})}
	cat := catmem.New(catmem.Options{})
	both := objstore.Classes{}
	for _, d := range []objstore.Driver{first, gone} {
		store, err := objstore.New(d, objstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		both["standard"] = append(both["standard"], store)
	}
	if _, err := check.Ensure(ctx, cat, both); err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Put(ctx, slot, bytes.NewReader([]byte("rows")), 4, objstore.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	a := newAway(ctx, gone, objstore.ErrUnavailable, nil)
	a.hold = func(context.Context, objstore.Driver) (objstore.Capabilities, error) { return gone.Capabilities(), nil }
	a.next = time.Now().Add(time.Hour)
	store, err := objstore.New(a, storeConfig(a))
	if err != nil {
		t.Fatal(err)
	}
	tr := &tier{catalog: cat, classes: objstore.Classes{"standard": {both["standard"][0], store}}}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	cache := &throughCache{instances: []string{instance.URL}}
	if err := cache.wrap(ctx, tr); err != nil {
		t.Fatal(err)
	}
	read := func() error {
		body, _, err := tr.reads["standard"][1].Driver().Get(ctx, slot, objstore.Range{}, "")
		if err == nil {
			err = body.Close()
		}
		return err
	}
	for _, side := range []objstore.Classes{tr.classes, tr.reads} {
		if here, err := answering(side); err != nil || len(here["standard"]) != 1 || !isAway(side["standard"][1]) {
			t.Errorf("%d buckets answer, %v: want 1", len(here["standard"]), err)
		}
	}
	if err := read(); !errors.Is(err, objstore.ErrUnavailable) || len(asked) != 0 {
		t.Errorf("before it is met: %v, %d calls of the cache", err, len(asked))
	}
	a.mu.Lock()
	a.next = time.Time{} // a look is due
	a.mu.Unlock()
	for end := time.Now().Add(time.Minute); isAway(store) && time.Now().Before(end); {
		_ = read() // begins a look, and may not wait for its end
	}
	if err := read(); err != nil || isAway(tr.reads["standard"][1]) {
		t.Fatalf("once it is back: %v", err)
	}
	if want := "GET " + wire.PathObjects + slot; len(asked) == 0 || <-asked != want {
		t.Errorf("the cache was not asked for %s", want)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// TestAwayBucketIsHeldBeforeUse: no call of any kind reaches a bucket before it answered and
// was found to be ours; then all do. It is looked for now and then, not by every call.
func TestAwayBucketIsHeldBeforeUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New(memstore.Options{})
		looks, met := 0, false
		answer := objstore.ErrUnavailable
		a := &away{
			Driver: inner, err: answer, next: time.Now().Add(awayEvery),
			hold: func(context.Context, objstore.Driver) (objstore.Capabilities, error) {
				looks++
				return objstore.Capabilities{MaxDeleteSet: 7}, answer
			},
			met: func(c objstore.Capabilities) { met = c.MaxDeleteSet == 7 },
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
		ended, cancel := context.WithCancel(ctx)
		cancel()
		b := &away{Driver: inner, hold: func(ctx context.Context, _ objstore.Driver) (objstore.Capabilities, error) {
			return objstore.Capabilities{}, ctx.Err()
		}, met: func(objstore.Capabilities) {}}
		if err := b.reach(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := b.reach(ctx); err != nil { // one caller's end says nothing about the bucket
			t.Error(err)
		}
	})
}

package settle

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// TestSettleReadsTheCopy: slots of a set of two whose first bucket is away, or holds
// rotten bytes, or lost them, are settled from the other; what neither has whole is not.
func TestSettleReadsTheCopy(t *testing.T) {
	rot := func(body []byte) []byte {
		for i := range len(body) / 2 {
			body[i] ^= 0x55
		}
		return body
	}
	for name, c := range map[string]struct {
		harm  func(first, second *memstore.Driver, key string, away *atomic.Bool)
		fails bool
	}{
		"nothing":       {func(*memstore.Driver, *memstore.Driver, string, *atomic.Bool) {}, false},
		"first away":    {func(_, _ *memstore.Driver, _ string, away *atomic.Bool) { away.Store(true) }, false},
		"first rotten":  {func(a, _ *memstore.Driver, k string, _ *atomic.Bool) { a.Tamper(k, rot) }, false},
		"second rotten": {func(_, b *memstore.Driver, k string, _ *atomic.Bool) { b.Tamper(k, rot) }, false},
		"both rotten":   {func(a, b *memstore.Driver, k string, _ *atomic.Bool) { a.Tamper(k, rot); b.Tamper(k, rot) }, true},
		"first away, second rotten": {func(_, b *memstore.Driver, k string, away *atomic.Bool) {
			away.Store(true)
			b.Tamper(k, rot)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTier(t)
			x.lax = c.fails
			second := memstore.New(memstore.Options{Clock: x.clock.Now})
			for range 3 {
				x.slot(write{stream: "a", rows: 20, size: 400}, write{stream: "b", rows: 50, size: 4000, noise: true})
			}
			copies := x.open(second)
			for key, body := range x.mem.Dump() {
				_, err := copies.PutOnce(t.Context(), key, body, nil)
				must(t, err)
			}
			var away atomic.Bool
			c.harm(x.mem, second, segment.SlotKey(x.chain, 2), &away)
			first := x.open(faultstore.Wrap(x.mem, func(f faultstore.Call) faultstore.Fault {
				// The slots' bucket is away; the settled objects' is another.
				if k, err := segment.ParseKey(f.Key); err == nil && k.Kind == segment.KeySlot && away.Load() {
					return faultstore.Fault{Kind: faultstore.NotApplied}
				}
				return faultstore.Fault{}
			}))
			s, err := New(Deps{
				Catalog: x.db, Classes: objstore.Classes{string(segment.ClassStandard): {first, copies}}, Clock: x.clock.Now,
				Logger: slog.New(slog.DiscardHandler), NewNonce: uuid.NewString, NewUUID: uuid.New,
			}, Config{SettleAge: -1, SettleBytes: -1, StreamObjectMin: 4 << 10, SpoolDir: t.TempDir(), FetchBytes: 64 << 10})
			must(t, err)
			rep, err := s.RunOnce(context.WithoutCancel(t.Context()), x.chain, "test")
			if failed := err != nil || len(rep.Failures) > 0; failed != c.fails {
				t.Fatalf("%+v, %v", rep, err)
			}
			if !c.fails {
				return
			}
			for _, f := range rep.Failures {
				err = errors.Join(err, f.Err)
			}
			if !segment.IsStructural(err) && !errors.Is(err, objstore.ErrUnavailable) {
				t.Errorf("%v", err)
			}
		})
	}
}

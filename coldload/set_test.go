package coldload_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// bucket is one of a set of two.
type bucket struct {
	mem  *memstore.Driver
	away atomic.Bool
}

func (b *bucket) wrap(d objstore.Driver) objstore.Driver {
	return faultstore.Wrap(d, func(faultstore.Call) faultstore.Fault {
		if b.away.Load() {
			return faultstore.Fault{Kind: faultstore.NotApplied}
		}
		return faultstore.Fault{}
	})
}

func (b *bucket) rot(key string) {
	b.mem.Tamper(key, func(body []byte) []byte {
		for i := range len(body) - 8 { // all but the trailer's end
			body[i] ^= 0x55
		}
		return body
	})
}

func (b *bucket) lose(t *testing.T, key string) {
	t.Helper()
	if _, err := b.mem.Delete(t.Context(), []string{key}); err != nil {
		t.Fatal(err)
	}
}

// setOfTwo is three slots in two buckets.
func setOfTwo(t *testing.T) (x *tiertest.Tier, keys []string, first, second *bucket) {
	t.Helper()
	first, second = &bucket{}, &bucket{}
	x, keys = threeSlots(t, first.wrap)
	first.mem = x.Mem
	second.mem = memstore.New(memstore.Options{Clock: x.Clock.Now, MayReadDeleted: func(string) bool { return true }})
	store, err := objstore.New(second.wrap(second.mem), objstore.Config{Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if _, err := store.PutOnce(t.Context(), key, x.Mem.Dump()[key], nil); err != nil {
			t.Fatal(err)
		}
	}
	class := string(segment.ClassStandard)
	x.Classes[class] = append(x.Classes[class], store)
	return x, keys, first, second
}

// TestReadsOfASet: a read takes any bucket and verifies. It is corrupt, or lost, only if
// no bucket is left that may have it whole.
func TestReadsOfASet(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, key string, first, second *bucket)
		want error // nil: every row is read
	}{
		"first away":                     {func(_ *testing.T, _ string, a, _ *bucket) { a.away.Store(true) }, nil},
		"second away":                    {func(_ *testing.T, _ string, _, b *bucket) { b.away.Store(true) }, nil},
		"both away":                      {func(_ *testing.T, _ string, a, b *bucket) { a.away.Store(true); b.away.Store(true) }, objstore.ErrUnavailable},
		"first rotten":                   {func(_ *testing.T, k string, a, _ *bucket) { a.rot(k) }, nil},
		"second rotten":                  {func(_ *testing.T, k string, _, b *bucket) { b.rot(k) }, nil},
		"second rotten, first away":      {func(_ *testing.T, k string, a, b *bucket) { b.rot(k); a.away.Store(true) }, objstore.ErrUnavailable},
		"first rotten, second away":      {func(_ *testing.T, k string, a, b *bucket) { a.rot(k); b.away.Store(true) }, objstore.ErrUnavailable},
		"both rotten":                    {func(_ *testing.T, k string, a, b *bucket) { a.rot(k); b.rot(k) }, coldload.ErrCorrupt},
		"first lost":                     {func(t *testing.T, k string, a, _ *bucket) { a.lose(t, k) }, nil},
		"second has no copy":             {func(t *testing.T, k string, _, b *bucket) { b.lose(t, k) }, nil},
		"first lost, second away":        {func(t *testing.T, k string, a, b *bucket) { a.lose(t, k); b.away.Store(true) }, objstore.ErrUnavailable},
		"first lost, second rotten":      {func(t *testing.T, k string, a, b *bucket) { a.lose(t, k); b.rot(k) }, coldload.ErrCorrupt},
		"first away, second has no copy": {func(t *testing.T, k string, a, b *bucket) { a.away.Store(true); b.lose(t, k) }, objstore.ErrUnavailable},
		"lost in both, that is: deleted": {func(t *testing.T, k string, a, b *bucket) { a.lose(t, k); b.lose(t, k) }, coldload.ErrLost},
		"first rotten, a copy of no bytes": {func(t *testing.T, k string, a, b *bucket) {
			a.rot(k)
			b.mem.Tamper(k, func([]byte) []byte { return nil })
		}, coldload.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			x, keys, first, second := setOfTwo(t)
			c.harm(t, keys[1], first, second)
			for _, stream := range []string{"a", "b"} {
				got, err := collect(t.Context(), reader(t, x, coldload.Config{}), stream, segment.Pos{}, segment.Pos{})
				if c.want == nil {
					if err != nil {
						t.Fatal(err)
					}
					same(t, got, x.Rows[stream])
					continue
				}
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if errors.Is(c.want, objstore.ErrUnavailable) && (errors.Is(err, coldload.ErrCorrupt) || errors.Is(err, coldload.ErrLost)) {
					t.Errorf("a bucket that is away became a verdict: %v", err)
				}
				same(t, got, x.Rows[stream][:len(got)]) // what came before is right
			}
		})
	}
}

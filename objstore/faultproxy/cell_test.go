//go:build unix

package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/miniostore"
	"github.com/strandline/strandline/objstore/s3store"
)

// cell is one driver before one real server: the way through the proxy, and the way
// past it by which a test looks at what became of it.
type cell struct {
	server  *realstore.Server
	proxy   *Proxy
	through objstore.Driver
	direct  objstore.Driver
}

const partSize = 5 << 20

var openers = map[string]func(ctx context.Context, endpoint, bucket string, s *realstore.Server) (objstore.Driver, error){
	"miniostore": func(ctx context.Context, endpoint, bucket string, s *realstore.Server) (objstore.Driver, error) {
		return miniostore.Open(ctx, miniostore.Config{
			Endpoint: endpoint, Bucket: bucket, Prefix: "tier", PathStyle: true, AccessKey: s.AccessKey, SecretKey: s.SecretKey,
		})
	},
	"s3store": func(ctx context.Context, endpoint, bucket string, s *realstore.Server) (objstore.Driver, error) {
		return s3store.Open(ctx, s3store.Config{
			Endpoint: "http://" + endpoint, Region: "us-east-1", Bucket: bucket, Prefix: "tier", PathStyle: true,
			AccessKey: s.AccessKey, SecretKey: s.SecretKey,
		})
	},
}

// cells runs f for both drivers before both servers, each with a bucket and a proxy of
// its own.
func cells(t *testing.T, f func(t *testing.T, c *cell)) {
	t.Helper()
	diagonal(t, f)
	runCell(t, "miniostore", realstore.Minio(t), f)
	runCell(t, "s3store", realstore.Versitygw(t), f)
}

// diagonal runs f for each driver and each server once: for long tests whose subject is
// the Store.
func diagonal(t *testing.T, f func(t *testing.T, c *cell)) {
	t.Helper()
	runCell(t, "miniostore", realstore.Versitygw(t), f)
	runCell(t, "s3store", realstore.Minio(t), f)
}

func runCell(t *testing.T, driver string, s *realstore.Server, f func(t *testing.T, c *cell)) {
	t.Helper()
	t.Run(driver+"/"+string(s.Kind), func(t *testing.T) {
		t.Parallel()
		f(t, newCell(t, driver, s))
	})
}

func newCell(t *testing.T, driver string, s *realstore.Server) *cell {
	t.Helper()
	// No test of Store needs more than its attempts in a row, and those that want every
	// request struck say so by their own rules on a proxy without a bound.
	p, err := Start(Config{Upstream: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := &cell{server: s, proxy: p}
	bucket := s.NewBucket(t)
	c.through = c.open(t, driver, p.Endpoint(), bucket)
	c.direct = c.open(t, driver, s.Endpoint, bucket)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *cell) open(t *testing.T, driver, endpoint, bucket string) objstore.Driver {
	t.Helper()
	d, err := openers[driver](context.Background(), endpoint, bucket, c.server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// store is a Store through the proxy. It does not wait: between an attempt and the next
// it calls pause (nil: nothing).
func (c *cell) store(t *testing.T, pause func()) *objstore.Store {
	return newStore(t, c.through, pause)
}

// past is a Store past the proxy.
func (c *cell) past(t *testing.T) *objstore.Store { return newStore(t, c.direct, nil) }

func newStore(t *testing.T, d objstore.Driver, pause func()) *objstore.Store {
	t.Helper()
	s, err := objstore.New(d, objstore.Config{PartSize: partSize, Concurrency: 2, Sleep: func(ctx context.Context, _ time.Duration) error {
		if pause != nil && ctx.Err() == nil {
			pause()
		}
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// under puts rules in force until the test ends, and fails it if one never struck.
func (c *cell) under(t *testing.T, rules ...*Rule) {
	t.Helper()
	c.proxy.Clear()
	c.proxy.Add(rules...)
	t.Cleanup(func() {
		if unhit := c.proxy.Unhit(); len(unhit) > 0 && !t.Failed() {
			t.Errorf("never struck: %q", unhit)
		}
		c.proxy.Clear()
	})
}

// stands gives what a key holds, past the proxy; nil if nothing.
func (c *cell) stands(t *testing.T, key string) []byte {
	t.Helper()
	got, _, err := c.past(t).ReadAll(t.Context(), key, 64<<20)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if got == nil {
		got = []byte{}
	}
	return got
}

func (c *cell) holds(t *testing.T, key string, want []byte) {
	t.Helper()
	if got := c.stands(t, key); !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		t.Fatalf("%s holds %d bytes %.30q, want %d bytes %.30q", key, len(got), got, len(want), want)
	}
}

// uploads counts the unfinished uploads of a key: an exact key is what both servers list.
func (c *cell) uploads(t *testing.T, key string) []objstore.Upload {
	t.Helper()
	ups, err := c.direct.ListUploads(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(ups, func(u objstore.Upload) bool { return u.Key != key })
}

// noise is n bytes that differ for different seeds.
func noise(seed byte, n int) []byte {
	src := rand.NewChaCha8([32]byte{seed})
	b := make([]byte, n)
	_, _ = src.Read(b) // never fails, by its documentation
	return b
}

// is says whether err is of one of these kinds; nil stands for success.
func is(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(k error) bool {
		if k == nil {
			return err == nil
		}
		return errors.Is(err, k)
	})
}

var kinds = []error{
	objstore.ErrNotFound, objstore.ErrExists, objstore.ErrPrecondition, objstore.ErrConflict, objstore.ErrUnavailable,
	objstore.ErrAmbiguous, objstore.ErrDenied, objstore.ErrRange, objstore.ErrShort, objstore.ErrInvalid,
	objstore.ErrUnsupported, objstore.ErrCorrupt, objstore.ErrNoSpace,
}

// only fails unless err is of this kind and of no other.
func only(t *testing.T, what string, err, kind error) {
	t.Helper()
	for _, k := range kinds {
		if errors.Is(err, k) != (k == kind) { //nolint:errorlint // the kinds themselves
			t.Errorf("%s: got %v, want only %q", what, err, kind)
			return
		}
	}
}

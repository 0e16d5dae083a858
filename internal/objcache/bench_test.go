//go:build unix

package objcache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/internal/objcache/instance"
	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/miniostore"
	"github.com/strandline/strandline/segment"
)

// bench is a bucket on a real MinIO, read directly and through two instances.
type bench struct {
	direct, cached *objstore.Store
	own            *counted   // the requests of direct
	through        []*counted // those of the instances, and of the cached reader itself
}

func benchStore(b *testing.B, d objstore.Driver) *objstore.Store {
	b.Helper()
	s, err := objstore.New(d, objstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func newBench(b *testing.B) *bench {
	b.Helper()
	server := realstore.Own(b, realstore.KindMinio, false)
	bucket := server.NewBucket(b)
	open := func() *counted {
		d, err := miniostore.Open(b.Context(), miniostore.Config{
			Endpoint: server.Endpoint, Bucket: bucket, AccessKey: server.AccessKey, SecretKey: server.SecretKey, PathStyle: true,
		})
		if err != nil {
			b.Fatal(err)
		}
		return count(d)
	}
	x := &bench{own: open()}
	x.direct = benchStore(b, x.own)
	var addrs []string
	for range 2 {
		c := open()
		cache, err := instance.Open(instance.Config{Dir: b.TempDir(), Bytes: 2 << 30}, map[string]*objstore.Store{testBucket: benchStore(b, c)})
		if err != nil {
			b.Fatal(err)
		}
		srv := httptest.NewServer(cache.Handler())
		b.Cleanup(func() {
			srv.Close()
			if err := cache.Close(); err != nil {
				b.Error(err)
			}
		})
		addrs, x.through = append(addrs, srv.Listener.Addr().String()), append(x.through, c)
	}
	c := open()
	x.through = append(x.through, c)
	x.cached = benchStore(b, objcache.Wrap(c, objcache.Config{
		Instances: addrs, Bucket: testBucket, Reads: true, Cacheable: func(string) bool { return true }, AnswerTimeout: time.Minute,
	}))
	return x
}

func gets(cs ...*counted) (n int64) {
	for _, c := range cs {
		n += c.gets.Load()
	}
	return n
}

// interleave reads by turns, so that both ways have the same minute of the machine.
func (x *bench) interleave(b *testing.B, bytes int64, read func(*objstore.Store)) {
	b.Helper()
	read(x.cached) // fills
	first := gets(x.through...)
	var took [2]time.Duration
	before := [2]int64{gets(x.own), gets(x.through...)}
	n := 0
	for b.Loop() {
		for i, s := range []*objstore.Store{x.direct, x.cached} {
			start := time.Now()
			read(s)
			took[i] += time.Since(start)
		}
		n++
	}
	for i, name := range []string{"direct", "cached"} {
		b.ReportMetric(float64(bytes)*float64(n)/took[i].Seconds()/(1<<20), name+"-MiB/s")
	}
	b.ReportMetric(float64(gets(x.own)-before[0])/float64(n), "direct-GETs/read")
	b.ReportMetric(float64(gets(x.through...)-before[1])/float64(n), "cached-GETs/read")
	b.ReportMetric(float64(first), "first-GETs")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkColdRead reads a stream of 256 MiB in slots, decoded, row by row.
func BenchmarkColdRead(b *testing.B) {
	x := newBench(b)
	tier := tiertest.New(b, func(objstore.Driver) objstore.Driver { return x.own })
	for range 8 {
		var writes []tiertest.Write
		for range 8 {
			writes = append(writes, tiertest.Write{Stream: "s", Rows: 1024, Size: 4 << 10})
		}
		tier.Slot(writes...)
	}
	x.interleave(b, 256<<20, func(s *objstore.Store) {
		r, err := coldload.New(tier.Catalog, objstore.Classes{string(segment.ClassStandard): {s}}, coldload.Config{Clock: tier.Clock.Now})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, err := range r.Rows(b.Context(), "s", segment.Pos{}, segment.Pos{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 8*8192 {
			b.Fatal(n, "rows")
		}
	})
}

// BenchmarkRanges reads 256 MiB in ranges of a cold read's size, eight at a time,
// without decoding them.
func BenchmarkRanges(b *testing.B) {
	const each, objects, size = 8 << 20, 8, 32 << 20
	x := newBench(b)
	body := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(body)
	for i := range objects {
		if _, err := x.direct.PutOnce(b.Context(), fmt.Sprintf("seg/%d", i), body, nil); err != nil {
			b.Fatal(err)
		}
	}
	x.interleave(b, objects*size, func(s *objstore.Store) {
		g, ctx := errgroup.WithContext(context.WithoutCancel(b.Context()))
		g.SetLimit(8)
		for i := range objects {
			for off := int64(0); off < size; off += each {
				g.Go(func() error {
					_, _, err := s.ReadRange(ctx, fmt.Sprintf("seg/%d", i), off, each)
					return err
				})
			}
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
	})
}

package fsstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/objstore/storetest"
)

func open(t *testing.T, dir string) *fsstore.Driver {
	t.Helper()
	d, err := fsstore.Open(dir, fsstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) objstore.Driver { return open(t, t.TempDir()) })
}

func TestStore(t *testing.T) {
	storetest.RunStore(t, func(t *testing.T) objstore.Driver { return open(t, t.TempDir()) })
}

func BenchmarkDriver(b *testing.B) {
	d, err := fsstore.Open(b.TempDir(), fsstore.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	storetest.Benchmark(b, d)
}

// BenchmarkList pages through 5,000 keys in 50 directories.
func BenchmarkList(b *testing.B) {
	d, err := fsstore.Open(b.TempDir(), fsstore.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	const keys = 5000
	for i := range keys {
		key := fmt.Sprintf("s/%02d/%04d", i%50, i)
		if _, err := d.Put(b.Context(), key, strings.NewReader(key), int64(len(key)), objstore.PutOptions{IfNoneMatch: true}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for token := ""; ; {
			page, err := d.List(b.Context(), "s/", "", token, 1000)
			if err != nil {
				b.Fatal(err)
			}
			n += len(page.Objects)
			if token = page.Next; token == "" {
				break
			}
		}
		if n != keys {
			b.Fatalf("%d keys", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/keys, "µs/key")
}

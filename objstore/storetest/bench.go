package storetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/objstore"
)

// Benchmark measures puts and gets of a driver, with allocations.
func Benchmark(b *testing.B, d objstore.Driver) {
	ctx := context.Background()
	for _, size := range []int{4 << 10, 1 << 20} {
		body := noise(1, size)
		prefix := "b-" + uuid.NewString()[:8] + "/"
		put := func(b *testing.B, key string) {
			if _, err := d.Put(ctx, key, bytes.NewReader(body), int64(size), once); err != nil {
				b.Fatal(err)
			}
		}
		n := 0
		b.Run(fmt.Sprintf("Put/%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				n++
				put(b, fmt.Sprintf("%s%02d/%d", prefix, n%16, n))
			}
		})
		put(b, prefix+"get")
		buf := make([]byte, size)
		get := func(b *testing.B, r objstore.Range, n int) {
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				rc, _, err := d.Get(ctx, prefix+"get", r, "")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(rc, buf[:n]); err != nil {
					b.Fatal(err)
				}
				if err := rc.Close(); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(fmt.Sprintf("Get/%dKiB", size>>10), func(b *testing.B) { get(b, objstore.Whole, size) })
		b.Run(fmt.Sprintf("Suffix/1KiB-of-%dKiB", size>>10), func(b *testing.B) { get(b, objstore.Suffix(1<<10), 1<<10) })
	}
}

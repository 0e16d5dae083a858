package storebench

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/objstore"
)

const (
	mib         = 1 << 20
	largeBytes  = 8 * mib
	slotBytes   = 64 * mib
	smallBytes  = 4 << 10
	footerBytes = 64 << 10
	deleteKeys  = 1000
	spareBytes  = 32 * mib // of the memory bound: connections, and what is not the bodies
	sources     = 16       // objects that reads choose from
)

// cell is one row of the table.
type cell struct {
	name     string
	bytes    int64 // of one operation; 0 where bytes are not the point
	inFlight int
	n        int   // operations of a measurement
	held     int64 // bytes of bodies that may be in memory at once
	skip     string
	prepare  func(ctx context.Context, b *bench, dir string) error // before the clock runs
	op       func(ctx context.Context, b *bench, c Contender, key string, i int) error
}

// cells is the table for a store. quick makes the measurements short, not fewer.
func cells(caps objstore.Capabilities, quick bool) []cell {
	count := func(full, short int) int {
		if quick {
			return short
		}
		return full
	}
	var out []cell
	for _, p := range []int{1, 8, 16} {
		out = append(out, cell{
			name: "put 8 MiB", bytes: largeBytes, inFlight: p, n: count(max(16, 2*p), p), held: int64(p) * largeBytes,
			op: func(ctx context.Context, b *bench, c Contender, key string, _ int) error {
				return c.Put(ctx, key, b.large)
			},
		})
	}
	for _, p := range []int{1, 8, 16} {
		out = append(out, cell{
			name: "get 8 MiB", bytes: largeBytes, inFlight: p, n: count(64, p), held: int64(p) * largeBytes,
			op: func(ctx context.Context, b *bench, c Contender, _ string, i int) error {
				buf, back := b.into()
				defer back()
				return c.Read(ctx, b.source(i), 0, buf)
			},
		})
	}
	for _, p := range []int{1, 8, 16} {
		out = append(out, cell{
			name: "put 4 KiB", bytes: smallBytes, inFlight: p, n: count(256*min(p, 2), 4*p), held: int64(p) * smallBytes,
			op: func(ctx context.Context, b *bench, c Contender, key string, _ int) error {
				return c.Put(ctx, key, b.large[:smallBytes])
			},
		})
	}
	for _, p := range []int{1, 16} {
		out = append(out, cell{
			name: "footer 64 KiB", bytes: footerBytes, inFlight: p, n: count(512, 2*p), held: int64(p) * footerBytes,
			op: func(ctx context.Context, b *bench, c Contender, _ string, i int) error {
				got, err := c.Footer(ctx, b.source(i), footerBytes)
				if err == nil && len(got) != footerBytes {
					err = fmt.Errorf("read %d bytes, want %d: a short read would look fast", len(got), footerBytes)
				}
				return err
			},
		})
	}
	return append(out, whole(caps, count)...)
}

// whole are the cells of many requests an operation, one operation at a time.
func whole(caps objstore.Capabilities, count func(full, short int) int) []cell {
	publish := cell{
		name: "publish slot 64 MiB", bytes: slotBytes, inFlight: 1, n: count(4, 1),
		held: (objstore.DefaultConcurrency + 1) * objstore.DefaultPartSize,
		op: func(ctx context.Context, b *bench, c Contender, key string, _ int) error {
			return c.Publish(ctx, key, b.large[:mib], slotBytes/mib)
		},
	}
	if !caps.ConditionalComplete {
		publish.skip = "the store does not complete uploads under a condition"
	}
	remove := cell{
		name: "delete 1,000 keys", inFlight: 1, n: 1,
		prepare: func(ctx context.Context, b *bench, dir string) error { return b.fill(ctx, dir, deleteKeys) },
		op: func(ctx context.Context, _ *bench, c Contender, key string, _ int) error {
			return c.Delete(ctx, keysIn(dirOf(key), deleteKeys))
		},
	}
	copied := cell{
		name: "copy range 64 MiB", bytes: slotBytes, inFlight: 1, n: count(4, 1),
		op: func(ctx context.Context, b *bench, c Contender, key string, _ int) error {
			return c.Copy(ctx, key, b.slot)
		},
	}
	if !caps.RangeCopy || caps.EqualParts || !caps.ConditionalComplete {
		copied.skip = "the store does not copy ranges into uploads, or its URL says so"
	}
	return []cell{publish, remove, copied}
}

func keysIn(dir string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%04d", dir, i)
	}
	return keys
}

package localtier

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// BenchmarkAppend is an append of one row of 256 bytes, acknowledged after its fsync,
// by clients in parallel, slots published and absorbed meanwhile.
func BenchmarkAppend(b *testing.B) {
	for _, rows := range []int{1, 100} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			wr := benchWriter(b)
			payload := noise(256)
			var client atomic.Int64
			b.SetParallelism(32)
			b.SetBytes(int64(rows * len(payload)))
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				stream := fmt.Sprintf("client-%d", client.Add(1))
				batch := make([]segment.Row, rows)
				for i := range batch {
					batch[i].Payload = payload
				}
				for pb.Next() {
					_, err := wr.Append(b.Context(), stream, batch, AckLocal)
					if errors.Is(err, ErrBackpressure) { // the disk is faster than the publisher
						err = wr.Flush(b.Context())
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			if err := wr.Close(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkPublish is a slot of 32 MiB in 200 streams, from seal to absorbed.
func BenchmarkPublish(b *testing.B) {
	wr := benchWriter(b)
	payload := noise(8 << 10)
	for b.Loop() {
		b.StopTimer()
		for i := range 200 {
			batch := make([]segment.Row, 20)
			for j := range batch {
				batch[j].Payload = payload
			}
			if _, err := wr.Append(b.Context(), fmt.Sprint("s", i), batch, AckLocal); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if err := wr.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(200 * 20 * 8 << 10)
	if err := wr.Close(b.Context()); err != nil {
		b.Error(err)
	}
}

func benchWriter(b *testing.B, change ...func(*Options)) *Writer {
	b.Helper()
	dir := b.TempDir()
	cat, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(dir, "c.db"), Create: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cat.Close(); err != nil {
			b.Error(err)
		}
	})
	if _, err := cat.Init(b.Context(), uuid.New()); err != nil {
		b.Fatal(err)
	}
	topo, err := cat.EnsureTopology(b.Context(), catalog.Topology{
		Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	if err != nil {
		b.Fatal(err)
	}
	store, err := objstore.New(memstore.New(memstore.Options{}), objstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	o := Options{
		Dir: filepath.Join(dir, "w"), Catalog: cat, Classes: objstore.Classes{"standard": {store}}, Topology: topo,
		Config: Config{MinFreeDisk: -1},
	}
	for _, c := range change {
		c(&o)
	}
	wr, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	return wr
}

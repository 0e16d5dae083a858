package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/segment"
)

// BenchmarkClientAppend: rows of 200 B through the client and HTTP to a writer on this disk, each
// acknowledged after its fsync; client and server share the machine.
func BenchmarkClientAppend(b *testing.B) {
	for _, encoding := range []client.Encoding{client.Zstd, client.Identity} {
		for _, rows := range []int{1, 500} {
			b.Run(fmt.Sprintf("%s/rows=%d", encoding, rows), func(b *testing.B) {
				up := startUp(b, b.TempDir(), "--log-level", "error")
				c, err := client.New(client.Config{URL: up.url, Encoding: encoding})
				if err != nil {
					b.Fatal(err)
				}
				batch := make([]segment.Row, rows)
				for i := range batch {
					batch[i].Payload = fmt.Appendf(nil, `{"at":%d,"level":"info","path":"/v1/things/%d","took_ms":%d,"agent":"%s"}`,
						1_700_000_000_000+i, i*7919%100_000, i%97, strings.Repeat("x", 110))
				}
				var writers atomic.Int64
				b.SetParallelism(8) // of each core
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					a := c.NewAppender(fmt.Sprintf("bench-%d", writers.Add(1)), client.AppendOptions{Ack: client.AckLocal})
					for pb.Next() {
						if _, err := a.Append(b.Context(), batch); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

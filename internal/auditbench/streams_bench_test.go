//go:build unix

package auditbench

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"testing"
)

// BenchmarkStreams is the settle of four batches and of their packs of many streams, for profiles.
func BenchmarkStreams(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		b.Run(fmt.Sprintf("streams=%d", n), func(b *testing.B) {
			for range b.N {
				s := storeOn(b, s3like())
				r, err := Run(b.Context(), s, Options{
					Only: regexp.MustCompile("streams"), Dir: b.TempDir(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
					Sizes: Sizes{Streams: []int{n}, Batches: 4, Batch: 16 << 20},
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(r.Streams[0].RawMBPerSecond, "rawMB/s")
				b.ReportMetric(r.Streams[0].RequestsPerGB, "requests/rawGB")
				b.ReportMetric(float64(r.Streams[0].PeakHeapBytes)/float64(4*n), "peakB/ref")
			}
		})
	}
}

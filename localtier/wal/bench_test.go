package wal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// BenchmarkAppend is a closed loop: each producer sends its next 1 KiB row once
// the last is durable. On the file system of the temporary directory.
func BenchmarkAppend(b *testing.B) {
	for _, producers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("1KiB/producers=%d", producers), func(b *testing.B) {
			cfg := config(nil)
			cfg.SegmentBytes = 128 << 20
			l, err := wal.Open(b.Context(), b.TempDir(), cfg, nil)
			must(b, err)
			begin(b, l)
			appendLoop(b, l, producers)
			m := l.Metrics()
			b.ReportMetric(float64(m.Rows)/float64(m.Syncs), "rows/sync")
			mustClose(b, l)
		})
	}
}

func appendLoop(b *testing.B, l *wal.Log, producers int) {
	payload := make([]byte, 1024)
	_, _ = rand.Read(payload) // documented never to fail
	b.SetBytes(1024)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			batch := &segment.Batch{Stream: "orders", Rows: []segment.Row{{Payload: payload}}}
			for left.Add(-1) >= 0 {
				batch.Rows[0].Time = time.Now().UnixNano()
				ticket, err := l.AppendBatch(context.Background(), batch)
				if err == nil {
					_, err = ticket.Wait(context.Background())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/row") // allocs/op is rounded to whole ones
}

// BenchmarkReplay reads a warm log of 1 KiB rows through the sink.
func BenchmarkReplay(b *testing.B) {
	const rows = 200_000
	dir := b.TempDir()
	l, err := wal.Open(b.Context(), dir, wal.Config{NextStart: config(nil).NextStart}, nil)
	must(b, err)
	begin(b, l)
	payload := make([]byte, 1024)
	_, _ = rand.Read(payload) // documented never to fail
	batch := &segment.Batch{Stream: "orders", Rows: []segment.Row{{Time: 1, Payload: payload}}}
	for i := range rows {
		_, err := l.AppendBatch(b.Context(), batch)
		must(b, err)
		if i%5000 == 0 {
			must(b, l.Sync(b.Context()))
		}
	}
	mustSeal(b, l)
	mustClose(b, l)
	b.SetBytes(rows * 1024)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		ro, err := wal.OpenReadOnly(b.Context(), dir, wal.Config{}, func(wal.Replayed) error { n++; return nil })
		must(b, err)
		if n < rows || ro.State().Next != rows+1 {
			b.Fatalf("%d frames", n)
		}
	}
}

// BenchmarkOpen opens a cleanly closed log for append without a replay.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	cfg := wal.Config{NextStart: config(nil).NextStart}
	l, err := wal.Open(b.Context(), dir, cfg, nil)
	must(b, err)
	begin(b, l)
	big := &segment.Batch{Stream: "orders", Rows: []segment.Row{{Payload: make([]byte, 1<<20)}}}
	for range 200 {
		_, err := l.AppendBatch(b.Context(), big)
		must(b, err)
		must(b, l.Sync(b.Context()))
	}
	mustClose(b, l)
	for b.Loop() {
		l, err := wal.Open(b.Context(), dir, cfg, nil)
		must(b, err)
		mustClose(b, l)
	}
}

package wal_test

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// BenchmarkAppend is a closed loop: each producer sends its next row once the
// last is durable. On the file system of the temporary directory. "grow" writes
// growing files, "fresh" is the default in a new directory, "steady" the default
// once there are files that housekeeping is done with.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{256, 1024, 64 << 10} {
		for _, producers := range []int{1, 16, 256} {
			for _, mode := range []string{"grow", "fresh", "steady"} {
				b.Run(fmt.Sprintf("%dB/producers=%d/%s", size, producers, mode), func(b *testing.B) {
					l, stop := benchLog(b, mode)
					appendLoop(b, l, producers, size)
					stop()
				})
			}
		}
	}
}

// benchLog is a log whose sealed segments are in the shared tier at once.
func benchLog(b *testing.B, mode string) (*wal.Log, func()) {
	cfg := config(nil)
	cfg.SegmentBytes = 64 << 20
	if cfg.Preallocate = wal.PreallocateAuto; mode == "grow" {
		cfg.Preallocate = wal.PreallocateOff
	}
	sealed := make(chan wal.SealedSegment, 1000)
	cfg.OnSealed = func(s wal.SealedSegment) { sealed <- s }
	l, err := wal.Open(b.Context(), b.TempDir(), cfg, nil)
	must(b, err)
	begin(b, l)
	var wg sync.WaitGroup
	wg.Go(func() {
		for s := range sealed {
			must(b, l.Checkpoint(bg, s.End()))
			_, err := l.Housekeep(bg, wal.NoFloor)
			must(b, err)
		}
	})
	if mode == "steady" {
		big := &segment.Batch{Stream: "orders", Rows: []segment.Row{{Payload: make([]byte, 1<<20)}}}
		for l.Metrics().Recycled < 2 {
			_, err := l.AppendBatch(b.Context(), big)
			must(b, err)
			must(b, l.Sync(b.Context()))
		}
		mustSeal(b, l)
	}
	return l, func() {
		mustClose(b, l)
		close(sealed)
		wg.Wait()
	}
}

func appendLoop(b *testing.B, l *wal.Log, producers, size int) {
	payload := make([]byte, size)
	_, _ = rand.Read(payload) // documented never to fail
	b.SetBytes(int64(size))
	var took []time.Duration
	var mu sync.Mutex
	var before, after runtime.MemStats
	m := l.Metrics()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			mine := make([]time.Duration, 0, 1+2*b.N/producers)
			batch := &segment.Batch{Stream: "orders", Rows: []segment.Row{{Payload: payload}}}
			for left.Add(-1) >= 0 {
				begin := time.Now()
				batch.Rows[0].Time = begin.UnixNano()
				ticket, err := l.AppendBatch(bg, batch)
				if err == nil {
					_, err = ticket.Wait(bg)
				}
				if err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(begin))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	wg.Wait()
	b.StopTimer()
	runtime.ReadMemStats(&after)
	n := l.Metrics()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(n.Rows-m.Rows)/float64(n.Syncs-m.Syncs), "rows/sync")
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
	streams := []string{"orders", "invoices", "shipments", "returns"}
	batch := &segment.Batch{Rows: []segment.Row{{Payload: payload}}}
	for i := range rows {
		batch.Stream, batch.Rows[0].Time = streams[i%len(streams)], time.Now().UnixNano()
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
		var row segment.Row
		ro, err := wal.OpenReadOnly(b.Context(), dir, wal.Config{}, func(r wal.Replayed) error {
			if r.Frame.Kind != segment.KindBatch {
				return nil
			}
			rows := r.Frame.Rows()
			for rows.Next(&row) {
				n++
			}
			return rows.Err()
		})
		must(b, err)
		if n != rows || ro.State().Next != rows+1 {
			b.Fatalf("%d rows", n)
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

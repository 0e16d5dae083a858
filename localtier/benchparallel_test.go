package localtier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// BenchmarkAppendParallel is a closed loop of one-row appends of 1 KiB: each producer
// sends its next row once the last is durable. "wal" is the log alone, "shard" is
// Writer.Append, so what is between them is this package. Wall times are the disk's;
// cpu-ns/row is what the whole process worked. On a memory file system (TMPDIR) no disk
// hides that.
func BenchmarkAppendParallel(b *testing.B) {
	for _, producers := range []int{1, 16, 256} {
		for _, arm := range []string{"wal", "shard"} {
			b.Run(fmt.Sprintf("producers=%d/%s", producers, arm), func(b *testing.B) {
				appender := walAppender
				if arm == "shard" {
					appender = shardAppender
				}
				appendLoop(b, producers, appender(b))
			})
		}
	}
}

// appendOne appends one row and waits until it is durable.
type appendOne func(stream string, rows []segment.Row) error

// hugeSegments are not sealed within a run: nothing is published meanwhile.
func hugeSegments() wal.Config {
	return wal.Config{
		SegmentBytes: segment.MaxSegmentBytes, SegmentAge: 24 * time.Hour,
		NextStart: func(*segment.Start) error { return nil },
	}
}

func walAppender(b *testing.B) appendOne {
	l, err := wal.Open(b.Context(), b.TempDir(), hugeSegments(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := l.StartSegment(b.Context(), segment.Start{ID: 1, Base: 1, Term: 1, Created: 1}); err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	return func(stream string, rows []segment.Row) error {
		batch := segment.Batch{Stream: stream, Rows: rows}
		t, err := l.AppendBatch(ctx, &batch)
		if err == nil {
			_, err = t.Wait(ctx)
		}
		return err
	}
}

func shardAppender(b *testing.B) appendOne {
	wr := benchWriter(b, func(o *Options) { o.Config.WAL, o.Config.MaxUnpublished = hugeSegments(), math.MaxInt64 })
	b.Cleanup(func() { leaveUnpublished(b, wr) })
	ctx := b.Context()
	return func(stream string, rows []segment.Row) error {
		_, err := wr.Append(ctx, stream, rows, AckLocal)
		return err
	}
}

// leaveUnpublished closes a writer without waiting for its bucket.
func leaveUnpublished(b *testing.B, wr *Writer) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := wr.Close(ctx); err != nil && !errors.Is(err, ErrUnpublished) && !errors.Is(err, context.Canceled) {
		b.Error(err)
	}
}

func appendLoop(b *testing.B, producers int, appendRow appendOne) {
	payload := noise(1024)
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	worked := cpuTime(b)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			stream, rows := fmt.Sprintf("stream-%02d", p%16), make([]segment.Row, 1)
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				begin := time.Now()
				rows[0] = segment.Row{Time: begin.UnixNano(), Payload: payload}
				if err := appendRow(stream, rows); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(begin)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	worked = cpuTime(b) - worked
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(worked.Nanoseconds())/float64(b.N), "cpu-ns/row")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/row") // allocs/op is rounded to whole ones
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkReadThrough reads 200 MiB of rows of 1 KiB, one a frame, file cache warm:
// "wal" is a read-only open with a replay into a sink, "shard" a read-only open and a
// scan of the shard, "again" the next scan, through the index, "stream" one of 16 streams, whose frames lie among the others'.
func BenchmarkReadThrough(b *testing.B) {
	const rows, streams = 200 << 10, 16
	dir := filledDir(b, rows, streams)
	again, err := OpenReadOnly(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	arms := map[string]func() (int, error){
		"again": func() (n int, err error) {
			for _, err := range again.ReadShard(b.Context(), 1, 0) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"wal": func() (n int, err error) {
			_, err = wal.OpenReadOnly(b.Context(), dir, wal.Config{}, func(r wal.Replayed) error {
				if r.Frame.Kind == segment.KindBatch {
					n++
				}
				return nil
			})
			return n, err
		},
		"shard": func() (n int, err error) {
			ro, err := OpenReadOnly(b.Context(), dir)
			if err != nil {
				return 0, err
			}
			for _, err := range ro.ReadShard(b.Context(), 1, 0) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"stream": func() (n int, err error) {
			ro, err := OpenReadOnly(b.Context(), dir)
			if err != nil {
				return 0, err
			}
			for _, err := range ro.Read(b.Context(), "stream-03", 1, 0) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
	}
	for _, arm := range []string{"wal", "shard", "again", "stream"} {
		b.Run(arm, func(b *testing.B) {
			b.SetBytes(rows << 10)
			b.ReportAllocs()
			worked := cpuTime(b)
			for b.Loop() {
				want := rows
				if arm == "stream" {
					want /= streams
				}
				if n, err := arms[arm](); err != nil || n != want {
					b.Fatalf("%d rows of %d, %v", n, want, err)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-worked).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// filledDir is a log directory with one row of 1 KiB a frame.
func filledDir(b *testing.B, rows, streams int) string {
	dir := filepath.Join(b.TempDir(), "log")
	l, err := wal.Open(b.Context(), dir, wal.Config{NextStart: func(*segment.Start) error { return nil }}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.StartSegment(b.Context(), segment.Start{ID: 1, Base: 1, Term: 1, Created: 1}); err != nil {
		b.Fatal(err)
	}
	payload := noise(1024)
	for i := range rows {
		_, err := l.AppendBatch(b.Context(), &segment.Batch{
			Stream: fmt.Sprintf("stream-%02d", i%streams), Rows: []segment.Row{{Time: 1, Payload: payload}},
		})
		if err == nil && i%5000 == 0 {
			err = l.Sync(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

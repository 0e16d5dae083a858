package wal_test

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// fillSegments writes n sealed segments of about size bytes each, in frames of
// frameRows rows, and returns the bytes that stand then and the rows.
func fillSegments(t testing.TB, fsys wal.FS, dir string, cfg wal.Config, n int, size int64) (bytes int64, rows int) {
	t.Helper()
	const frameRows, rowBytes = 64, 1000
	l, err := wal.Open(bg, dir, cfg, nil)
	must(t, err)
	must(t, l.StartSegment(bg, segment.Start{Chain: testChain, ID: 1, Base: 1, Term: 1}))
	payload := []byte(strings.Repeat("0123456789", rowBytes/10))
	frame := &segment.Batch{Stream: "orders"}
	for i := range frameRows {
		frame.Rows = append(frame.Rows, segment.Row{Time: int64(i), Payload: payload})
	}
	frameBytes := int64(segment.FrameHeaderBytes + segment.BatchBytes(frame))
	for range n {
		for at := int64(0); at+2*frameBytes < size; at += frameBytes {
			if _, err := l.AppendBatch(bg, frame); err != nil {
				t.Fatal(err)
			}
			rows += frameRows
			if l.Unflushed() > size/2 {
				must(t, l.Sync(bg))
			}
		}
		mustSeal(t, l)
	}
	for _, s := range l.Sealed() {
		bytes += s.Bytes
	}
	if got := len(l.Sealed()); got != n {
		t.Fatalf("%d segments stand, want %d", got, n)
	}
	mustClose(t, l)
	return bytes, rows
}

// Scenario RFC0008.3: what a replay reads grows with the bytes that stand, and it
// issues no fsync on clean segments: neither by the log's count nor by the file
// layer's.
func TestRFC0008_3_RecoveryNonAmplification(t *testing.T) {
	const size = 512 << 10
	perByte := map[int]float64{}
	for _, n := range []int{1, 4, 16} {
		fsys := powercut.New()
		bytes, rows := fillSegments(t, fsys, shardDir, config(fsys), n, size)
		var read, syncs atomic.Int64
		counting := &hookFS{
			FS:   fsys,
			read: func(_ string, n int) { read.Add(int64(n)) },
			sync: func(string) { syncs.Add(1) },
		}
		seen := 0
		cfg := config(counting)
		l, err := wal.Open(t.Context(), shardDir, cfg, func(r wal.Replayed) error {
			if r.Frame.Kind == segment.KindBatch {
				_, _, rows, err := segment.BatchSpan(r.Frame.Payload)
				seen += rows
				return err
			}
			return nil
		})
		must(t, err)
		if seen != rows {
			t.Errorf("%d segments: %d rows replayed, %d were written", n, seen, rows)
		}
		if got := l.Metrics().Syncs; got != 0 || syncs.Load() != 0 {
			t.Errorf("%d segments: the replay made %d fsyncs, counted %d", n, syncs.Load(), got)
		}
		perByte[n] = float64(read.Load()) / float64(bytes)
		if perByte[n] < 1 || perByte[n] > 1.5 {
			t.Errorf("%d segments: %d bytes read of %d that stand", n, read.Load(), bytes)
		}
		mustClose(t, l)
	}
	t.Logf("bytes read per byte that stands: %v", perByte)
	if ratio := perByte[16] / perByte[1]; ratio < 0.8 || ratio > 1.2 {
		t.Errorf("16 segments cost %.2f times as much a byte as one", ratio)
	}
}

// An open without a replay reads the ends of the segments only, whatever they
// hold.
func TestRFC0008_3_OpenForAppendReadsTheEndsOnly(t *testing.T) {
	read := map[int64]int64{}
	for _, size := range []int64{256 << 10, 4 << 20} {
		fsys := powercut.New()
		fillSegments(t, fsys, shardDir, config(fsys), 4, size)
		var n atomic.Int64
		counting := &hookFS{FS: fsys, read: func(name string, k int) {
			if strings.HasSuffix(name, ".seg") {
				n.Add(int64(k))
			}
		}}
		l, err := wal.Open(t.Context(), shardDir, config(counting), nil)
		must(t, err)
		read[size] = n.Load()
		mustClose(t, l)
	}
	if small, large := read[256<<10], read[4<<20]; large > small+small/10 {
		t.Errorf("segments 16 times as large: %d bytes read, %d of the small ones", large, small)
	}
}

// BenchmarkRFC0008_3_RecoveryNonAmplification is seed 001's: 1, 4 and 16 segments of
// 128 MiB. x-linear is the time that a byte takes, in the fastest of the opens, over
// that in one segment; 1 is O(bytes). Cold caches are in ns/op.
func BenchmarkRFC0008_3_RecoveryNonAmplification(b *testing.B) {
	const size = 128 << 20
	var one float64 // ns a byte
	for _, n := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("segments=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			cfg := config(wal.OSFS(false))
			cfg.SegmentBytes = size
			bytes, _ := fillSegments(b, cfg.FS, dir, cfg, n, size)
			b.SetBytes(bytes)
			fastest := time.Duration(math.MaxInt64)
			for b.Loop() {
				fastest = min(fastest, timedReplay(b, dir, cfg))
			}
			perByte := float64(fastest) / float64(bytes)
			if n == 1 {
				one = perByte
			}
			if one > 0 {
				b.ReportMetric(perByte/one, "x-linear")
			}
			b.ReportMetric(1/perByte*1e9/(1<<20), "best-MiB/s")
		})
	}
}

// timedReplay opens a log, and closes it off the clock.
func timedReplay(b *testing.B, dir string, cfg wal.Config) time.Duration {
	b.Helper()
	from := time.Now()
	l, err := wal.Open(bg, dir, cfg, func(wal.Replayed) error { return nil })
	took := time.Since(from)
	if err != nil {
		b.Fatal(err)
	}
	if got := l.Metrics().Syncs; got != 0 {
		b.Fatalf("%d fsyncs in a replay", got)
	}
	b.StopTimer()
	mustClose(b, l)
	b.StartTimer()
	return took
}

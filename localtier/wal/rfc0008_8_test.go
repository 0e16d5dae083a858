package wal_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Scenario RFC0008.8: with a batch window, an acknowledgement comes exactly at
// its end, by a virtual clock that nothing but the window moves; fsyncs go by
// windows, not by rows; and none comes before the fdatasync that covers it.
func TestRFC0008_8_BatchWindow(t *testing.T) {
	for _, window := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		t.Run(window.String(), func(t *testing.T) {
			t.Run("together", func(t *testing.T) { rfc8Together(t, window) })
			t.Run("steady", func(t *testing.T) { rfc8Steady(t, window) })
		})
	}
	t.Run("none", rfc8None)
}

// windowLog is a log with a window, and the last row that an fdatasync covers.
func windowLog(t *testing.T, window time.Duration) (*wal.Log, *atomic.Uint64) {
	t.Helper()
	var written, covered atomic.Uint64
	fsys := &hookFS{FS: powercut.New()}
	fsys.write = func(f wal.File, p []byte, off int64) (int, error) {
		if last := lastRow(p); last != 0 {
			written.Store(uint64(last))
		}
		return f.WriteAt(p, off)
	}
	fsys.after = func() { covered.Store(written.Load()) }
	cfg := config(fsys)
	cfg.BatchWindow = window
	l, err := wal.Open(bg, shardDir, cfg, nil)
	must(t, err)
	begin(t, l)
	return l, &covered
}

// ackedAfter appends a row and says how long its acknowledgement took.
func ackedAfter(t *testing.T, l *wal.Log, covered *atomic.Uint64) time.Duration {
	t.Helper()
	from := time.Now()
	b := batch("row")
	ticket, err := l.AppendBatch(bg, b)
	if err == nil {
		_, err = ticket.Wait(bg)
	}
	if err != nil {
		t.Error(err)
	}
	if got := segment.Seq(covered.Load()); got < b.First {
		t.Errorf("row %d was acknowledged, fsynced are rows to %d", b.First, got)
	}
	return time.Since(from)
}

func rfc8Together(t *testing.T, window time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		l, covered := windowLog(t, window)
		for round := range 3 {
			before := l.Metrics()
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					if d := ackedAfter(t, l, covered); d != window {
						t.Errorf("round %d: acknowledged after %v, the window is %v", round, d, window)
					}
				})
			}
			wg.Wait()
			if m := l.Metrics(); m.Syncs-before.Syncs != 1 || m.Frames-before.Frames != 32 {
				t.Errorf("round %d: %d fsyncs for %d appends", round, m.Syncs-before.Syncs, m.Frames-before.Frames)
			}
			time.Sleep(time.Duration(round) * window / 3) // rounds begin anywhere
		}
		mustClose(t, l)
	})
}

// rfc8Steady: a row every tenth of a window. The first of a window waits for all
// of it, the last hardly; each window is one fsync.
func rfc8Steady(t *testing.T, window time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		l, covered := windowLog(t, window)
		before := l.Metrics()
		const windows, each = 20, 10
		longest := make([]time.Duration, windows*each)
		var wg sync.WaitGroup
		for i := range longest {
			wg.Go(func() { longest[i] = ackedAfter(t, l, covered) })
			time.Sleep(window / each)
		}
		wg.Wait()
		full := 0
		for i, d := range longest {
			if d > window {
				t.Errorf("row %d was acknowledged after %v, the window is %v", i, d, window)
			}
			if d == window {
				full++
			}
		}
		m := l.Metrics()
		syncs, appends := m.Syncs-before.Syncs, m.Frames-before.Frames
		if perSync := float64(appends) / float64(syncs); perSync < each-2 || perSync > each+2 {
			t.Errorf("%d appends in %d fsyncs: %.1f each, want about %d", appends, syncs, perSync, each)
		}
		if full < windows/2 {
			t.Errorf("only %d rows waited for a whole window", full)
		}
		mustClose(t, l)
	})
}

// rfc8None: the default waits for nothing but the disk.
func rfc8None(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, covered := windowLog(t, 0)
		for i := range 20 {
			if d := ackedAfter(t, l, covered); d != 0 {
				t.Errorf("row %d was acknowledged after %v on a disk that takes no time", i, d)
			}
		}
		mustClose(t, l)
	})
	if got := fmt.Sprint(wal.Config{}.BatchWindow); got != "0s" {
		t.Errorf("the default window is %s", got)
	}
}

package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Scenario RFC0008.9: what waits for the disk is bounded by two segments, and the
// configuration that makes it so is checked at open, every knob at once.
func TestRFC0008_9_UnflushedBounded(t *testing.T) {
	t.Run("random arrivals", rfc9Arrivals)
	t.Run("each knob's range", rfc9Ranges)
	t.Run("all faults at once", rfc9AllAtOnce)
}

// rfc9Arrivals: small rows and rows of almost a whole frame, in any order, over a
// disk that stalls for any time and never while it is asked to.
func rfc9Arrivals(t *testing.T) {
	seeds := uint64(4)
	if raceEnabled || testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			var stall atomic.Int64
			hooked := &hookFS{FS: powercut.New()}
			hooked.before = func() { time.Sleep(time.Duration(stall.Load())) }
			l := fresh(t, hooked)
			const bound = 2 * segment.MinSegmentBytes
			var most int64
			refused, appended, last := 0, 0, wal.Ticket{}
			sample := func() {
				if n := l.Unflushed(); n > bound {
					t.Fatalf("seed %d: %d bytes wait for the disk, at most %d may", seed, n, bound)
				} else if n > most {
					most = n
				}
			}
			large := make([]byte, segment.MaxFrameBytes-64)
			for range 60 {
				if rng.IntN(4) == 0 {
					stall.Store(rng.Int64N(int64(time.Second)))
				}
				size := rng.IntN(2000)
				switch rng.IntN(3) {
				case 0:
					size = len(large)
				case 1:
					size = rng.IntN(len(large))
				}
				b := &segment.Batch{Stream: "orders", Rows: []segment.Row{{Payload: large[:size]}}}
				ticket, err := l.AppendBatch(bg, b)
				sample()
				switch {
				case errors.Is(err, wal.ErrBackpressure):
					refused++
					time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
				case err != nil:
					t.Fatal(err)
				default:
					appended++
					last = ticket
				}
				if rng.IntN(5) == 0 {
					if _, err := last.Wait(bg); err != nil {
						t.Fatal(err)
					}
					sample()
				}
			}
			must(t, l.Sync(bg))
			if n := l.Unflushed(); n != 0 {
				t.Errorf("%d bytes wait after a sync", n)
			}
			if refused == 0 || most < bound/2 || appended < 10 {
				t.Errorf("seed %d: %d appended, %d refused, at most %d bytes waited: the bound was not tried", seed, appended, refused, most)
			}
			mustClose(t, l)
		})
	}
}

// rfc9Ranges: the ends of each range are accepted, what lies beyond is refused at
// open, by the knob's name, before anything is touched.
func rfc9Ranges(t *testing.T) {
	for name, c := range map[string]struct {
		set      func(*wal.Config, int64)
		low, top int64
		below    int64 // refused
	}{
		"segment-bytes": {func(c *wal.Config, v int64) { c.SegmentBytes = v }, 17 << 20, 2 << 30, 17<<20 - 1},
		"segment-age":   {func(c *wal.Config, v int64) { c.SegmentAge = time.Duration(v) }, int64(time.Second), int64(24 * time.Hour), int64(time.Second) - 1},
		"batch-window":  {func(c *wal.Config, v int64) { c.BatchWindow = time.Duration(v) }, 0, int64(10 * time.Second), -1},
		"spare-files":   {func(c *wal.Config, v int64) { c.SpareFiles = int(v) }, 1, 64, -1},
	} {
		for _, v := range []int64{c.low, c.top} {
			fsys := powercut.New()
			cfg := config(fsys)
			c.set(&cfg, v)
			l, err := wal.Open(bg, shardDir, cfg, nil)
			if err != nil {
				t.Errorf("%s of %d is refused: %v", name, v, err)
				continue
			}
			mustClose(t, l)
		}
		for _, v := range []int64{c.below, c.top + 1, -1 << 40} {
			fsys := powercut.New()
			cfg := config(fsys)
			c.set(&cfg, v)
			l, err := wal.Open(bg, shardDir, cfg, nil)
			if err == nil {
				stop(l)
				t.Errorf("%s of %d was accepted", name, v)
			} else if !strings.Contains(err.Error(), name) || len(fsys.Ops()) != 0 {
				t.Errorf("%s of %d: %v; %d changes were made", name, v, err, len(fsys.Ops()))
			}
		}
	}
	if segment.MinSegmentBytes < segment.MaxFrameBytes+segment.HeaderBytes+segment.FrameHeaderBytes {
		t.Error("the smallest segment does not hold the largest frame")
	}
}

func rfc9AllAtOnce(t *testing.T) {
	fsys := powercut.New()
	_, err := wal.Open(bg, shardDir, wal.Config{
		FS: fsys, SegmentBytes: 1 << 20, SegmentAge: time.Millisecond, BatchWindow: time.Minute, SpareFiles: 65,
	}, nil)
	for _, name := range []string{"segment-bytes", "segment-age", "batch-window", "spare-files", "NextStart"} {
		if !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	if len(fsys.Ops()) != 0 {
		t.Errorf("%d changes were made", len(fsys.Ops()))
	}
}

package localtier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
)

// TestPowerCutsUnderLoad: three shards under load, the power goes at a random change
// of the disk, and the next boot finds what was synced and a random part of the rest;
// again and again on what is left. Every acknowledged row is in the shared tier in the
// end, in order, once.
func TestPowerCutsUnderLoad(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t, 3)
			p := &powerLoad{w: w, doubts: map[string][]string{}}
			disk := powercut.New()
			for round := range 6 {
				on := func(o *Options) { o.Config.WAL.FS = disk }
				disk.PowerOffAfter(20 + rng.IntN(300))
				if wr, err := w.tryOpen("a", on); err == nil { // else the power went while it opened
					p.run(wr, round)
					abandon(t, wr)
				}
				disk = disk.Cut(rng.Uint64())
			}
			last := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
			w.mustClose(last)
			p.check(t)
		})
	}
}

// powerLoad remembers what was acknowledged, and the one row of each round and stream
// that may or may not have become durable.
type powerLoad struct {
	w  *world
	mu sync.Mutex

	doubts map[string][]string
}

func (p *powerLoad) run(wr *Writer, round int) {
	// A shared acknowledgement may wait on a disk that is off: the first failure ends all.
	ctx, off := context.WithCancel(p.w.t.Context())
	defer off()
	var wg sync.WaitGroup
	for i := range 8 {
		stream := fmt.Sprintf("stream-%d", i)
		ack := AckLocal
		if i%3 == 0 {
			ack = AckShared
		}
		wg.Go(func() {
			for n := 0; ; n++ {
				row := fmt.Sprintf("%s/%d/%d", stream, round, n)
				if err := p.w.appendWith(ctx, wr, stream, ack, row); err != nil {
					off()
					p.mu.Lock()
					p.doubts[stream] = append(p.doubts[stream], row)
					p.mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
}

func (p *powerLoad) check(t *testing.T) {
	t.Helper()
	rows := 0
	for i := range 8 {
		stream := fmt.Sprintf("stream-%d", i)
		acked := p.w.acked[stream]
		rows += len(acked)
		got := p.w.stored(stream)
		for _, d := range p.doubts[stream] {
			if count(got, d) > 1 {
				t.Errorf("%q is stored twice", d)
			}
		}
		known := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return slices.Contains(p.doubts[stream], s) })
		if !slices.Equal(known, acked) {
			t.Errorf("stream %s: stored %s, acknowledged %s", stream, brief(known), brief(acked))
		}
	}
	if rows == 0 {
		t.Error("nothing was ever acknowledged: the power went too soon")
	}
	t.Logf("%d rows acknowledged over the rounds", rows)
}

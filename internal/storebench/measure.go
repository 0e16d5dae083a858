package storebench

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// sample is one measurement of one contender.
type sample struct {
	seconds    float64
	cpuSeconds float64
	cpuKnown   bool
	peakHeap   int64
	requests   int64
}

// heapEvery is how often the heap is looked at; a read costs some microseconds.
const heapEvery = 2 * time.Millisecond

// measure runs op for 0 to n-1, so many in flight, and stops at the first error.
func measure(ctx context.Context, c Contender, n, inFlight int, op func(ctx context.Context, i int) error) (sample, error) {
	// The garbage of the one before is not this one's. Twice: pools keep theirs over one.
	runtime.GC()
	runtime.GC()
	heap := watchHeap()
	before := c.Requests()
	cpu, known := cpuTime()
	began := time.Now()

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return op(ctx, i)
		})
	}
	err := group.Wait()

	s := sample{seconds: time.Since(began).Seconds(), cpuKnown: known, requests: c.Requests() - before}
	after, _ := cpuTime()
	s.cpuSeconds = (after - cpu).Seconds()
	s.peakHeap = heap()
	return s, err
}

// watchHeap samples the bytes of heap objects, garbage not yet collected included, until
// the returned function is called. That gives the most above the beginning.
func watchHeap() (peak func() int64) {
	var (
		at    = []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		read  = func() int64 { metrics.Read(at); return int64(at[0].Value.Uint64()) } //nolint:gosec // a heap below 8 EiB
		start = read()
		most  = start
		done  = make(chan struct{})
		wg    sync.WaitGroup
	)
	wg.Go(func() {
		tick := time.NewTicker(heapEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				most = max(most, read())
			}
		}
	})
	return func() int64 {
		close(done)
		wg.Wait()
		return max(most, read()) - start
	}
}

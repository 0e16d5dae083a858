package storebench

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/internal/usage"
)

// sample is one measurement of one contender.
type sample struct {
	seconds    float64
	cpuSeconds float64
	cpuKnown   bool
	peakHeap   int64
	requests   int64
}

// measure runs op for 0 to n-1, so many in flight, and stops at the first error.
func measure(ctx context.Context, c Contender, n, inFlight int, op func(ctx context.Context, i int) error) (sample, error) {
	// The garbage of the one before is not this one's. Twice: pools keep theirs over one.
	runtime.GC()
	runtime.GC()
	heap := usage.WatchHeap()
	before := c.Requests()
	cpu, known := usage.CPU()
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
	after, _ := usage.CPU()
	s.cpuSeconds = (after - cpu).Seconds()
	s.peakHeap = heap()
	return s, err
}

package usage

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// heapEvery is how often the heap is looked at; a read costs some microseconds.
	heapEvery = 2 * time.Millisecond
	// residentEvery: a look reads a file of the system, some ten microseconds.
	residentEvery = 5 * time.Millisecond
)

// WatchHeap samples the bytes of heap objects, garbage not yet collected included, until
// the returned function is called, once. That gives the most above the beginning.
func WatchHeap() (peak func() int64) {
	at := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	return watch(heapEvery, func() int64 {
		metrics.Read(at)
		return int64(at[0].Value.Uint64()) //nolint:gosec // a heap below 8 EiB
	})
}

// WatchResident is WatchHeap for all of the process's memory, the freed that was not given
// back included; what was free at the beginning is given back first. 0 where the system
// does not tell.
func WatchResident() (peak func() int64) {
	debug.FreeOSMemory()
	return watch(residentEvery, resident)
}

// watch samples read. It runs in one goroutine, and after that has ended in the caller's.
func watch(every time.Duration, read func() int64) (peak func() int64) {
	var (
		start = read()
		most  = start
		done  = make(chan struct{})
		wg    sync.WaitGroup
	)
	wg.Go(func() {
		tick := time.NewTicker(every)
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

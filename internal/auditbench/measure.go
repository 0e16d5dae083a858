package auditbench

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/strandline/strandline/internal/usage"
	"github.com/strandline/strandline/objstore"
)

// spent is what one measurement took.
type spent struct {
	seconds, cpuSeconds float64
	heap, resident      int64 // the most above the beginning
	requests            objstore.Counters
	verbs               int64
}

// measure runs do against a tier, alone.
func (t *tier) measure(do func() error) (spent, error) {
	resident, heap := t.memory()
	requests, verbs := t.store.Counters(), t.verbs.Load()
	cpu, _ := usage.CPU()
	began := time.Now()

	err := do()

	s := spent{seconds: time.Since(began).Seconds()}
	after, _ := usage.CPU()
	s.cpuSeconds = (after - cpu).Seconds()
	s.requests, s.verbs = t.store.Counters().Sub(requests), t.verbs.Load()-verbs
	s.heap, s.resident = heap(), resident()
	return s, err
}

// memory begins to watch. The garbage of what was before is not this one's; twice: pools
// keep theirs over one collection.
func (t *tier) memory() (resident, heap func() int64) {
	if t.countOnly {
		none := func() int64 { return 0 }
		return none, none
	}
	runtime.GC()
	runtime.GC()
	return usage.WatchResident(), usage.WatchHeap()
}

// plus is one after the other. Of the counters only the requests are summed.
func (s spent) plus(o spent) spent {
	sum := spent{
		seconds: s.seconds + o.seconds, cpuSeconds: s.cpuSeconds + o.cpuSeconds,
		heap: max(s.heap, o.heap), resident: max(s.resident, o.resident), verbs: s.verbs + o.verbs,
		requests: objstore.Counters{Requests: maps.Clone(s.requests.Requests)},
	}
	if sum.requests.Requests == nil {
		sum.requests.Requests = map[objstore.Op]int64{}
	}
	for op, n := range o.requests.Requests {
		sum.requests.Requests[op] += n
	}
	return sum
}

func (s spent) gets() int64 {
	return s.requests.Requests[objstore.OpGet] + s.requests.Requests[objstore.OpHead]
}

// median of the values, each by of.
func median[T any](list []T, of func(T) float64) float64 {
	if len(list) == 0 {
		return 0
	}
	v := make([]float64, len(list))
	for i := range list {
		v[i] = of(list[i])
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// over divides, and says 0 where there is nothing to divide by.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

package storebench

import "slices"

// Report is what a run found, as --json prints it.
type Report struct {
	Store  string   `json:"store"`
	Prefix string   `json:"prefix"` // under which everything was written, and deleted
	Quick  bool     `json:"quick"`
	Rounds int      `json:"rounds"`
	Cells  []Result `json:"cells"`
	Notes  []string `json:"notes,omitempty"`
}

// Result is one row.
type Result struct {
	Operation      string       `json:"operation"`
	OperationBytes int64        `json:"operation_bytes"`
	InFlight       int          `json:"in_flight"`
	Operations     int          `json:"operations"` // of one measurement
	HeapBoundBytes int64        `json:"heap_bound_bytes"`
	Skipped        string       `json:"skipped,omitempty"`
	Contenders     []Contention `json:"contenders,omitempty"`
	// Ratios are ours over bare, the median over the rounds; absent without a bare client.
	ThroughputRatio float64 `json:"throughput_ratio,omitempty"`
	CPURatio        float64 `json:"cpu_ratio,omitempty"`
}

// Contention is one contender's medians in a row; the heap is the most of all rounds.
type Contention struct {
	Name                 string  `json:"name"`
	OperationsPerSecond  float64 `json:"operations_per_second"`
	BytesPerSecond       float64 `json:"bytes_per_second"`
	CPUSecondsPerGiB     float64 `json:"cpu_seconds_per_gib,omitempty"`
	CPUMicrosecondsPerOp float64 `json:"cpu_microseconds_per_operation,omitempty"`
	PeakHeapBytes        int64   `json:"peak_heap_bytes"`
	RequestsPerOperation float64 `json:"requests_per_operation"`
}

// result sums a cell up. samples[contender][round]; the first contender is ours.
func result(c cell, names []string, samples [][]sample) Result {
	r := Result{
		Operation: c.name, OperationBytes: c.bytes, InFlight: c.inFlight, Operations: c.n,
		HeapBoundBytes: c.held + spareBytes,
	}
	for i, name := range names {
		r.Contenders = append(r.Contenders, contention(c, name, samples[i]))
	}
	if len(names) > 1 {
		r.ThroughputRatio = median(pairs(samples[1], samples[0], func(s sample) float64 { return s.seconds }))
		r.CPURatio = median(pairs(samples[0], samples[1], func(s sample) float64 { return s.cpuSeconds }))
	}
	return r
}

func contention(c cell, name string, samples []sample) Contention {
	out := Contention{Name: name}
	var rates, cpu, requests []float64
	for _, s := range samples {
		rates = append(rates, float64(c.n)/s.seconds)
		if s.cpuKnown {
			cpu = append(cpu, s.cpuSeconds/float64(c.n))
		}
		requests = append(requests, float64(s.requests)/float64(c.n))
		out.PeakHeapBytes = max(out.PeakHeapBytes, s.peakHeap)
	}
	out.OperationsPerSecond = median(rates)
	out.BytesPerSecond = out.OperationsPerSecond * float64(c.bytes)
	out.CPUMicrosecondsPerOp = median(cpu) * 1e6
	if c.bytes > 0 {
		out.CPUSecondsPerGiB = median(cpu) / float64(c.bytes) * (1 << 30)
	}
	out.RequestsPerOperation = median(requests)
	return out
}

// pairs are the quotients a/b of each round.
func pairs(a, b []sample, of func(sample) float64) []float64 {
	var out []float64
	for i := range a {
		if of(b[i]) > 0 {
			out = append(out, of(a[i])/of(b[i]))
		}
	}
	return out
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

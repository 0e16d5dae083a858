package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets of at most 1.6 % width, without allocating.
type histogram struct {
	buckets [64 * stepsPerOctave]int64
}

const (
	stepBits       = 6
	stepsPerOctave = 1 << stepBits
)

// bucketOf is exact below stepsPerOctave nanoseconds; above, the leading bit and the
// stepBits bits after it.
func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < stepsPerOctave {
		return int(n)
	}
	shift := bits.Len64(n) - 1 - stepBits
	return (shift+1)*stepsPerOctave + int(n>>shift) - stepsPerOctave
}

// middleOf is the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < stepsPerOctave {
		return time.Duration(bucket)
	}
	shift := bucket/stepsPerOctave - 1
	low := uint64(stepsPerOctave+bucket%stepsPerOctave) << shift
	return time.Duration(low + 1<<shift/2)
}

func (h *histogram) add(d time.Duration) { h.buckets[bucketOf(d)]++ }

func (h *histogram) merge(other *histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
}

func (h *histogram) count() (n int64) {
	for _, b := range h.buckets {
		n += b
	}
	return n
}

// quantile is the time that a share q of all took at most.
func (h *histogram) quantile(q float64) time.Duration {
	left := int64(q * float64(h.count()))
	for i, n := range h.buckets {
		if left -= n; left < 0 {
			return middleOf(i)
		}
	}
	return 0
}

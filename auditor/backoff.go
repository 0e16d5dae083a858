package auditor

import (
	"time"

	"github.com/strandline/strandline/objstore"
)

// backoff is the pause after a marker's n-th failure in a row (from 0): doubled from
// first up to most, and no less than a store asked for in what failed. It is pure.
func backoff(attempts int, first, most time.Duration, failed error) time.Duration {
	return max(doubled(attempts, first, most), objstore.RetryAfter(failed))
}

func doubled(attempts int, first, most time.Duration) time.Duration {
	d := first
	for range min(attempts, 62) {
		if d >= most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

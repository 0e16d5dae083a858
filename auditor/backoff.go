package auditor

import "time"

// backoff is the pause after a marker's n-th failure in a row (from 0). It is pure.
func backoff(attempts int, first, most time.Duration) time.Duration {
	d := first
	for range min(attempts, 62) {
		if d >= most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

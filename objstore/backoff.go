package objstore

import "time"

// Backoff is the pause of a schedule after the n-th failure in a row of one thing (from
// 0): doubled from first up to most, and no less than a store asked for in what failed.
// It is pure; the pauses within a call are retry.go's.
func Backoff(attempts int, first, most time.Duration, failed error) time.Duration {
	return max(doubled(attempts, first, most), RetryAfter(failed))
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

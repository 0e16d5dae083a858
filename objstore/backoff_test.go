package objstore

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestBackoffWaitsAsAsked(t *testing.T) {
	for n, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 9: 512 * time.Second, 10: 10 * time.Minute, 400: 10 * time.Minute} {
		if got := Backoff(n, time.Second, 10*time.Minute, errors.New("any")); got != want {
			t.Errorf("%d failures: %v, want %v", n, got, want)
		}
	}
	asked := fmt.Errorf("settle: %w", &Error{Op: "put", Key: "k", Kind: ErrUnavailable, RetryAfter: 20 * time.Minute})
	if got := Backoff(3, time.Second, 10*time.Minute, asked); got != 20*time.Minute {
		t.Errorf("the store asked for 20 minutes: %v", got)
	}
	if got := Backoff(400, time.Second, time.Hour, asked); got != time.Hour {
		t.Errorf("an hour is longer than what the store asked for: %v", got)
	}
}

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	for attempts, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		if got := Backoff(attempts, 10*time.Second, time.Minute, nil); got != want {
			t.Errorf("attempt %d: %v, want %v", attempts, got, want)
		}
	}
	if got := Backoff(1_000_000, 10*time.Second, time.Minute, nil); got != time.Minute {
		t.Errorf("many attempts: %v", got)
	}
}

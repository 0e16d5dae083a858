package main

import (
	"testing"
	"time"
)

func TestDueText(t *testing.T) {
	for want, d := range map[string]time.Duration{"in 39s": 39 * time.Second, "1m0s ago": -time.Minute, "0s ago": time.Millisecond} {
		if got := dueText(d); got != want {
			t.Errorf("due %v from now: %q, want %q", d, got, want)
		}
	}
}

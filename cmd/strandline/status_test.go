package main

import (
	"testing"
	"time"
)

func TestDueText(t *testing.T) {
	for want, d := range map[string]time.Duration{"in 39s": 39 * time.Second, "since 1m0s": -time.Minute, "now": time.Millisecond} {
		if got := dueText(d); got != want {
			t.Errorf("due %v from now: %q, want %q", d, got, want)
		}
	}
}

package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// Waits between attempts double from the first to the longest.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
	// longestAsked bounds what a server may ask for: the context is the caller's word.
	longestAsked = time.Minute
)

// backoff is how long to wait next. The zero value begins anew.
type backoff struct{ step time.Duration }

// next is half to all of the step: many clients that lost one server come back apart.
func (b *backoff) next() time.Duration {
	b.step = min(max(2*b.step, firstWait), longestWait)
	return jitter(b.step)
}

func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// asked is what a server asked for, and a bit, so that not all come at once.
func asked(d time.Duration) time.Duration {
	d = min(d, longestAsked)
	return d + rand.N(d/4+1)
}

// sleep waits; false: the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package objcache

import (
	"math/rand/v2"
	"sync"
	"time"
)

// breaker leaves an instance alone for a while once it failed: longer each time, then
// one call is let through, and its end decides. Every call that allow let through ends
// in exactly one of ok, failed and abandoned.
type breaker struct {
	clock func() time.Time
	rest  time.Duration

	mu       sync.Mutex // all below
	failures int        // without a success in between
	until    time.Time  // no call before
	probing  bool       // the one call is under way
}

func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return true
	}
	if b.probing || b.clock().Before(b.until) {
		return false
	}
	b.probing = true
	return true
}

// ok reports whether the instance had been thought broken.
func (b *breaker) ok() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.failures > 0
	b.failures, b.probing = 0, false
	return was
}

// failed reports whether the instance had been thought well.
func (b *breaker) failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if b.failures > 0 && !b.probing && now.Before(b.until) {
		return false // of the same outage: calls that were under way when it was found
	}
	was := b.failures == 0
	b.probing = false
	b.until = now.Add(jitter(b.rest, b.failures))
	b.failures++
	return was
}

// abandoned: the caller left before the instance could show anything.
func (b *breaker) abandoned() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
}

// jitter is half to all of a doubling time, so that clients do not come back together.
func jitter(first time.Duration, n int) time.Duration {
	d := min(first<<min(n, 10), max(first, MaxRest))
	return d/2 + rand.N(d/2+1)
}

package audittest

import (
	"context"
	"sync"
	"time"
)

// Clock is a test's time: of catalog, bucket and auditor alike.
type Clock struct {
	mu  sync.Mutex // now
	now time.Time

	// around, if set, runs before and after the clock moves.
	around func()
}

// NewClock begins at a fixed time.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves it.
func (c *Clock) Advance(d time.Duration) {
	if c.around != nil {
		c.around()
		defer c.around()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Wait advances instead of waiting.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Advance(d)
	return nil
}

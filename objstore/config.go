package objstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const (
	// DefaultAttempts outlasts a short throttling burst (the brake's pauses are 100,
	// 200, 400 and 800 ms and their jitter) and still gives a caller with a deadline
	// its answer.
	DefaultAttempts = 5
	// DefaultBackoff is about one round trip to a bucket.
	DefaultBackoff = 50 * time.Millisecond
	// MaxBackoff caps the doubling: longer pauses belong to the duty's schedule.
	MaxBackoff = 2 * time.Second
	// DefaultCallTimeout lets 16 MiB pass at 0.3 MiB/s.
	DefaultCallTimeout = 60 * time.Second
	// totalTimeouts is how many CallTimeouts a call may take with all its attempts and
	// pauses: ten hold two attempts of the slowest kind, which take five each.
	totalTimeouts = 10
	// MaxRetryAfter is the longest pause that a store may ask for within a call. A
	// longer one ends the call with the store's error: waiting belongs to the duty's
	// schedule, which holds no lease, memory or connection meanwhile.
	MaxRetryAfter = 30 * time.Second
	// DefaultPartSize holds 160 GiB in the 10,000 parts an upload may have.
	DefaultPartSize = 16 << 20
	// DefaultConcurrency keeps an upload within (4+1) x 16 MiB of memory.
	DefaultConcurrency = 4
)

// Config holds the tunables of a Store. Zero fields take the defaults above.
type Config struct {
	Attempts    int           // tries per call
	Backoff     time.Duration // first pause; doubled, with full jitter, up to MaxBackoff
	CallTimeout time.Duration // deadline of one attempt, its body included; five times as long for copied parts and completes
	// TotalTimeout is the deadline of one call with all its attempts, pauses and
	// read-backs, so that it ends although its ctx has no deadline. A Writer's parts
	// and its complete are calls of their own. Default: ten times CallTimeout, 10 min.
	TotalTimeout time.Duration
	PartSize     int64 // bytes of a written part of an upload
	Concurrency  int   // parts in flight per upload

	Nonce func() string                              // names one write; default a random UUID
	Sleep func(context.Context, time.Duration) error // returns early, with its error, when ctx ends
	// Jitter picks a pause of 0 to window; default at random.
	Jitter func(window time.Duration) time.Duration
}

func (c Config) withDefaults() Config {
	if c.Attempts == 0 {
		c.Attempts = DefaultAttempts
	}
	if c.Backoff == 0 {
		c.Backoff = DefaultBackoff
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	if c.TotalTimeout == 0 {
		c.TotalTimeout = totalTimeouts * c.CallTimeout
	}
	if c.PartSize == 0 {
		c.PartSize = DefaultPartSize
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Nonce == nil {
		c.Nonce = uuid.NewString
	}
	if c.Jitter == nil {
		c.Jitter = jitter
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	return c
}

// Validate refuses values that cannot be meant.
func (c Config) Validate() error {
	var errs []error
	if c.Attempts < 0 {
		errs = append(errs, fmt.Errorf("attempts %d: give 1 or more", c.Attempts))
	}
	if c.Backoff < 0 || c.Backoff > MaxBackoff {
		errs = append(errs, fmt.Errorf("backoff %v: give 0 to %v", c.Backoff, MaxBackoff))
	}
	if c.CallTimeout < 0 {
		errs = append(errs, fmt.Errorf("call timeout %v: give a positive one", c.CallTimeout))
	}
	if c.TotalTimeout < c.CallTimeout {
		errs = append(errs, fmt.Errorf("total timeout %v: give at least the call timeout, %v", c.TotalTimeout, c.CallTimeout))
	}
	if c.PartSize < 0 || c.PartSize > maxPart {
		errs = append(errs, fmt.Errorf("part size %d: give 1 to %d", c.PartSize, int64(maxPart)))
	}
	if c.Concurrency < 0 {
		errs = append(errs, fmt.Errorf("concurrency %d: give 1 or more", c.Concurrency))
	}
	if len(errs) == 0 {
		return nil
	}
	return &Error{Op: "configure", Key: "store", Kind: ErrInvalid, Err: errors.Join(errs...)}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

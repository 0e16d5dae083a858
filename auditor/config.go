package auditor

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/probe"
)

const (
	// DefaultInterval between looks for due markers: what a grace of seconds needs,
	// and a query or two a second for a catalog.
	DefaultInterval = 2 * time.Second
	// DefaultLease of a taken marker: longer than a usual pass, short enough that a
	// dead auditor's work is soon taken again. A pass that outlives it is safe.
	DefaultLease = 30 * time.Second
	// DefaultConcurrency is how many duties, and how many markers of a duty, are
	// worked on at once.
	DefaultConcurrency = 4
	// DefaultBackoff is the first pause of a failed marker, doubled by attempt.
	DefaultBackoff = time.Second
	// DefaultBackoffMax keeps a broken marker to a few looks an hour.
	DefaultBackoffMax = 10 * time.Minute
	// DefaultSweepEvery is the design's "daily".
	DefaultSweepEvery = 24 * time.Hour
	// DefaultAbsorbEvery is the pace of looks at chains without a living owner: a GET
	// each, and a successor absorbs by itself.
	DefaultAbsorbEvery = 30 * time.Second
	// DefaultRetentionEvery is the pace of plans for chains without an owner, a query or
	// two each: nothing but garbage waits for them.
	DefaultRetentionEvery = time.Minute
	// DefaultConsumerHoldMax is how many bytes of slots a slow consumer holds back.
	DefaultConsumerHoldMax = 64 << 30
	// MaxLinger is the most that Once waits by default for what is due soon.
	MaxLinger = 5 * time.Second
)

// Config holds the tunables. Zero fields take the defaults.
type Config struct {
	Interval        time.Duration
	Lease           time.Duration
	Batch           int // markers a take; at most a bulk delete's worth
	Concurrency     int
	Backoff         time.Duration
	BackoffMax      time.Duration
	SweepEvery      time.Duration
	AbsorbEvery     time.Duration
	RetentionEvery  time.Duration
	Sweep           bool // reclaim settled keys that nothing watches
	DryRun          bool // delete and change nothing; say what would go
	ConsumerHoldMax int64
	// GCLeast dead bytes, and half of the object, are worth a rewrite.
	GCLeast int64
	// Duties to run; empty: all.
	Duties []string
}

func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, DefaultInterval)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.Batch = cmp.Or(c.Batch, orphan.BatchMax)
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.Backoff = cmp.Or(c.Backoff, DefaultBackoff)
	c.BackoffMax = cmp.Or(c.BackoffMax, max(DefaultBackoffMax, c.Backoff))
	c.SweepEvery = cmp.Or(c.SweepEvery, DefaultSweepEvery)
	c.AbsorbEvery = cmp.Or(c.AbsorbEvery, DefaultAbsorbEvery)
	c.RetentionEvery = cmp.Or(c.RetentionEvery, DefaultRetentionEvery)
	c.ConsumerHoldMax = cmp.Or(c.ConsumerHoldMax, DefaultConsumerHoldMax)
	c.GCLeast = cmp.Or(c.GCLeast, probe.DefaultGCLeast)
	return c
}

// Validate refuses values that cannot be meant, all at once.
func (c Config) Validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("auditor: "+format, args...))
		}
	}
	refuse(c.Interval < 0, "interval %v: give a positive one", c.Interval)
	refuse(c.Lease < 0 || c.Lease > 0 && c.Lease < time.Second, "lease %v: give 1s or more", c.Lease)
	refuse(c.Batch < 0 || c.Batch > orphan.BatchMax, "batch %d: give 1 to %d", c.Batch, orphan.BatchMax)
	refuse(c.Concurrency < 0, "concurrency %d: give 1 or more", c.Concurrency)
	refuse(c.Backoff < 0 || c.BackoffMax < 0 || c.BackoffMax > 0 && c.BackoffMax < c.Backoff,
		"back-off %v up to %v: give positive, ascending ones", c.Backoff, c.BackoffMax)
	refuse(c.AbsorbEvery < 0, "absorb-every %v: give a positive one", c.AbsorbEvery)
	refuse(c.RetentionEvery < 0, "retention-every %v: give a positive one", c.RetentionEvery)
	refuse(c.SweepEvery < 0, "sweep-every %v: give a positive one", c.SweepEvery)
	refuse(c.GCLeast < 0, "gc-least %d: give a positive number of bytes", c.GCLeast)
	refuse(c.ConsumerHoldMax < 0, "consumer-hold-max %d: give a positive number of bytes", c.ConsumerHoldMax)
	for _, d := range c.Duties {
		refuse(!known(d), "duty %q: known are %v", d, dutyNames())
	}
	return errors.Join(errs...)
}

// Linger is how long Once waits by default for markers that come due: what two
// phases of a short grace take, and never long on a usual one.
func Linger(readGrace time.Duration) time.Duration { return min(3*readGrace, MaxLinger) }

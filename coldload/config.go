package coldload

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the tunables; the zero value of a field means its default.
type Config struct {
	// PlanRefs is the number of refs of one plan. More means fewer queries and
	// more memory (about 300 B each).
	PlanRefs int
	// Window is how many ranged GETs are under way or waiting to be delivered.
	Window int
	// MemoryBytes bounds what is fetched and decoded ahead of the reader. A single
	// chunk that is larger (at most 64 MiB raw) still passes, alone.
	MemoryBytes int64
	// TotalBytes bounds the same for all reads of a Reader that are under way: each has an
	// equal share of it, MemoryBytes at most and leastShare at least. A server's reads are
	// as many as its clients like.
	TotalBytes int64
	// GapBytes: ranges of one object this near each other come in one GET. A
	// request costs about as much as reading this much.
	GapBytes int64
	// FetchBytes caps one ranged GET, so that long runs are read in parallel.
	FetchBytes int64
	// Footers is the number of footers kept for the time of a plan.
	Footers int
	// Replans bounds how often one position is planned again without progress.
	Replans int
	// ScanRefs is how many refs a shard scan merges at once.
	ScanRefs int
	// Clock is the monotonic clock that plans are aged by.
	Clock func() time.Time
}

// The defaults.
const (
	DefaultPlanRefs    = 512
	DefaultWindow      = 8
	DefaultMemoryBytes = 96 << 20
	DefaultTotalBytes  = 512 << 20
	DefaultGapBytes    = 256 << 10
	DefaultFetchBytes  = 8 << 20
	DefaultFooters     = 32
	DefaultReplans     = 5
	DefaultScanRefs    = 16384
)

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	setInt := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	setBytes := func(p *int64, v int64) {
		if *p == 0 {
			*p = v
		}
	}
	setInt(&c.PlanRefs, DefaultPlanRefs)
	setInt(&c.Window, DefaultWindow)
	setInt(&c.Footers, DefaultFooters)
	setInt(&c.Replans, DefaultReplans)
	setInt(&c.ScanRefs, DefaultScanRefs)
	setBytes(&c.MemoryBytes, DefaultMemoryBytes)
	setBytes(&c.TotalBytes, max(DefaultTotalBytes, c.MemoryBytes))
	setBytes(&c.GapBytes, DefaultGapBytes)
	setBytes(&c.FetchBytes, DefaultFetchBytes)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var errs []error
	bad := func(ok bool, name string, v any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: %s is %v, want %s", ErrConfig, name, v, want))
		}
	}
	bad(c.PlanRefs >= 2 && c.PlanRefs <= 100_000, "plan refs", c.PlanRefs, "2 to 100,000")
	bad(c.Window >= 1 && c.Window <= 1024, "window", c.Window, "1 to 1024")
	bad(c.Footers >= 1 && c.Footers <= 10_000, "footers", c.Footers, "1 to 10,000")
	bad(c.Replans >= 1 && c.Replans <= 100, "replans", c.Replans, "1 to 100")
	bad(c.ScanRefs >= 2 && c.ScanRefs <= 1_000_000, "scan refs", c.ScanRefs, "2 to 1,000,000")
	bad(c.MemoryBytes >= leastShare, "memory", c.MemoryBytes, "at least 1 MiB")
	bad(c.TotalBytes >= c.MemoryBytes, "total memory", c.TotalBytes, "at least that of one read")
	bad(c.GapBytes >= 0, "gap", c.GapBytes, "at least 0")
	bad(c.FetchBytes >= 64<<10, "fetch", c.FetchBytes, "at least 64 KiB")
	return errors.Join(errs...)
}

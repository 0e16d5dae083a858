package telemetry

import (
	"context"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/objcache/instance"
	"github.com/strandline/strandline/internal/otlp"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
)

// Sources are what a process gives to be looked at. A nil one is not there, and its
// metrics are not served. Each may be called at any time, by several at once, and asks
// neither the bucket nor the catalog, but for Chains.
type Sources struct {
	// Ready is what /readyz says.
	Ready func() error
	// Writer of the epoch that is served now; it may return nil.
	Writer func() Shards
	Disk   *Disk
	// OTLP is what came in.
	OTLP func() otlp.Counts
	// RewritingHeld is why the auditor rewrites nothing for want of room; "": it does.
	RewritingHeld func() string
	// Auditor is its summary so far.
	Auditor func() auditor.Summary
	// Chains is the one verb that a scrape may cost; it is asked at most every 15 seconds.
	Chains func(ctx context.Context) ([]catalog.ChainRow, error)
	// Pool of the catalog's connections.
	Pool func() catalog.Pool
	// Stores are all that this process asks. Several around one bucket are one store.
	Stores func() []*objstore.Store
	Cache  func() instance.Stats
}

// Shards is what is read of a writer; a *localtier.Writer is one.
type Shards interface {
	Status() []localtier.ShardStatus
	Quarantined() (int64, error)
}

// Disk is where a writer's segments are, and when it is full.
type Disk struct {
	Dir           string
	MinFree       int64 // negative: not checked
	QuarantineMax int64
	// Left are the shards of which it has unpublished rows that nobody serves, and the rows;
	// nil: none.
	Left func() (shards int, rows uint64)
}

// Watch gives the process's sources, once it has them.
func (p *Provider) Watch(s Sources) { p.sources.Store(&s) }

// age of a moment; 0 for none, and for one that a clock has not reached.
func age(now, at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(now.Sub(at).Seconds(), 0)
}

// stamp of a moment, as Prometheus has it; 0 for none.
func stamp(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMilli()) / 1000
}

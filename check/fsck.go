package check

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Catalog is what a walk reads.
type Catalog interface {
	catalog.Inspector
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
	Chains(ctx context.Context) ([]catalog.ChainRow, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error)
	Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error)
	Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error)
	Intent(ctx context.Context, key string) (catalog.Intent, error)
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error)
	DeadRefs(ctx context.Context, c segment.Chain, limit int) (refs []catalog.Ref, more bool, err error)
	ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error)
	Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error)
}

// Config of a walk.
type Config struct {
	// Page is how many catalog rows are read at once. Default 1,000.
	Page int
	// MaxFindings caps each list of the report. Default 10,000.
	MaxFindings int
	// Deep reads and decodes every chunk that a live ref needs: stored digest, CRC, frames,
	// seqs, row sums. Without it only footers are read.
	Deep bool
	// Settled holds the deployment to I5 besides: duties ran dry, so nothing may wait.
	Settled bool
	// Sample looks into one object in so many, by a hash of its key: 0 and 1 into all,
	// below 0 into none. That a named object stands is seen in the listing all the same.
	Sample int
	// Concurrency is how many objects are looked into at once. Default 1, which keeps
	// the calls in one order.
	Concurrency int
	// Progress is told after every object, if set.
	Progress func(objects, bytes int64)
}

// deepAtOnce bounds the objects that are read whole at once: each takes up to the raw
// bytes of a chunk and a read of chunks, some 72 MiB.
const deepAtOnce = 3

// refsAtOnce bounds the refs held by looks under way: a slot may have 50,000.
const refsAtOnce = 100_000

func (c Config) withDefaults() Config {
	if c.Page == 0 {
		c.Page = 1000
	}
	if c.MaxFindings == 0 {
		c.MaxFindings = 10_000
	}
	c.Concurrency = max(c.Concurrency, 1)
	if c.Deep {
		c.Concurrency = min(c.Concurrency, deepAtOnce)
	}
	return c
}

// Fsck walks the whole deployment once.
func Fsck(ctx context.Context, cat Catalog, classes objstore.Classes, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	w := &walk{
		cat: cat, classes: classes, cfg: cfg, report: &Report{Garbage: []GarbageItem{}, Damage: []DamageItem{}},
		passed: map[string]bool{},
		held:   semaphore.NewWeighted(refsAtOnce),
	}
	steps := []func(context.Context) error{w.begin, w.heads, w.chainRows, w.buckets, w.uploads, w.streams, w.reclaims}
	if cfg.Settled {
		steps = append(steps, w.settled)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	w.report.judge()
	return w.report, nil
}

// walk is one run of Fsck.
type walk struct {
	cat     Catalog
	classes objstore.Classes
	cfg     Config
	mu      sync.Mutex // report, while objects are looked into at once
	report  *Report
	passed  map[string]bool     // under mu: what was told as unreadable
	held    *semaphore.Weighted // refs of looks under way
	now     time.Time
	grace   time.Duration // orphan grace
	chains  map[segment.Chain]catalog.ChainRow
	epochs  map[segment.Epoch]segment.Class
	settles map[segment.Epoch]bool
}

func (w *walk) begin(ctx context.Context) error {
	settings, err := w.cat.Settings(ctx)
	if err != nil {
		return fmt.Errorf("read the catalog's settings: %w", err)
	}
	if w.now, err = w.cat.Now(ctx); err != nil {
		return err
	}
	w.grace = settings.OrphanGrace.Deleting(w.now, catalog.DefaultOrphanGrace)
	return w.cursors(ctx)
}

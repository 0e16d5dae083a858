package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
)

// Options of a catalog. The zero value is a sound one.
type Options struct {
	// Clock is the catalog's clock; nil is time.Now.
	Clock func() time.Time
	// WindowRefs is for tests: what catalog.MaxWindowRefs is, if it is not 0.
	WindowRefs int
	// Skip names guards that are not asked: planted faults, for the simulator's test of
	// itself. Nil plants none.
	Skip map[Guard]bool
}

// Catalog implements catalog.Catalog. Every verb is one critical section.
type Catalog struct {
	clock      func() time.Time
	skip       map[Guard]bool
	windowRefs int

	mu       sync.Mutex
	closed   bool    // under mu
	t        *tables // under mu
	changes  uint64  // under mu
	sessions int     // under mu: how many ended
}

var _ catalog.Catalog = (*Catalog)(nil)

// New is an empty catalog.
func New(opt Options) *Catalog {
	c := &Catalog{clock: opt.Clock, skip: map[Guard]bool{}, windowRefs: cmp.Or(max(opt.WindowRefs, 0), catalog.MaxWindowRefs), t: newTables()}
	if c.clock == nil {
		c.clock = time.Now
	}
	for g, on := range opt.Skip {
		c.skip[g] = on
	}
	return c
}

// Close waits for verbs under way; those that come after it are ErrUnavailable.
func (c *Catalog) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

// Changes counts the writing verbs that happened: while it stands still, so do the rows.
func (c *Catalog) Changes() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// tx is what a verb works with: the tables, and the one moment at which it judges all
// ages.
type tx struct {
	*tables
	now  time.Time
	skip map[Guard]bool
}

// read runs fn on the rows as they stand.
func (c *Catalog) read(ctx context.Context, verb string, fn func(*tx) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.begin(ctx, verb)
	if err != nil {
		return err
	}
	return typed(verb, fn(&t))
}

// write runs fn, and takes back all that it wrote if it fails.
func (c *Catalog) write(ctx context.Context, verb string, fn func(*tx) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.begin(ctx, verb)
	if err != nil {
		return err
	}
	was := t.scalars
	if err := fn(&t); err != nil {
		for _, x := range t.all {
			x.rollback()
		}
		t.scalars = was
		return typed(verb, err)
	}
	for _, x := range t.all {
		x.commit()
	}
	c.changes++
	return nil
}

func (c *Catalog) begin(ctx context.Context, verb string) (tx, error) {
	if c.closed {
		return tx{}, fmt.Errorf("%w: the catalog is closed", catalog.ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return tx{}, typed(verb, err)
	}
	if err := catalog.CheckSession(ctx, verb, c.session); err != nil {
		return tx{}, err
	}
	return tx{tables: c.t, now: plain(c.clock()), skip: c.skip}, nil
}

// typed gives the error of a context that is over its kind, as every catalog does.
func typed(verb string, err error) error {
	if err != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("%w: %s: %w", catalog.ErrUnavailable, verb, err)
	}
	return err
}

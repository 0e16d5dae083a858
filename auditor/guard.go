package auditor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
)

// guard decides before each deleting pass whether deletes may go on at all, by the clocks and
// the buckets' stamps; gate says the rest.
type guard struct {
	cat     catalog.Catalog
	classes objstore.Classes
	clock   func() time.Time
	log     *slog.Logger

	mu     sync.Mutex // state, stamps
	state  clockState
	stamps stampState
}

// allow looks at the clocks. why is empty if deletes may go on; an error is a
// clock that could not be read, which forbids them too.
func (g *guard) allow(ctx context.Context) (why string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := reading{before: g.clock()}
	if r.database, err = g.cat.Now(ctx); err != nil {
		return "", fmt.Errorf("read the database's clock: %w", err)
	}
	r.after = g.clock()
	settings, err := g.cat.Settings(ctx)
	if err != nil {
		return "", fmt.Errorf("read the read grace: %w", err)
	}
	grace := settings.ReadGrace.Deleting(r.database, catalog.DefaultReadGrace)
	held := g.state.heldUntil
	g.state, why = judgeClock(g.state, r, grace)
	return why, g.say(ctx, held, why, grace)
}

// errHeld: a clock stepped since the pass began.
var errHeld = errors.New("deletes are held for one grace")

// still looks at the clocks once more, right before a request that deletes: what the pass
// read as due may have been read after a step.
func (g *guard) still(ctx context.Context) error {
	why, err := g.allow(ctx)
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s", errHeld, why)
	}
	return err
}

// observeStore holds the time that the store gave a write against the database's
// around it.
func (g *guard) observeStore(ctx context.Context, store, before, after time.Time) error {
	settings, err := g.cat.Settings(ctx)
	if err != nil {
		return err
	}
	grace := settings.ReadGrace.Deleting(after, catalog.DefaultReadGrace)
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.state.heldUntil
	var why string
	g.state, why = judgeStore(g.state, write{store, before, after}, g.clock(), grace)
	return g.say(ctx, held, why, grace)
}

// say tells of a hold once. g.mu is held.
func (g *guard) say(ctx context.Context, before time.Time, why string, grace time.Duration) error {
	if why == "" || g.state.heldUntil.Equal(before) {
		return nil
	}
	g.log.Error("deletes stop for one grace: check the clocks (NTP) of the database, the store and this machine", "why", why, "grace", grace)
	return g.cat.Audit(ctx, "clock", "auditor", why+": no delete for one grace: check the clocks")
}

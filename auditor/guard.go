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
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// guard decides before each deleting pass whether deletes may go on at all.
type guard struct {
	cat     catalog.Catalog
	classes objstore.Classes
	clock   func() time.Time
	log     *slog.Logger

	mu     sync.Mutex // state, heads, stamps
	state  clockState
	heads  headState
	stamps stampState
}

// headState is the last look at all chains' heads.
type headState struct {
	at  time.Time
	err error
}

// headsFresh bounds how long a look at the heads is believed: a fail-over that loses commits
// gives no sign of its own. So it is also an eighth of the grace at most, for a catalog may
// lose less than one grace (03 §0).
const (
	headsFresh      = 10 * time.Second
	headsFreshShare = 8
)

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

// rolledBack looks at every chain's head: a catalog that was rolled back may have
// forgotten refs of settled objects, whichever chain their rows are of. The error
// says what to do; nil means that deletes may go on.
func (g *guard) rolledBack(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	if fresh, err := g.headsFresh(ctx, now); fresh || err != nil {
		return err
	}
	g.heads = headState{at: now, err: g.checkHeads(ctx)}
	return g.heads.err
}

// headsFresh says that the last look will do. g.mu is held.
func (g *guard) headsFresh(ctx context.Context, now time.Time) (bool, error) {
	age := now.Sub(g.heads.at)
	if g.heads.at.IsZero() || g.heads.err != nil || age >= headsFresh {
		return false, nil //nolint:nilerr // the look is made again; this error was the answer of the one before
	}
	settings, err := g.cat.Settings(ctx)
	if err != nil {
		return false, fmt.Errorf("read the read grace: %w", err)
	}
	return age < settings.ReadGrace.Deleting(now, catalog.DefaultReadGrace)/headsFreshShare, nil
}

func (g *guard) checkHeads(ctx context.Context) error {
	topologies, err := g.cat.Topologies(ctx)
	if err != nil {
		return err
	}
	rows, err := g.cat.Chains(ctx)
	if err != nil {
		return err
	}
	classes := map[segment.Epoch]segment.Class{}
	for i := range topologies {
		classes[topologies[i].Epoch] = topologies[i].Class
	}
	var errs []error
	away := map[segment.Class]bool{} // of these the first look was in vain, and a second waits as long
	for i := range rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		class, ok := classes[rows[i].Epoch]
		if !ok {
			errs = append(errs, catalog.NoTopology(rows[i].Epoch))
			continue
		}
		if away[class] {
			continue
		}
		err := g.checkHead(ctx, class, rows[i].Chain)
		away[class] = errors.Is(err, objstore.ErrUnavailable)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// headPatience bounds the look at one head: absorbs of all classes wait for it, and a bucket
// that hangs would hold each of them up for as long as a call to a store may take.
const headPatience = 10 * time.Second

func (g *guard) checkHead(ctx context.Context, class segment.Class, chain segment.Chain) error {
	set, err := g.classes.Set(string(class))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, headPatience, fmt.Errorf("the bucket of class %s did not answer within %v", class, headPatience))
	defer cancel()
	return reap.CheckHead(ctx, set.First(), g.cat, chain)
}

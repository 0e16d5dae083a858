package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// pulse looks again and again whether catalog and buckets answer, so that a probe costs no
// request, however often it comes.
type pulse struct {
	look  func(ctx context.Context) error
	every time.Duration
	// patience is how long ago the last good look may be; it is asked anew each time.
	patience func() time.Duration
	clock    func() time.Time

	mu   sync.Mutex // last, err
	last time.Time  // the last good look
	err  error      // of the latest look
}

// lookTime bounds one look.
const lookTime = 10 * time.Second

// errNotReached is why a process is not ready.
var errNotReached = errors.New("catalog or bucket not reached")

func newPulse(look func(ctx context.Context) error, every time.Duration, patience func() time.Duration) *pulse {
	p := &pulse{look: look, every: every, patience: patience, clock: time.Now}
	p.last = p.clock() // the start has just reached them
	return p
}

// run looks until ctx ends.
func (p *pulse) run(ctx context.Context) error {
	t := time.NewTicker(p.every)
	defer t.Stop()
	for {
		p.once(ctx)
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *pulse) once(ctx context.Context) {
	bound, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	begun := p.clock()
	err := p.look(bound)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err == nil {
		p.last = begun
	}
}

// ready is nil while the last good look is recent. A look that hangs counts as none; one that
// met a schema which this build does not know is no matter of time.
func (p *pulse) ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.err, catalog.ErrNewer) {
		return p.err // nothing that patience mends
	}
	age := p.clock().Sub(p.last)
	if age <= p.patience() {
		return nil
	}
	err := p.err
	if err == nil {
		err = errors.New("the latest look has not ended yet")
	}
	return fmt.Errorf("%w for %v: %w; what this process serves goes on by itself once they answer", errNotReached, age.Round(time.Second), err)
}

// answers says whether the catalog answers, and of each class a bucket with the right stamp.
func (t *tier) answers(ctx context.Context) error {
	settings, err := t.catalog.Settings(ctx)
	if err != nil {
		return fmt.Errorf("the catalog: %w", err)
	}
	for _, class := range sorted(t.classes) {
		var errs []error
		for _, store := range t.classes[class] {
			if err = mine(ctx, store, settings.Deployment); err == nil {
				break
			}
			errs = append(errs, err)
		}
		if err != nil {
			return fmt.Errorf("class %s: %w", class, errors.Join(errs...))
		}
	}
	return nil
}

// mine says whether a bucket answers, and is still this deployment's.
func mine(ctx context.Context, store *objstore.Store, deployment segment.UUID) error {
	stamp, _, found, err := check.Stamp(ctx, store)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: %s has no stamp any more; look at the bucket", check.ErrNotMine, store.Name())
	case stamp.Deployment != deployment:
		return fmt.Errorf("%w: %s has the stamp of %s now; look at the bucket", check.ErrNotMine, store.Name(), stamp.Deployment)
	}
	return nil
}

// readGrace is the grace in force, as of the last look that could read it.
type readGrace struct {
	catalog interface {
		Settings(ctx context.Context) (catalog.Settings, error)
		Now(ctx context.Context) (time.Time, error)
	}
	mu    sync.Mutex // value
	value time.Duration
}

func (g *readGrace) read(ctx context.Context) error {
	settings, err := g.catalog.Settings(ctx)
	if err != nil {
		return fmt.Errorf("the catalog: %w", err)
	}
	now, err := g.catalog.Now(ctx)
	if err != nil {
		return fmt.Errorf("the catalog: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.value = settings.ReadGrace.Deleting(now, catalog.DefaultReadGrace)
	return nil
}

func (g *readGrace) get() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value
}

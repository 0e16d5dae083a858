package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
)

// errLeaseLost ends a pass: another settler works on this chain, or serves this marker.
var errLeaseLost = errors.New("the lease of this duty is another's: leave it to that one")

// lease is the one lease of a duty on a chain or a marker, renewed while a batch is under
// way. A stalled process loses it; what it does afterwards the commits refuse.
type lease struct {
	cat    Leases
	holder catalog.Holder
	length time.Duration
	clock  func() time.Time

	mu sync.Mutex
	at time.Time // when it was last taken; mu
}

func (l *lease) take(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lock(ctx)
}

// renew takes the lease again once a third of it is over.
func (l *lease) renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock().Sub(l.at) < l.length/3 {
		return nil
	}
	return l.lock(ctx)
}

// hold renews the lease from time to time until ctx ends; losing it ends the batch.
func (l *lease) hold(ctx context.Context, lost context.CancelCauseFunc) {
	tick := time.NewTicker(l.length / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Another error than "lost" is not yet one: the next tick asks again.
		if err := l.take(ctx); errors.Is(err, errLeaseLost) {
			lost(err)
			return
		}
	}
}

// lock asks the catalog. l.mu is held.
func (l *lease) lock(ctx context.Context) error {
	now := l.clock()
	err := again(ctx, func() error { return l.cat.LeaseDuty(ctx, l.holder, l.length) })
	if errors.Is(err, catalog.ErrConflict) {
		return fmt.Errorf("%w: %w", errLeaseLost, err)
	}
	if err == nil {
		l.at = now
	}
	return err
}

// release ends the lease. A cancelled ctx starts no mutation: then it runs out.
func (l *lease) release(ctx context.Context) error {
	var err error
	if ctx.Err() == nil {
		err = l.cat.ReleaseDuty(ctx, l.holder)
	}
	for _, kind := range []error{catalog.ErrConflict, catalog.ErrNotFound, catalog.ErrAmbiguous} {
		if errors.Is(err, kind) {
			err = nil // it is another's already, or over, or runs out by itself
		}
	}
	return err
}

// again calls a verb until its outcome is known: ErrAmbiguous means that the
// answer was lost, and calling it again finds out.
func again(ctx context.Context, verb func() error) error {
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return context.Cause(ctx) // a cancelled ctx starts no mutation
		}
		err := verb()
		if !errors.Is(err, catalog.ErrAmbiguous) || try == maxTries {
			return err
		}
	}
}

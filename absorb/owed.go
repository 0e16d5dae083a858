package absorb

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/strandline/strandline/objstore"
)

// maxOwed bounds the copies that an owner remembers; those beyond it are the auditor's.
const maxOwed = 4096

// Owed are the copies that a chain's owner could not make yet. They are remembered in
// memory only: what a crash forgets, Mend finds. A nil Owed remembers nothing.
type Owed struct {
	mu    sync.Mutex
	queue []owedCopy // oldest first
	more  chan struct{}
}

type owedCopy struct {
	to  *objstore.Store
	key string
}

// NewOwed is an empty one.
func NewOwed() *Owed { return &Owed{more: make(chan struct{}, 1)} }

// behind says that a bucket misses earlier copies.
func (o *Owed) behind(to *objstore.Store) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.queue {
		if c.to == to {
			return true
		}
	}
	return false
}

func (o *Owed) add(to *objstore.Store, key string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	if len(o.queue) < maxOwed {
		o.queue = append(o.queue, owedCopy{to, key})
	}
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// Len is how many are owed.
func (o *Owed) Len() int {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
}

// More is readable when something came to be owed. It is nil, and never readable, of a
// nil Owed.
func (o *Owed) More() <-chan struct{} {
	if o == nil {
		return nil
	}
	return o.more
}

// Pay makes the copies that are owed, the oldest of each bucket first. A bucket that
// fails is left for the next call, and holds up no other; all failures are returned.
func (o *Owed) Pay(ctx context.Context, cat Catalog, b Bucket) error {
	var errs []error
	for _, to := range b.others() {
		for key, ok := o.first(to); ok; key, ok = o.first(to) {
			if ctx.Err() != nil {
				return errors.Join(append(errs, context.Cause(ctx))...)
			}
			if _, err := mendOne(ctx, cat, b, to, key); err != nil {
				errs = append(errs, err)
				break
			}
			o.paid(owedCopy{to, key})
		}
	}
	return errors.Join(errs...)
}

func (o *Owed) first(to *objstore.Store) (key string, ok bool) {
	if o == nil {
		return "", false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.queue {
		if c.to == to {
			return c.key, true
		}
	}
	return "", false
}

func (o *Owed) paid(done owedCopy) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, c := range o.queue {
		if c == done {
			o.queue = append(o.queue[:i], o.queue[i+1:]...)
			return
		}
	}
}

// mendOne makes one copy of a slot that was absorbed without it, unless it stands. A slot
// that is not in the first bucket any more was trimmed meanwhile, or is lost, which fsck
// tells: there is nothing to copy.
func mendOne(ctx context.Context, cat Catalog, b Bucket, to *objstore.Store, key string) (made bool, err error) {
	made, differs, err := copyTo(ctx, b.Set.First(), to, key)
	var source *sourceError
	switch {
	case errors.As(err, &source) && errors.Is(err, objstore.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("copy %s to %s: %w", key, to.Name(), err)
	case differs:
		return false, reportDiffers(ctx, cat, b, to, key)
	}
	return made, nil
}

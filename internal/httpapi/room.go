package httpapi

import (
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// Bodies is the memory that appends under way take in a process, MaxBodiesBytes in all: one
// for all Handlers that it makes, one after another.
type Bodies struct{ free *semaphore.Weighted }

// NewBodies holds nothing yet.
func NewBodies() *Bodies { return &Bodies{semaphore.NewWeighted(MaxBodiesBytes)} }

// room is what one request holds of it.
type room struct {
	of   *semaphore.Weighted
	held int64
}

// errBusy: no room for this body just now.
var errBusy = errors.New("too many requests under way")

// grow makes the room hold n bytes in all.
func (r *room) grow(n int64) error {
	if n <= r.held {
		return nil
	}
	if !r.of.TryAcquire(n - r.held) {
		return fmt.Errorf("%w: there is no room for %d bytes more of a body beside those under way (%d bytes in all); send it again, or in several",
			errBusy, n-r.held, int64(MaxBodiesBytes))
	}
	r.held = n
	return nil
}

// shrink gives back what is held beyond n bytes.
func (r *room) shrink(n int64) {
	if n < r.held {
		r.of.Release(r.held - n)
		r.held = n
	}
}

func (r *room) release() { r.shrink(0) }

package sim

import (
	"context"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// isBurned says whether a key's object may be there no more, and never again: the row of
// its intent says so until nobody can derive the key.
func (s *Sim) isBurned(key string) bool {
	in, err := s.cat.Intent(context.Background(), key)
	return err == nil && in.State == catalog.IntentBurned
}

// mayComeAgain says that a key may get other bytes once its object is gone from a bucket: nobody
// knows any more that it had some, or a writer who was overtaken sends its own so late that
// the bucket lost the slot meanwhile, or is having it deleted (K1).
func (s *Sim) mayComeAgain(key string) bool {
	if s.isBurned(key) || s.back.condemned(key) || s.beingDeleted(key) {
		return true
	}
	return slices.ContainsFunc(s.buckets, func(b *bucket) bool { return b.taken[key] })
}

// beingDeleted says that a slot is condemned: of a set, one bucket may have it no more.
func (s *Sim) beingDeleted(key string) bool {
	k, err := segment.ParseKey(key)
	if err != nil || k.Kind != segment.KeySlot {
		return false
	}
	row, err := s.cat.Chain(context.Background(), k.Chain)
	return err == nil && k.ID < row.Condemned
}

// standsAsItWas says that a bucket of the set still has the object.
func (s *Sim) standsAsItWas(key string, old *content) bool {
	return slices.ContainsFunc(s.buckets, func(b *bucket) bool {
		body, _, ok := b.body(key)
		return ok && digest(body) == old.digest
	})
}

package sim

import (
	"context"
	"slices"

	"github.com/strandline/strandline/catalog"
)

// isBurned says whether a key's object may be there no more, and never again: the row of
// its intent says so until nobody can derive the key.
func (s *Sim) isBurned(key string) bool {
	in, err := s.cat.Intent(context.Background(), key)
	return err == nil && in.State == catalog.IntentBurned
}

// mayComeAgain says that a key may get other bytes once its object is gone: nobody knows any
// more that it had some.
func (s *Sim) mayComeAgain(key string) bool {
	if s.isBurned(key) {
		return true
	}
	return s.back.condemned(key) || s.back.happened() && slices.ContainsFunc(s.buckets, func(b *bucket) bool { return b.taken[key] })
}

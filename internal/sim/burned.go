package sim

import (
	"context"

	"github.com/strandline/strandline/catalog"
)

// isBurned says whether a key's object may be there no more, and never again: the row of
// its intent says so until nobody can derive the key.
func (s *Sim) isBurned(key string) bool {
	in, err := s.cat.Intent(context.Background(), key)
	return err == nil && in.State == catalog.IntentBurned
}

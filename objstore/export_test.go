package objstore

import (
	"context"
	"iter"
)

// ListSortedIn is ListSorted with another window.
func (s *Store) ListSortedIn(ctx context.Context, prefix string, window int) iter.Seq2[Info, error] {
	return s.listSorted(ctx, prefix, window)
}

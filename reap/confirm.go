package reap

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
)

// confirm is the first phase. A marker that was armed since its take keeps its
// arm: it is due, and looked at anew.
func (r *Reaper) confirm(ctx context.Context, m catalog.Marker) (Outcome, error) {
	err := r.cat.Confirm(ctx, m.MarkerRef)
	if errors.Is(err, catalog.ErrConflict) {
		return ArmedSince, r.cat.Postpone(ctx, m.MarkerRef, 0, "") // ends our lease on it
	}
	// Crash here: the confirmed marker stands one grace out, and its probe looks again.
	return Confirmed, err
}

// bury ends the watch over an object that is gone. If a delete of ours explains
// it, the key is burned as that delete would have done; else it is recorded.
func (r *Reaper) bury(ctx context.Context, m catalog.Marker) (Outcome, error) {
	intent, err := r.cat.Intent(ctx, m.ID)
	switch {
	case err == nil && intent.State == catalog.IntentCondemned:
		return GoneBefore, r.cat.BurnKey(ctx, []string{m.ID})
	case err == nil: // burned before, or announced and never made
		return GoneBefore, r.cat.Resolve(ctx, m.MarkerRef)
	case !errors.Is(err, catalog.ErrNotFound):
		return "", fmt.Errorf("bury %s: %w", m.ID, err)
	}
	if err := r.cat.Audit(ctx, "gone", m.ID, "no object stands there and no delete of ours explains it; no ref names it"); err != nil {
		return "", err
	}
	return GoneAlone, r.cat.Resolve(ctx, m.MarkerRef)
}

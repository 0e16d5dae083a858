package reap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/segment"
)

// WalkOutcome of one stream's teardown.
type WalkOutcome string

// The outcomes.
const (
	WalkDone  WalkOutcome = "done"        // no ref wholly below live_from is left; resolved
	WalkArmed WalkOutcome = "armed since" // trimmed further during the run; stays due
	WalkDry   WalkOutcome = "dry run"
)

// WalkCatalog is what the teardown needs of the catalog.
type WalkCatalog interface {
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
	AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error
	WalkStream(ctx context.Context, streamID int64, limit int) (catalog.WalkPage, error)
	ArmWatchers(ctx context.Context, refs []catalog.Ref) error
	RetireRefs(ctx context.Context, refs []catalog.Ref) (int, error)
	Resolve(ctx context.Context, m catalog.MarkerRef) error
	Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error
}

// Walker runs teardowns: after a stream's live_from rose, its dead refs are retired.
type Walker struct {
	cat     WalkCatalog
	classes objstore.Classes
	del     *orphan.Deleter
}

// NewWalker wires a walker; del only says whether this is a dry run.
func NewWalker(cat WalkCatalog, classes objstore.Classes, del *orphan.Deleter) *Walker {
	return &Walker{cat: cat, classes: classes, del: del}
}

// WalkResult is what became of one teardown marker. With an Err the marker stands.
type WalkResult struct {
	Marker  catalog.Marker
	Outcome WalkOutcome
	Retired int
	Err     error
}

const (
	// walkPage is how many refs are retired between two looks.
	walkPage = 1000
	// walkStuck is how many pages in a row may retire nothing, because their refs
	// changed since they were read.
	walkStuck = 5
)

// RunOnce takes due teardowns that the caller holds: their trims are journaled in
// batches first, then each is walked. One stream's fault stops no other's walk.
func (w *Walker) RunOnce(ctx context.Context, markers []catalog.Marker) []WalkResult {
	results := make([]WalkResult, len(markers))
	streams := make([]catalog.Stream, len(markers))
	var found []catalog.Stream
	for i, m := range markers {
		results[i].Marker = m
		page, err := w.page(ctx, m, 1)
		streams[i], results[i].Err = page.Stream, err
		if err == nil {
			found = append(found, page.Stream)
		}
	}
	if w.del.Dry() {
		for i := range results {
			results[i].Outcome = WalkDry
		}
		return results
	}
	failed := w.journal(ctx, found)
	for i := range results {
		res := &results[i]
		if res.Err == nil {
			res.Err = failed[streams[i].ID]
		}
		if res.Err == nil {
			res.Err = w.walk(ctx, streams[i], res)
		}
	}
	return results
}

// page reads one page of a marker's stream.
func (w *Walker) page(ctx context.Context, m catalog.Marker, limit int) (catalog.WalkPage, error) {
	id, err := catalog.ParseStreamID(m.ID)
	if err != nil {
		return catalog.WalkPage{}, err
	}
	return w.cat.WalkStream(ctx, id, limit)
}

// walk retires the dead refs of one stream, page by page.
func (w *Walker) walk(ctx context.Context, journaled catalog.Stream, res *WalkResult) error {
	for stuck := 0; stuck < walkStuck; {
		page, err := w.page(ctx, res.Marker, walkPage)
		if err != nil {
			return fmt.Errorf("walk %q: %w", journaled.Name, err)
		}
		if page.Stream.LiveFrom != journaled.LiveFrom {
			res.Outcome = WalkArmed // that trim's own run journals it first
			return w.cat.Postpone(ctx, res.Marker.MarkerRef, 0, "")
		}
		if err := w.armPage(ctx, page); err != nil {
			return fmt.Errorf("walk %q: arm: %w", journaled.Name, err)
		}
		// Crash here: watchers without a death. The probe finds live spans and stands
		// down; one GET. The next walk derives the page again from what stands.
		n, err := w.retirePage(ctx, page)
		if err != nil {
			return fmt.Errorf("walk %q: retire: %w", journaled.Name, err)
		}
		res.Retired += n
		if !page.More && n == len(page.Dead) {
			// Crash here: nothing is left to walk; the next run resolves.
			res.Outcome = WalkDone
			return w.cat.Resolve(ctx, res.Marker.MarkerRef)
		}
		if stuck++; n > 0 {
			stuck = 0
		}
	}
	return fmt.Errorf("%w: walk of %q: its refs changed under %d pages in a row: walked again later", catalog.ErrConflict, journaled.Name, walkStuck)
}

// armPage arms every watcher of a page, and of the object that straddles, before
// any ref of it is retired: no object is left without one.
func (w *Walker) armPage(ctx context.Context, page catalog.WalkPage) error {
	refs := slices.Clone(page.Dead)
	if page.Straddle != nil {
		refs = append(refs, *page.Straddle)
	}
	if len(refs) == 0 {
		return nil
	}
	return w.cat.ArmWatchers(ctx, refs)
}

// retirePage retires the page's dead refs, each only as it was seen.
func (w *Walker) retirePage(ctx context.Context, page catalog.WalkPage) (int, error) {
	if len(page.Dead) == 0 {
		return 0, nil
	}
	n, err := w.cat.RetireRefs(ctx, page.Dead)
	if errors.Is(err, catalog.ErrConflict) {
		return 0, nil // read again
	}
	return n, err
}

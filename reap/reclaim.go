package reap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/segment"
)

// ReclaimOutcome of one chain's reclaim.
type ReclaimOutcome string

// The outcomes.
const (
	ReclaimDone ReclaimOutcome = "done" // no ref wholly below the watermark is left; resolved
	ReclaimDry  ReclaimOutcome = "dry run"
)

// ReclaimReport is one run of a chain's reclaim.
type ReclaimReport struct {
	Outcome    ReclaimOutcome
	Watermark  segment.Seq // that this run reclaimed up to
	Retired    int         // refs wholly at or below it
	Straddling int         // refs that it cuts in two, whose objects are watched now
}

// ReclaimCatalog is what the reclaim needs of the catalog.
type ReclaimCatalog interface {
	HeadCatalog
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	DeadRefs(ctx context.Context, c segment.Chain, limit int) (refs []catalog.Ref, more bool, err error)
	StraddlingRefs(ctx context.Context, c segment.Chain, after *catalog.Ref, limit int) (refs []catalog.Ref, more bool, err error)
	ArmWatchers(ctx context.Context, refs []catalog.Ref) error
	RetireRefs(ctx context.Context, refs []catalog.Ref) (int, error)
	Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error
	Resolve(ctx context.Context, m catalog.MarkerRef) error
}

// Reclaimer retires what a chain's watermark gave up (03 §9 step 4).
type Reclaimer struct {
	cat     ReclaimCatalog
	classes objstore.Classes
	del     *orphan.Deleter
	page    int
}

// NewReclaimer wires a reclaimer; of del it needs the gate, and whether this is a dry run.
func NewReclaimer(cat ReclaimCatalog, classes objstore.Classes, del *orphan.Deleter) *Reclaimer {
	return &Reclaimer{cat: cat, classes: classes, del: del, page: walkPage}
}

// RunOnce takes one chain's due reclaim through its steps. It deletes no object: the
// watchers that it arms do, each after its grace. An error leaves the marker standing,
// and the next run goes on with what is left.
func (r *Reclaimer) RunOnce(ctx context.Context, m catalog.Marker) (ReclaimReport, error) {
	var rep ReclaimReport
	chain, err := catalog.ParseChainID(m.ID)
	if err != nil {
		return rep, err
	}
	at, err := placeOf(ctx, r.cat, r.classes, chain)
	if err != nil {
		return rep, err
	}
	// The row before the head is written: what this run gives up is in the head.
	row, err := r.cat.Chain(ctx, chain)
	if err != nil {
		return rep, err
	}
	rep.Watermark = row.WatermarkSeq
	if r.del.Dry() {
		return rep, r.dryRun(ctx, at, &rep)
	}
	for _, step := range []func(context.Context, place, *ReclaimReport) error{r.writeHead, r.retire, r.straddling, r.armTrim} {
		if err := step(ctx, at, &rep); err != nil {
			return rep, fmt.Errorf("reclaim %s: %w", chain, err)
		}
	}
	rep.Outcome = ReclaimDone
	// At the version that was taken: one that a higher watermark armed meanwhile stays.
	return rep, r.cat.Resolve(ctx, m.MarkerRef)
}

// writeHead says in the bucket what is given up, before any ref of it goes: a rebuild
// brings nothing of it back. A head ahead of the row stops here, as WriteHead finds it:
// the catalog was rolled back.
func (r *Reclaimer) writeHead(ctx context.Context, at place, _ *ReclaimReport) error {
	// Crash before or after the write: the watermark stands in the row, the marker with
	// it. A head that is behind is fine, and written by the next run.
	_, err := at.writeHead(ctx, r.del, r.cat, nil)
	return err
}

// retire goes page by page: every watcher of a page is armed before any ref of it goes.
func (r *Reclaimer) retire(ctx context.Context, at place, rep *ReclaimReport) error {
	for stuck := 0; stuck < walkStuck; {
		refs, more, err := r.cat.DeadRefs(ctx, at.chain, r.page)
		if err != nil {
			return err
		}
		// The watermark may have been raised since the head was written: what lies
		// above this run's is the next run's.
		refs, more = upTo(refs, more, rep.Watermark)
		if len(refs) == 0 {
			return nil
		}
		if err := r.cat.ArmWatchers(ctx, refs); err != nil {
			return fmt.Errorf("arm: %w", err)
		}
		// Crash here: watchers without a death. The probe finds the refs and stands
		// down, or the refs are gone by then. The next run reads the page again.
		n, err := r.cat.RetireRefs(ctx, refs)
		if err != nil && !errors.Is(err, catalog.ErrConflict) {
			return fmt.Errorf("retire: %w", err)
		}
		rep.Retired += n
		if !more && n == len(refs) {
			return nil
		}
		if stuck++; n > 0 {
			stuck = 0
		}
	}
	return fmt.Errorf("%w: refs changed under %d pages in a row: reclaimed again later", catalog.ErrConflict, walkStuck)
}

// upTo cuts a page, which is in the order of last rows, at the watermark.
func upTo(refs []catalog.Ref, more bool, w segment.Seq) ([]catalog.Ref, bool) {
	for i := range refs {
		if refs[i].Last > w {
			return refs[:i], false
		}
	}
	return refs, more
}

// straddling arms the reap-checks of settled objects that the watermark cuts: a part of
// them is dead now, and may be worth a rewrite.
func (r *Reclaimer) straddling(ctx context.Context, at place, rep *ReclaimReport) error {
	var after *catalog.Ref
	for {
		refs, more, err := r.cat.StraddlingRefs(ctx, at.chain, after, r.page)
		if err != nil {
			return err
		}
		if len(refs) > 0 {
			if err := r.cat.ArmWatchers(ctx, refs); err != nil {
				return fmt.Errorf("arm: %w", err)
			}
			rep.Straddling += len(refs)
			after = &refs[len(refs)-1]
		}
		if !more || len(refs) == 0 {
			return nil
		}
	}
}

// armTrim: the slots that lost their last refs, and where nothing settles all slots up
// to the watermark, go by the trim-check, one grace out as every arm of it.
func (r *Reclaimer) armTrim(ctx context.Context, at place, _ *ReclaimReport) error {
	now, err := r.cat.Now(ctx)
	if err != nil {
		return err
	}
	settings, err := r.cat.Settings(ctx)
	if err != nil {
		return err
	}
	// Crash after it: nothing is left to retire; the next run comes here again.
	return r.cat.Arm(ctx, catalog.DutyTrimCheck, catalog.ChainID(at.chain), "", settings.ReadGrace.Deleting(now, catalog.DefaultReadGrace))
}

// dryRun tells of the objects whose refs would be retired, a page of them.
func (r *Reclaimer) dryRun(ctx context.Context, at place, rep *ReclaimReport) error {
	if err := CheckHead(ctx, at.set.First(), r.cat, at.chain); err != nil {
		return err
	}
	refs, _, err := r.cat.DeadRefs(ctx, at.chain, r.page)
	if err != nil {
		return err
	}
	rep.Outcome = ReclaimDry
	seen := map[string]bool{}
	for i := range refs {
		if ref := &refs[i]; ref.Key != "" && !seen[ref.Key] {
			seen[ref.Key] = true
			r.del.Stays(ref.Class, ref.Key, fmt.Sprintf("its refs up to seq %d are retired first; then a grace has to pass", rep.Watermark))
		}
	}
	return nil
}

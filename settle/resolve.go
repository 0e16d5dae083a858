package settle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// resolve is step 6. The markers of members that failed are put off with the
// reason, so that their slots hold up nobody; then the catalog resolves those of
// all slots that no ref names any more.
func (s *Settler) resolve(ctx context.Context, chain segment.Chain, slots []catalog.StandingSlot, outs []*outcome) (int, error) {
	markers := make([]catalog.MarkerRef, len(slots))
	for i := range slots {
		markers[i] = slots[i].Marker.MarkerRef
	}
	var resolved int
	err := again(ctx, func() (err error) {
		resolved, err = s.Catalog.ResolveSettled(ctx, chain, markers)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("resolve %d slots: %w", len(slots), err)
	}
	// A crash here leaves the failed members' markers due: they are tried again at
	// once instead of later.
	if len(outs) == 0 && resolved < len(slots) {
		// Nothing of these slots is live, and yet refs name them: the walk of a trim has
		// still to retire those, and makes the markers due then.
		return resolved, s.postpone(ctx, slots, func(*catalog.StandingSlot) error { return errWalk })
	}
	cause := causes(outs)
	return resolved, s.postpone(ctx, slots, func(slot *catalog.StandingSlot) error {
		return cause[segment.SlotKey(slot.Chain, slot.ID)]
	})
}

// errWalk is why a slot without live rows waits.
var errWalk = errors.New("its last refs are dead and wait for the walk of a trim or teardown")

// causes gives the first reason why a slot, by key, still owes its settle.
func causes(outs []*outcome) map[string]error {
	out := make(map[string]error)
	for _, o := range outs {
		for _, f := range o.failed {
			f.member.each(func(r *catalog.Ref) {
				if out[r.Key] == nil {
					out[r.Key] = fmt.Errorf("stream %q: %w", r.Stream, f.err)
				}
			})
		}
	}
	return out
}

func (s *Settler) postpone(ctx context.Context, slots []catalog.StandingSlot, cause func(*catalog.StandingSlot) error) error {
	for i := range slots {
		slot := &slots[i]
		why := cause(slot)
		if why == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		in := objstore.Backoff(slot.Marker.Attempts, s.cfg.Backoff, s.cfg.BackoffMax, why)
		s.Logger.Warn("a slot's settle is put off", "chain", catalog.ChainID(slot.Chain), "segment", uint64(slot.ID), "in", in, "cause", why)
		err := s.Catalog.Postpone(ctx, slot.Marker.MarkerRef, in, cut(why.Error()))
		switch {
		case err == nil, errors.Is(err, catalog.ErrConflict), errors.Is(err, catalog.ErrNotFound):
			// Armed or resolved meanwhile: not ours any more.
		case errors.Is(err, catalog.ErrAmbiguous):
			// Put off or due: either way it is looked at again.
		default:
			return fmt.Errorf("put off slot %d: %w", slot.ID, err)
		}
	}
	return nil
}

// cut keeps the beginning of a reason.
func cut(why string) string {
	if len(why) <= maxCause {
		return why
	}
	return strings.ToValidUTF8(why[:maxCause], "") + " …"
}

package reap

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/probe"
)

// spool is the delete list of one pass. Only a condemn puts a key on it.
type spool struct {
	mu      sync.Mutex // both, while the pass acts
	rights  []orphan.Right
	results []*Result // of each right
}

func (s *spool) add(right orphan.Right, res *Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rights, s.results = append(s.rights, right), append(s.results, res)
}

// condemn is the second phase's transaction. Lost, no delete follows (K12).
func (r *Reaper) condemn(ctx context.Context, res *Result, sp *spool) {
	right, err := orphan.Condemn(ctx, r.cat, res.Marker)
	if errors.Is(err, catalog.ErrConflict) {
		// A ref names it (and is dead: the teardown owes its retirement), an intent
		// stands (the judge relieves it), or it was armed since.
		res.Outcome, res.Err = Refused, fmt.Errorf("%s is not condemned: %w", res.Marker.ID, err)
		return
	}
	if err != nil {
		res.Err = err
		return
	}
	sp.add(right, res)
}

// flush deletes what was spooled and burns what is proven gone.
func (r *Reaper) flush(ctx context.Context, sp *spool) {
	rights, byKey, err := r.recheck(ctx, sp)
	if err != nil {
		for _, res := range sp.results {
			res.Err = errors.Join(res.Err, fmt.Errorf("pass ended without a delete: %w", err))
		}
		return
	}
	dead, failed := orphan.Delete(ctx, r.del, rights)
	for _, f := range failed {
		byKey[f.Key].Err = fmt.Errorf("delete %s: %w", f.Key, f.Err)
	}
	// Crash here: condemned keys without objects; their markers probe gone and burn.
	err = orphan.Burn(ctx, r.cat, dead)
	for _, d := range dead {
		if err != nil {
			byKey[d.Key()].Err = fmt.Errorf("burn %s: %w", d.Key(), err)
			continue
		}
		byKey[d.Key()].Outcome = Reaped
	}
}

// recheck looks at the whole list once more, right before it goes: a condemned key
// that a ref names breaks the catalog's promise. It is dropped, counted and
// recorded (K4). A look that fails ends the pass.
func (r *Reaper) recheck(ctx context.Context, sp *spool) ([]orphan.Right, map[string]*Result, error) {
	byKey := make(map[string]*Result, len(sp.rights))
	keep := make([]orphan.Right, 0, len(sp.rights))
	for i, right := range sp.rights {
		res := sp.results[i]
		byKey[right.Key()] = res
		refs, err := r.cat.Liveness(ctx, right.Key())
		if err != nil {
			return nil, nil, &probe.RefsError{Key: right.Key(), Err: err}
		}
		if len(refs) == 0 {
			keep = append(keep, right)
			continue
		}
		res.Outcome = Dropped
		res.Err = &probe.DamageError{Key: right.Key(), Reason: fmt.Sprintf("condemned, yet a ref of stream %q names it: it is kept", refs[0].Stream)}
		if err := r.cat.Audit(ctx, "damage", right.Key(), res.Err.Error()); err != nil {
			res.Err = errors.Join(res.Err, err)
		}
	}
	return keep, byKey, nil
}

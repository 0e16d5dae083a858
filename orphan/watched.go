package orphan

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// seeKeys lists a bucket and returns the settled keys that nothing watches. All
// other unwatched or unknown keys are only reported.
func (s *Sweeper) seeKeys(ctx context.Context, store *objstore.Store, class segment.Class, seen view, r *SweepReport) ([]strayKey, error) {
	var out []strayKey
	for info, err := range store.List(ctx, "", "") {
		if err != nil {
			return nil, fmt.Errorf("sweep keys of %s: %w", store.Name(), err)
		}
		r.Objects++
		k, perr := segment.ParseKey(info.Key)
		if perr != nil {
			r.Unknown++
			r.found(Found{store.Name(), info.Key, info.Size, "a key of unknown shape: not ours to touch"})
			continue
		}
		reason, err := s.unwatched(ctx, k, info, seen)
		if err != nil {
			return nil, fmt.Errorf("sweep %s: %w", info.Key, err)
		}
		if reason == "" {
			continue
		}
		r.Unwatched++
		r.found(Found{store.Name(), info.Key, info.Size, reason})
		if settled(info.Key) && len(out) < maxFound { // the next sweep finds the rest
			out = append(out, strayKey{info.Key, class})
		}
	}
	return out, nil
}

func (s *Sweeper) chains(ctx context.Context) (map[segment.Chain]catalog.ChainRow, error) {
	rows, err := s.cat.Chains(ctx)
	if err != nil {
		return nil, err
	}
	known := make(map[segment.Chain]catalog.ChainRow, len(rows))
	for i := range rows {
		known[rows[i].Chain] = rows[i]
	}
	return known, nil
}

// unwatched says why nothing watches a key, or "". Each shape has its one owner
// (K15); a slot below trimmed is the stray duty's.
func (s *Sweeper) unwatched(ctx context.Context, k segment.Key, info objstore.Info, seen view) (string, error) {
	switch k.Kind {
	case segment.KeySlot, segment.KeyHead, segment.KeyTrim:
		if _, known := seen.chains[k.Chain]; !known {
			return "the catalog has no such chain: was it rolled back?", nil
		}
		return "", nil
	case segment.KeyStamp, segment.KeyTopology:
		return "", nil
	case segment.KeyDoctor:
		if info.Modified.After(seen.old) {
			return "", nil // one may be at work
		}
		return "left by a doctor that was stopped: the next strandline doctor takes it along", nil
	}
	if info.Modified.After(seen.old) {
		return "", nil
	}
	watched, err := s.watched(ctx, info.Key)
	if err != nil || watched {
		return "", err
	}
	return "neither a ref, an intent nor a marker names it", nil
}

// watched asks in the order of an object's life: intent, ref, marker, burned
// intent. What moves on during the look is met at its next stage.
func (s *Sweeper) watched(ctx context.Context, key string) (bool, error) {
	if ok, err := s.announced(ctx, key); ok || err != nil {
		return ok, err
	}
	refs, err := s.cat.Liveness(ctx, key)
	if err != nil || len(refs) > 0 {
		return len(refs) > 0, err
	}
	if ok, err := s.marked(ctx, key); ok || err != nil {
		return ok, err
	}
	return s.announced(ctx, key)
}

func (s *Sweeper) announced(ctx context.Context, key string) (bool, error) {
	_, err := s.cat.Intent(ctx, key)
	if errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// marked looks for the key's reap-check.
func (s *Sweeper) marked(ctx context.Context, key string) (bool, error) {
	_, err := s.cat.Marker(ctx, catalog.DutyReapCheck, key)
	if errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

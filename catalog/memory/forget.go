package memory

import (
	"context"
	"math"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// RemoveIntent forgets a burned key that nobody can derive any more (03 §8 step 4).
func (c *Catalog) RemoveIntent(ctx context.Context, key string) (removed bool, err error) {
	err = c.write(ctx, "RemoveIntent", func(t *tx) error {
		if err := t.checkKinds("RemoveIntent"); err != nil {
			return err
		}
		in := t.intentOf(key)
		if in == nil {
			removed = true
			return nil
		}
		if in.State != catalog.IntentBurned {
			return catalog.Conflict("RemoveIntent", "state of "+key, catalog.IntentBurned, in.State)
		}
		again, derivable := in.Changed.Add(catalog.BurnDelay), true
		if !t.now.Before(again) {
			again = t.now.Add(catalog.BurnDelay)
			if derivable, err = t.derivable(key); err != nil {
				return err
			}
		}
		if removed = !derivable; removed {
			t.dropIntent(key)
			return nil
		}
		t.arm(catalog.DutyOrphan, key, in.Class, again.Sub(t.now))
		return nil
	})
	if err != nil {
		return false, err
	}
	return removed, nil
}

// derivable says whether a job might come to this key again. Of keys whose shape
// nothing here derives, nobody knows: they stay.
func (t *tx) derivable(key string) (bool, error) {
	k, err := segment.ParseKey(key)
	switch {
	case err != nil:
		return true, nil //nolint:nilerr // an unknown shape is kept, not an error
	case k.Kind == segment.KeyStream:
		return t.streamKeyDerivable(k)
	case k.Kind == segment.KeyPack:
		return t.packKeyDerivable(k), nil
	}
	return true, nil
}

func (t *tx) streamKeyDerivable(k segment.Key) (bool, error) {
	for _, id := range t.streamsOfKey(k) {
		r, ok := t.ref.get(refKey{id, k.Chain.Epoch, k.First})
		if !ok {
			continue
		}
		l, err := t.live(r)
		if err != nil {
			return true, err
		}
		if catalog.StreamKeyDerivable(k, &l.Ref, l.LiveFrom) {
			return true, nil
		}
	}
	return false, nil
}

// streamsOfKey: a long name stands in the key as its hash only.
func (t *tx) streamsOfKey(k segment.Key) (ids []int64) {
	if k.Stream != "" {
		if s, ok := t.streamName.get(k.Stream); ok && k.IsOf(s.Name) {
			ids = append(ids, s.ID)
		}
		return ids
	}
	for h := range t.streamHash.from(hashKey{k.StreamHash, math.MinInt64}) {
		if h.hash != k.StreamHash {
			break
		}
		if s, ok := t.stream.get(h.id); ok && k.IsOf(s.Name) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func (t *tx) packKeyDerivable(k segment.Key) bool {
	row, ok := t.chain.get(k.Chain)
	if !ok {
		return true
	}
	// Packs that begin in the range, all revisions of each.
	to := segment.PackKey(k.Chain, k.LastID, math.MaxUint64, 0) + "\x7f"
	var others []segment.Key
	for r := range t.objectsFrom(segment.PackKey(k.Chain, k.ID, k.ID, 0)) {
		if r.Key >= to {
			break
		}
		if o, err := segment.ParseKey(r.Key); err == nil {
			others = append(others, o)
		}
	}
	return catalog.PackKeyDerivable(k, row, others)
}

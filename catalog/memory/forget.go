package memory

import (
	"context"
	"math"
	"time"

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
		var again time.Duration
		removed, again, err = catalog.ForgetIntent(in, t.now, catalog.Deriving{Stream: t.streamKeyDerivable, Pack: t.packKeyDerivable})
		switch {
		case err != nil:
			return err
		case removed:
			t.dropIntent(key)
		default:
			t.arm(catalog.DutyOrphan, key, in.Class, again)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	return removed, nil
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

func (t *tx) packKeyDerivable(k segment.Key) (bool, error) {
	row, ok := t.chain.get(k.Chain)
	if !ok {
		return true, nil
	}
	from, to := catalog.PacksIn(k)
	var others []segment.Key
	for r := range t.objectsFrom(from) {
		if r.Key >= to {
			break
		}
		if o, err := segment.ParseKey(r.Key); err == nil {
			others = append(others, o)
		}
	}
	return catalog.PackKeyDerivable(k, row, others), nil
}

package postgres

import (
	"context"
	"math"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// RemoveIntent forgets a burned key that nobody can derive any more (03 §8 step 4). It
// holds the intent's row; that nobody derives the key again stays true once it is.
func (d *DB) RemoveIntent(ctx context.Context, key string) (removed bool, err error) {
	err = d.write(ctx, "RemoveIntent", func(t *tx) error {
		t.askKinds("RemoveIntent")
		have := t.askIntent(key, " FOR UPDATE")
		if err := t.flush(); err != nil {
			return err
		}
		in := have.in
		if in == nil {
			removed = true
			return nil
		}
		if in.State != catalog.IntentBurned {
			return catalog.Conflict("RemoveIntent", "state of "+key, catalog.IntentBurned, in.State)
		}
		again := in.Changed.Add(catalog.BurnDelay)
		derivable := true
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
		return t.packKeyDerivable(k)
	}
	return true, nil
}

// streamKeyDerivable looks at the refs that begin at the key's first row, in the streams
// that it may be of: a long name stands in the key as its hash only.
func (t *tx) streamKeyDerivable(k segment.Key) (bool, error) {
	where, arg := "s.name = $1::bytea", any([]byte(k.Stream))
	if k.Stream == "" {
		where, arg = "s.hash = $1::text AND s.hash <> ''", k.StreamHash
	}
	derivable := false
	err := t.query("SELECT "+refCols+" FROM stream s JOIN ref r ON r.stream = s.id LEFT JOIN object o ON o.id = r.object"+
		" LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard WHERE "+where+" AND r.epoch = $2::int8 AND r.first = $3", func(scan column.Scan) error {
		l, err := scanRef(scan)
		if err == nil && k.IsOf(l.Stream) && catalog.StreamKeyDerivable(k, &l.Ref, l.LiveFrom) {
			derivable = true
		}
		return err
	}, arg, int64(k.Chain.Epoch), int64(k.First))
	return derivable || err != nil, err
}

func (t *tx) packKeyDerivable(k segment.Key) (bool, error) {
	stands := t.askChain(k.Chain, "")
	// Packs that begin in the range, all revisions of each.
	from, to := segment.PackKey(k.Chain, k.ID, k.ID, 0), segment.PackKey(k.Chain, k.LastID, math.MaxUint64, 0)
	var others []segment.Key
	t.ask("SELECT key FROM object WHERE key >= $1 AND key < $2", func(scan column.Scan) error {
		var s string
		if err := scan(&s); err != nil {
			return err
		}
		if o, err := segment.ParseKey(s); err == nil {
			others = append(others, o)
		}
		return nil
	}, from, to+"\x7f")
	if err := t.flush(); err != nil {
		return true, err
	}
	if !stands.found {
		return true, nil
	}
	return catalog.PackKeyDerivable(k, &stands.row, others), nil
}

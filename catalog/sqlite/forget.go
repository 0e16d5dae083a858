package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// RemoveIntent forgets a burned key that nobody can derive any more (03 §8 step 4).
func (d *DB) RemoveIntent(ctx context.Context, key string) (removed bool, err error) {
	err = d.write(ctx, "RemoveIntent", func(t *tx) error {
		if err := t.checkKinds("RemoveIntent"); err != nil {
			return err
		}
		in, err := t.intent(key)
		if err != nil {
			return err
		}
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
			return t.dropIntent(key)
		}
		return t.arm(catalog.DutyOrphan, key, in.Class, again)
	})
	if err != nil {
		return false, err
	}
	return removed, nil
}

func (t *tx) streamKeyDerivable(k segment.Key) (bool, error) {
	streams, err := t.streamsOfKey(k)
	if err != nil {
		return true, err
	}
	for _, id := range streams {
		at, err := t.refs(selectRefs+"WHERE r.stream = ? AND r.epoch = ? AND r.first = ?", id, k.Chain.Epoch, int64(k.First))
		if err != nil {
			return true, err
		}
		if len(at) == 1 && catalog.StreamKeyDerivable(k, &at[0].Ref, at[0].LiveFrom) {
			return true, nil
		}
	}
	return false, nil
}

// streamsOfKey: a long name stands in the key as its hash only.
func (t *tx) streamsOfKey(k segment.Key) (ids []int64, err error) {
	where, arg := "name = ?", k.Stream
	if k.Stream == "" {
		where, arg = "hash = ? AND hash <> ''", k.StreamHash
	}
	err = t.query("SELECT id, name FROM stream WHERE "+where, func(scan column.Scan) error {
		var id int64
		var name string
		err := scan(&id, &name)
		if k.IsOf(name) {
			ids = append(ids, id)
		}
		return err
	}, arg)
	return ids, err
}

func (t *tx) packKeyDerivable(k segment.Key) (bool, error) {
	row, err := t.chain(k.Chain)
	if errors.Is(err, catalog.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return true, err
	}
	from, to := catalog.PacksIn(k)
	var others []segment.Key
	err = t.query("SELECT key FROM object WHERE key >= ? AND key < ?", func(scan column.Scan) error {
		var s string
		if err := scan(&s); err != nil {
			return err
		}
		if o, err := segment.ParseKey(s); err == nil {
			others = append(others, o)
		}
		return nil
	}, from, to)
	return catalog.PackKeyDerivable(k, &row, others), err
}

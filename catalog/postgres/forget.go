package postgres

import (
	"context"
	"time"

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
	from, to := catalog.PacksIn(k)
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
	}, from, to)
	if err := t.flush(); err != nil {
		return true, err
	}
	if !stands.found {
		return true, nil
	}
	return catalog.PackKeyDerivable(k, &stands.row, others), nil
}

package sqlite

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// PackWindow is what a pack-merge may take.
func (d *DB) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (w catalog.PackWindow, err error) {
	if packs <= 0 {
		return w, catalog.Invalid("PackWindow", "%d packs", packs)
	}
	err = d.read(ctx, "PackWindow", func(t *tx) (err error) {
		w, err = t.packWindow(c, generation, packBound{catalog.PageSize(packs), d.opt.WindowRefs})
		return err
	})
	return w, err
}

// packBound is what ends a window of packs.
type packBound struct{ packs, refs int }

func (t *tx) packWindow(c segment.Chain, generation uint32, bound packBound) (w catalog.PackWindow, err error) {
	w.Now, w.LiveFrom = t.now, map[int64]segment.Pos{}
	if w.Chain, err = t.chain(c); err != nil {
		return w, err
	}
	// As many again, should as many be passed over.
	keys, err := t.packs(c, generation, 2*bound.packs)
	if err != nil {
		return w, err
	}
	for _, key := range keys {
		if len(w.Packs) == bound.packs || len(w.Refs) >= bound.refs {
			break
		}
		live, err := t.packRefs(key, bound.refs)
		if err != nil {
			return w, err
		}
		if len(live) >= bound.refs {
			w.Passed = append(w.Passed, key)
			continue
		}
		w.Packs = append(w.Packs, key)
		for i := range live {
			w.Refs = append(w.Refs, live[i].Ref)
			w.LiveFrom[live[i].StreamID] = live[i].LiveFrom
		}
	}
	catalog.SortRefs(w.Refs)
	return w, nil
}

// packRefs are the live refs that name a pack, at most max of them.
func (t *tx) packRefs(key string, max int) (live []catalog.LiveRef, err error) {
	err = t.query("SELECT "+refCols+` FROM object o CROSS JOIN ref r ON r.object = o.id
 LEFT JOIN stream s ON s.id = r.stream LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard WHERE o.key = ?`, func(scan column.Scan) error {
		l, err := scanRef(scan)
		if err != nil || l.Dead(l.LiveFrom) {
			return err
		}
		if live = append(live, l); len(live) >= max {
			return errStop
		}
		return nil
	}, key)
	return live, err
}

// packs are the keys of a generation's packs that live refs name, in the order of their
// first slots, which is that of their keys. A dead pack's look ends with its refs, and
// the teardown that retires them is owed already.
func (t *tx) packs(c segment.Chain, generation uint32, limit int) (keys []string, err error) {
	// A chain's prefix ends in "/"; "0" is the byte behind it. The rest of such a key is
	// hex digits, "-" and "~".
	prefix := segment.PackChainPrefix(c)
	behind := prefix[:len(prefix)-1] + "0"
	err = t.query(`SELECT o.key FROM object o WHERE o.kind = 'pack' AND o.generation = ? AND o.key > ? AND o.key < ? AND EXISTS (
 SELECT 1 FROM ref r CROSS JOIN stream s ON s.id = r.stream CROSS JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard
 WHERE r.object = o.id AND (r.epoch, r.last) >= (s.live_epoch, s.live_seq) AND r.last > c.watermark_seq) ORDER BY o.key LIMIT ?`,
		func(scan column.Scan) error {
			var key string
			err := scan(&key)
			keys = append(keys, key)
			return err
		}, generation, prefix, behind, limit)
	return keys, err
}

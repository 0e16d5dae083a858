package sqlite

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// PackWindow is what a pack-merge may take.
func (d *DB) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (w catalog.PackWindow, err error) {
	if packs <= 0 {
		return w, catalog.Invalid("PackWindow", "%d packs", packs)
	}
	err = d.read(ctx, "PackWindow", func(t *tx) (err error) {
		w, err = t.packWindow(c, generation, packs)
		return err
	})
	return w, err
}

func (t *tx) packWindow(c segment.Chain, generation uint32, packs int) (w catalog.PackWindow, err error) {
	w.Now, w.LiveFrom = t.now, map[int64]segment.Pos{}
	if w.Chain, err = t.chain(c); err != nil {
		return w, err
	}
	if w.Packs, err = t.packs(c, generation, page(packs)); err != nil || len(w.Packs) == 0 {
		return w, err
	}
	keys, err := jsonArg(w.Packs)
	if err != nil {
		return w, err
	}
	live, err := t.refs("SELECT "+refCols+` FROM json_each(?) j CROSS JOIN object o ON o.key = j.value CROSS JOIN ref r ON r.object = o.id
 LEFT JOIN stream s ON s.id = r.stream LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard`, keys)
	for i := range live {
		if l := &live[i]; !l.Dead(l.LiveFrom) {
			w.Refs = append(w.Refs, l.Ref)
			w.LiveFrom[l.StreamID] = l.LiveFrom
		}
	}
	sortRefs(w.Refs)
	return w, err
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
		func(scan scanFunc) error {
			var key string
			err := scan(&key)
			keys = append(keys, key)
			return err
		}, generation, prefix, behind, limit)
	return keys, err
}

package postgres

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
		w, err = t.packWindow(c, generation, packBound{catalog.PageSize(packs), d.windowRefs})
		return err
	})
	return w, err
}

// packBound is what ends a window of packs.
type packBound struct{ packs, refs int }

func (t *tx) packWindow(c segment.Chain, generation uint32, bound packBound) (w catalog.PackWindow, err error) {
	w.LiveFrom = map[int64]segment.Pos{}
	stands := t.askChain(c, "")
	var keys []string
	// As many again, should as many be passed over.
	t.askPacks(c, generation, 2*bound.packs, func(key string) { keys = append(keys, key) })
	err = t.flush()
	w.Now = t.now
	if err != nil {
		return w, err
	}
	if w.Chain, err = stands.get(c); err != nil {
		return w, err
	}
	for _, key := range keys {
		if len(w.Packs) == bound.packs || len(w.Refs) >= bound.refs {
			break
		}
		var live []catalog.LiveRef
		t.askRefs(&live, naming+"WHERE o.key = $1 AND "+notDead+" LIMIT $2", key, int64(bound.refs))
		if err := t.flush(); err != nil {
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

// askPacks lists the keys of a generation's packs that live refs name, in the order of
// their first slots, which is that of their keys. A dead pack's look ends with its refs,
// and the teardown that retires them is owed already.
func (t *tx) askPacks(c segment.Chain, generation uint32, limit int, take func(string)) {
	// A chain's prefix ends in "/"; "0" is the byte behind it. The rest of such a key is
	// hex digits, "-" and "~".
	prefix := segment.PackChainPrefix(c)
	behind := prefix[:len(prefix)-1] + "0"
	t.ask(`SELECT o.key FROM object o WHERE o.kind = 'pack' AND o.generation = $1 AND o.key > $2 AND o.key < $3 AND EXISTS (
 SELECT 1 FROM ref r JOIN stream s ON s.id = r.stream JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard
 WHERE r.object = o.id AND (r.epoch, r.last) >= (s.live_epoch, s.live_seq) AND r.last > c.watermark_seq) ORDER BY o.key LIMIT $4`,
		func(scan column.Scan) error {
			var key string
			err := scan(&key)
			take(key)
			return err
		}, int64(generation), prefix, behind, int64(limit))
}

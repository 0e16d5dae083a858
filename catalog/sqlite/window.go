package sqlite

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// Window is a batch's worth of slots that owe a settle, and the live refs that name
// them.
func (d *DB) Window(ctx context.Context, c segment.Chain, maxBytes int64) (w catalog.Window, err error) {
	err = d.read(ctx, "Window", func(t *tx) (err error) {
		w, err = t.window(c, maxBytes, d.opt.WindowRefs)
		return err
	})
	return w, err
}

func (t *tx) window(c segment.Chain, maxBytes int64, maxRefs int) (w catalog.Window, err error) {
	w.Now, w.LiveFrom = t.now, map[int64]segment.Pos{}
	if w.Chain, err = t.chain(c); err != nil {
		return w, err
	}
	var bytes int64
	err = t.query("SELECT "+column.StandingSlots+` FROM slot s CROSS JOIN marker m ON m.duty = 'settle' AND m.id = printf('%08x.%08x.%016x', s.epoch, s.shard, s.id)
 WHERE s.epoch = ? AND s.shard = ? AND s.owed = 1 AND m.due <= ? ORDER BY s.id`, func(scan column.Scan) error {
		s, err := column.StandingSlot(scan)
		if err != nil {
			return err
		}
		n := len(w.Slots)
		if n == catalog.MaxWindowSlots || n > 0 && (s.ID != w.Slots[n-1].ID+1 || bytes+s.Bytes > maxBytes) {
			return errStop
		}
		bytes += s.Bytes
		w.Slots = append(w.Slots, s)
		return nil
	}, c.Epoch, c.Shard, column.Nanos(t.now))
	if err != nil || len(w.Slots) == 0 {
		return w, err
	}
	return w, t.windowRefs(&w, maxRefs)
}

// windowRefs reads the refs that name the window's slots, in one query, and ends both
// before the first slot that begins behind max refs.
func (t *tx) windowRefs(w *catalog.Window, max int) error {
	c := w.Chain.Chain
	var at segment.ID
	// Slots before objects before refs: each step by its index.
	err := t.query("SELECT "+refCols+`, w.id FROM slot w CROSS JOIN object o ON o.key = w.key CROSS JOIN ref r ON r.object = o.id
 LEFT JOIN stream s ON s.id = r.stream LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard
 WHERE w.epoch = ? AND w.shard = ? AND w.id BETWEEN ? AND ? ORDER BY w.id`, func(scan column.Scan) error {
		var id segment.ID
		l, err := scanRef(scan, &id)
		if err != nil || l.Dead(l.LiveFrom) {
			return err
		}
		if id != at && len(w.Refs) >= max {
			w.Slots = w.Slots[:id-w.Slots[0].ID] // they are consecutive
			return errStop
		}
		at = id
		w.Refs = append(w.Refs, l.Ref)
		w.LiveFrom[l.StreamID] = l.LiveFrom
		return nil
	}, c.Epoch, c.Shard, int64(w.Slots[0].ID), int64(w.Slots[len(w.Slots)-1].ID))
	catalog.SortRefs(w.Refs)
	return err
}

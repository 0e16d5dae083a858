package postgres

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
		w, err = t.window(c, maxBytes, d.windowRefs)
		return err
	})
	return w, err
}

// windowFirst is how many slots are asked for first: most windows have few.
const windowFirst = 64

func (t *tx) window(c segment.Chain, maxBytes int64, maxRefs int) (w catalog.Window, err error) {
	w.LiveFrom = map[int64]segment.Pos{}
	w.Chain, err = t.chain(c)
	w.Now = t.now
	if err != nil {
		return w, err
	}
	for _, limit := range []int{windowFirst, catalog.MaxWindowSlots + 1} {
		full, err := t.windowSlots(&w, maxBytes, limit)
		if err != nil {
			return w, err
		}
		if full {
			break
		}
	}
	if len(w.Slots) == 0 {
		return w, nil
	}
	return w, t.windowRefs(&w, maxRefs)
}

// windowSlots reads the window's slots, of the first limit that owe; full says that more
// would not change it.
func (t *tx) windowSlots(w *catalog.Window, maxBytes int64, limit int) (full bool, err error) {
	c := w.Chain.Chain
	w.Slots = nil
	var bytes int64
	seen := 0
	err = t.query("SELECT "+column.StandingSlots+` FROM slot s JOIN marker m ON m.duty = 'settle'
 AND m.id = lpad(to_hex(s.epoch), 8, '0') || '.' || lpad(to_hex(s.shard), 8, '0') || '.' || lpad(to_hex(s.id), 16, '0')
 WHERE s.epoch = $1::int8 AND s.shard = $2::int8 AND s.owed AND m.due <= $3 ORDER BY s.id LIMIT $4`, func(scan column.Scan) error {
		s, err := column.StandingSlot(scan)
		if err != nil {
			return err
		}
		seen++
		n := len(w.Slots)
		if n == catalog.MaxWindowSlots || n > 0 && (s.ID != w.Slots[n-1].ID+1 || bytes+s.Bytes > maxBytes) {
			full = true
			return errStop
		}
		bytes += s.Bytes
		w.Slots = append(w.Slots, s)
		return nil
	}, int64(c.Epoch), int64(c.Shard), column.Nanos(t.now), int64(limit))
	return full || seen < limit, err
}

// windowRefs reads the refs that name the window's slots, and ends both before the first
// slot that begins behind max refs. How many each slot has is asked first, so that none is
// read in vain.
func (t *tx) windowRefs(w *catalog.Window, max int) error {
	c := w.Chain.Chain
	const of = ` FROM slot w JOIN object o ON o.key = w.key JOIN ref r ON r.object = o.id` + streamJoin +
		`WHERE w.epoch = $1::int8 AND w.shard = $2::int8 AND w.id BETWEEN $3 AND $4 AND ` + notDead
	first, last := int64(w.Slots[0].ID), int64(w.Slots[len(w.Slots)-1].ID)
	refs := 0
	if len(w.Slots) > 1 {
		if err := t.query("SELECT w.id, count(*)"+of+" GROUP BY w.id ORDER BY w.id", func(scan column.Scan) error {
			var id segment.ID
			var n int
			if err := scan(&id, &n); err != nil {
				return err
			}
			if refs >= max {
				w.Slots = w.Slots[:id-w.Slots[0].ID] // they are consecutive
				last = int64(id) - 1
				return errStop
			}
			refs += n
			return nil
		}, int64(c.Epoch), int64(c.Shard), first, last); err != nil {
			return err
		}
	}
	err := t.query("SELECT "+refCols+of, func(scan column.Scan) error {
		l, err := scanRef(scan)
		w.Refs = append(w.Refs, l.Ref)
		w.LiveFrom[l.StreamID] = l.LiveFrom
		return err
	}, int64(c.Epoch), int64(c.Shard), first, last)
	catalog.SortRefs(w.Refs)
	return err
}

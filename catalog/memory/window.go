package memory

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Window is a batch's worth of slots that owe a settle, and the live refs that name
// them.
func (c *Catalog) Window(ctx context.Context, ch segment.Chain, maxBytes int64) (w catalog.Window, err error) {
	err = c.read(ctx, "Window", func(t *tx) (err error) {
		w, err = t.window(ch, maxBytes, c.windowRefs)
		return err
	})
	return w, err
}

func (t *tx) window(c segment.Chain, maxBytes int64, maxRefs int) (w catalog.Window, err error) {
	w.Now, w.LiveFrom = t.now, map[int64]segment.Pos{}
	if w.Chain, err = t.row(c); err != nil {
		return w, err
	}
	var bytes int64
	for k, s := range t.owed.from(slotKey{c, 0}) {
		n := len(w.Slots)
		if k.Chain != c || n == catalog.MaxWindowSlots {
			break
		}
		m, ok := t.marker.get(markerKey{catalog.DutySettle, catalog.SettleID(c, s.ID)})
		if !ok || t.now.Before(m.Due) {
			continue
		}
		if n > 0 && (s.ID != w.Slots[n-1].ID+1 || bytes+s.Bytes > maxBytes) {
			break
		}
		if len(w.Refs) >= maxRefs && t.hasLive(s.key) {
			break
		}
		bytes += s.Bytes
		w.Slots = append(w.Slots, catalog.StandingSlot{SlotRow: s.SlotRow, Marker: m.Marker})
		if w.Refs, err = t.liveNaming(s.key, w.Refs, w.LiveFrom); err != nil {
			return w, err
		}
	}
	catalog.SortRefs(w.Refs)
	return w, nil
}

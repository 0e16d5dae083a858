package memory

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// ResolveSettled ends the debts of slots that no ref names any more.
func (c *Catalog) ResolveSettled(ctx context.Context, ch segment.Chain, markers []catalog.MarkerRef) (resolved int, err error) {
	err = c.write(ctx, "ResolveSettled", func(t *tx) error {
		resolved, err = t.resolveSettled(ch, markers)
		return err
	})
	return resolved, err
}

func (t *tx) resolveSettled(c segment.Chain, markers []catalog.MarkerRef) (int, error) {
	row, err := t.row(c)
	if err != nil {
		return 0, err
	}
	ids, err := catalog.SettleSlots(c, markers)
	if err != nil {
		return 0, err
	}
	done := 0
	for i, m := range markers {
		if bytes, ok := t.settleDone(c, ids[i], m); ok {
			row.TransitBytes -= bytes
			done++
		}
	}
	if done == 0 {
		return 0, nil
	}
	row.TransitSince = time.Time{}
	for k, s := range t.owed.from(slotKey{c, 0}) {
		if k.Chain == c {
			row.TransitSince = s.Sealed
		}
		break
	}
	t.armTrim(c)
	return done, t.putChain(&row)
}

// settleDone ends one slot's debt: its marker stands at its version, it owes (a void
// one's parked marker never goes this way), and no ref names it. The lease of one
// that was armed meanwhile is given back.
func (t *tx) settleDone(c segment.Chain, id segment.ID, m catalog.MarkerRef) (bytes int64, ok bool) {
	have, at := t.at(m)
	if have == nil {
		return 0, false
	}
	s, stands := t.slot.get(slotKey{c, id})
	if !at || !stands || !s.owed || t.isNamed(s.key) {
		if have.leaseVersion != have.Version {
			t.release(have)
		}
		return 0, false
	}
	t.dropMarker(have)
	paid := *s
	paid.owed = false
	t.putSlot(&paid)
	return s.Bytes, true
}

package memory

import (
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// forgetSlots drops the slot rows that nobody needs any more.
func (t *tx) forgetSlots(row *catalog.ChainRow) {
	end := catalog.ForgottenSlots(row)
	var gone []*slotRow
	for k, s := range t.slot.from(slotKey{row.Chain, 0}) {
		if k.Chain != row.Chain || k.id >= end {
			break
		}
		gone = append(gone, s)
	}
	for _, s := range gone {
		t.dropSlot(s)
	}
}

// mergeSlots keeps few of the rows of slots that were trimmed from `from` on, where no
// policy plans with them; it begins with the last that stands before.
func (t *tx) mergeSlots(row *catalog.ChainRow, from segment.ID) error {
	top, err := t.ofChains(row.Epoch)
	if err != nil || !top.Retention.Keeps() {
		return err
	}
	end := catalog.TrimmedRows(row)
	var had []*slotRow
	for k, s := range t.slot.below(slotKey{row.Chain, min(from, end)}) {
		if k.Chain == row.Chain {
			had = append(had, s)
		}
		break
	}
	before := len(had)
	for k, s := range t.slot.from(slotKey{row.Chain, from}) {
		if k.Chain != row.Chain || k.id >= end {
			break
		}
		had = append(had, s)
	}
	if len(had) == before {
		return nil
	}
	t.joinSlots(had)
	return nil
}

// joinSlots puts what MergeTrimmed leaves of the rows in their place.
func (t *tx) joinSlots(had []*slotRow) {
	rows := make([]catalog.SlotRow, len(had))
	for i, s := range had {
		rows[i] = s.SlotRow
	}
	stand := catalog.MergeTrimmed(rows)
	for _, s := range had {
		i, ok := slices.BinarySearchFunc(stand, s.ID, func(r catalog.SlotRow, id segment.ID) int {
			return int(min(max(int64(r.ID)-int64(id), -1), 1))
		})
		if !ok {
			t.dropSlot(s)
			continue
		}
		kept := *s
		kept.First, kept.Bytes, kept.Sealed = stand[i].First, stand[i].Bytes, stand[i].Sealed
		t.putSlot(&kept)
	}
}

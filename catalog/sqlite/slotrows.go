package sqlite

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// forgetSlots drops the slot rows that nobody needs any more.
func (t *tx) forgetSlots(row *catalog.ChainRow) error {
	return t.exec("DELETE FROM slot WHERE epoch = ? AND shard = ? AND id < ?", row.Epoch, row.Shard, int64(catalog.ForgottenSlots(row)))
}

// mergeSlots keeps few of the rows of slots that were trimmed from `from` on, where no
// policy plans with them; it begins with the last that stands before.
func (t *tx) mergeSlots(row *catalog.ChainRow, from segment.ID) error {
	top, err := t.topologies("WHERE epoch = ?", row.Epoch)
	switch {
	case err != nil:
		return err
	case len(top) == 0:
		return catalog.NoTopology(row.Epoch)
	case !top[0].Retention.Keeps():
		return nil
	}
	end := catalog.TrimmedRows(row)
	rows, err := t.slots("SELECT "+column.Slots+" FROM slot s WHERE epoch = ? AND shard = ? AND id < ? ORDER BY id DESC LIMIT 1", row.Epoch, row.Shard, int64(min(from, end)))
	if err != nil {
		return err
	}
	trimmed, err := t.slots("SELECT "+column.Slots+" FROM slot s WHERE epoch = ? AND shard = ? AND id >= ? AND id < ? ORDER BY id", row.Epoch, row.Shard, int64(from), int64(end))
	if err != nil || len(trimmed) == 0 {
		return err
	}
	return t.joinSlots(append(rows, trimmed...), end)
}

// joinSlots puts what MergeTrimmed leaves of the rows, which are all before end, in their
// place.
func (t *tx) joinSlots(rows []catalog.SlotRow, end segment.ID) error {
	row, first := rows[0].Chain, rows[0].ID
	stand := catalog.MergeTrimmed(rows)
	ids := make([]segment.ID, len(stand))
	for i, s := range stand {
		ids[i] = s.ID
	}
	arg, err := column.JSON(ids)
	if err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM slot WHERE epoch = ?1 AND shard = ?2 AND id >= ?3 AND id < ?4
 AND id NOT IN (SELECT value FROM json_each(?5))`, row.Epoch, row.Shard, int64(first), int64(end), arg); err != nil {
		return err
	}
	for _, s := range stand { // as few as full-size segments are among them
		if err := t.exec("UPDATE slot SET first = ?, bytes = ?, sealed = ? WHERE epoch = ? AND shard = ? AND id = ?",
			int64(s.First), s.Bytes, column.Nanos(s.Sealed), row.Epoch, row.Shard, int64(s.ID)); err != nil {
			return err
		}
	}
	return nil
}

package postgres

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// forgetSlots queues the end of the slot rows that nobody needs any more.
func (t *tx) forgetSlots(row *catalog.ChainRow) {
	t.exec("DELETE FROM slot WHERE epoch = $1::int8 AND shard = $2::int8 AND id < $3", int64(row.Epoch), int64(row.Shard), int64(catalog.ForgottenSlots(row)))
}

// mergeSlots keeps few of the rows of slots that were trimmed from `from` on, where no
// policy plans with them; it begins with the last that stands before.
func (t *tx) mergeSlots(row *catalog.ChainRow, from segment.ID) error {
	end := catalog.TrimmedRows(row)
	var rows, trimmed []catalog.SlotRow
	t.askSlots(&rows, "s.id < $3 ORDER BY s.id DESC LIMIT 1", row.Chain, int64(min(from, end)))
	t.askSlots(&trimmed, "s.id >= $3 AND s.id < $4 ORDER BY s.id", row.Chain, int64(from), int64(end))
	if err := t.flush(); err != nil || len(trimmed) == 0 {
		return err
	}
	rows = append(rows, trimmed...)
	begin := int64(rows[0].ID)
	stand := catalog.MergeTrimmed(rows)
	n := len(stand)
	ids, firsts, bytes, sealed := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, s := range stand {
		ids[i], firsts[i], bytes[i], sealed[i] = int64(s.ID), int64(s.First), s.Bytes, column.Nanos(s.Sealed)
	}
	t.exec("DELETE FROM slot WHERE epoch = $1::int8 AND shard = $2::int8 AND id >= $3 AND id < $4 AND id <> ALL($5::int8[])",
		int64(row.Epoch), int64(row.Shard), begin, int64(end), ids)
	t.exec(`UPDATE slot SET first = n.first, bytes = n.bytes, sealed = n.sealed FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[]) n(id, first, bytes, sealed)
 WHERE slot.epoch = $1::int8 AND slot.shard = $2::int8 AND slot.id = n.id`, int64(row.Epoch), int64(row.Shard), ids, firsts, bytes, sealed)
	return nil
}

package postgres

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// ResolveSettled ends the debts of slots that no ref names any more.
func (d *DB) ResolveSettled(ctx context.Context, c segment.Chain, markers []catalog.MarkerRef) (resolved int, err error) {
	err = d.write(ctx, "ResolveSettled", func(t *tx) error {
		resolved, err = t.resolveSettled(c, markers)
		return err
	})
	return resolved, err
}

func (t *tx) resolveSettled(c segment.Chain, markers []catalog.MarkerRef) (int, error) {
	ids, slots, versions, err := settledArgs(c, markers)
	if err != nil {
		return 0, err
	}
	stands, settings := t.askChain(c, " FOR UPDATE"), t.askSettings("")
	// Those whose marker stands at its version, whose slot owes (a void one's parked marker
	// never goes this way), and that no ref names. The markers are kept: an arm comes
	// before, and makes it another version, or after, and finds none. A slot that no ref
	// names is never named again.
	var done []int64
	var bytes int64
	t.ask(`SELECT s.id, s.bytes FROM unnest($3::text[], $4::int8[], $5::int8[]) j(id, slot, version)
 JOIN slot s ON s.epoch = $1::int8 AND s.shard = $2::int8 AND s.id = j.slot
 JOIN marker m ON m.duty = 'settle' AND m.id = j.id AND m.version = j.version
 WHERE s.owed AND NOT EXISTS (SELECT 1 FROM object o JOIN ref r ON r.object = o.id WHERE o.key = s.key) FOR UPDATE OF m`, func(scan column.Scan) error {
		var id, n int64
		err := scan(&id, &n)
		done, bytes = append(done, id), bytes+n
		return err
	}, int64(c.Epoch), int64(c.Shard), ids, slots, versions)
	if err := t.flush(); err != nil {
		return 0, err
	}
	row, err := stands.get(c)
	if err != nil {
		return 0, err
	}
	t.settleDone(c, ids, done)
	if len(done) == 0 {
		return 0, nil
	}
	var since int64
	if _, err := t.one("SELECT sealed FROM slot WHERE epoch = $1::int8 AND shard = $2::int8 AND owed ORDER BY id LIMIT 1", []any{int64(c.Epoch), int64(c.Shard)}, &since); err != nil {
		return 0, err
	}
	row.TransitBytes -= bytes
	row.TransitSince = column.At(since)
	t.armTrim(c, settings)
	return len(done), t.putChain(&row)
}

// settledArgs are settle markers of a chain with their slots' positions, as columns.
func settledArgs(c segment.Chain, markers []catalog.MarkerRef) (ids []string, slots, versions []int64, err error) {
	of, err := catalog.SettleSlots(c, markers)
	for i, id := range of {
		ids, slots, versions = append(ids, markers[i].ID), append(slots, int64(id)), append(versions, markers[i].Version)
	}
	return ids, slots, versions, err
}

// settleDone deletes the markers of done, and gives the leases of the others back
// where they were armed meanwhile.
func (t *tx) settleDone(c segment.Chain, all []string, done []int64) {
	if len(done) > 0 {
		ids := make([]string, len(done))
		for i, id := range done {
			ids[i] = catalog.SettleID(c, segment.ID(id))
		}
		t.exec("DELETE FROM marker WHERE duty = 'settle' AND id = ANY($1::text[])", ids)
		t.exec("UPDATE slot SET owed = false WHERE epoch = $1::int8 AND shard = $2::int8 AND id = ANY($3::int8[])", int64(c.Epoch), int64(c.Shard), done)
	}
	if len(all) > 0 {
		t.exec("UPDATE marker SET lease_owner = '', lease_end = 0 WHERE duty = 'settle' AND id = ANY($1::text[]) AND lease_version <> version", all)
	}
}

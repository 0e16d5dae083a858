package sqlite

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
	row, err := t.chain(c)
	if err != nil {
		return 0, err
	}
	rows, err := settledArgs(c, markers)
	if err != nil {
		return 0, err
	}
	done, bytes, err := t.settled(c, rows)
	if err != nil {
		return 0, err
	}
	if err := t.settleDone(c, rows, done); err != nil || len(done) == 0 {
		return 0, err
	}
	row.TransitBytes -= bytes
	var since int64
	if _, err := t.one("SELECT sealed FROM slot WHERE epoch = ? AND shard = ? AND owed = 1 ORDER BY id LIMIT 1", []any{c.Epoch, c.Shard}, &since); err != nil {
		return 0, err
	}
	row.TransitSince = column.At(since)
	if err := t.armTrim(c); err != nil {
		return 0, err
	}
	return len(done), t.putChain(&row)
}

// settledArg is a settle marker with its slot's position.
type settledArg struct {
	ID      string
	Slot    int64
	Version int64
}

func settledArgs(c segment.Chain, markers []catalog.MarkerRef) ([]settledArg, error) {
	slots, err := catalog.SettleSlots(c, markers)
	if err != nil {
		return nil, err
	}
	out := make([]settledArg, len(markers))
	for i, m := range markers {
		out[i] = settledArg{m.ID, int64(slots[i]), m.Version}
	}
	return out, nil
}

// settled picks those whose marker stands at its version, whose slot owes (a void
// one's parked marker never goes this way), and that no ref names.
func (t *tx) settled(c segment.Chain, rows []settledArg) (done []settledArg, bytes int64, err error) {
	set, err := column.JSON(rows)
	if err != nil {
		return nil, 0, err
	}
	err = t.query(`SELECT j.value ->> 'ID', s.id, s.bytes FROM json_each(?) j
 CROSS JOIN slot s ON s.epoch = ? AND s.shard = ? AND s.id = j.value ->> 'Slot'
 CROSS JOIN marker m ON m.duty = 'settle' AND m.id = j.value ->> 'ID' AND m.version = j.value ->> 'Version'
 WHERE s.owed = 1 AND NOT EXISTS (SELECT 1 FROM object o JOIN ref r ON r.object = o.id WHERE o.key = s.key)`, func(scan column.Scan) error {
		var a settledArg
		var n int64
		err := scan(&a.ID, &a.Slot, &n)
		done, bytes = append(done, a), bytes+n
		return err
	}, set, c.Epoch, c.Shard)
	return done, bytes, err
}

// settleDone deletes the markers of done, and gives the leases of the others back
// where they were armed meanwhile.
func (t *tx) settleDone(c segment.Chain, all, done []settledArg) error {
	gone, err := column.JSON(done)
	if err != nil || len(done) == 0 && len(all) == 0 {
		return err
	}
	if len(done) > 0 {
		if err := t.exec("DELETE FROM marker WHERE duty = 'settle' AND id IN (SELECT j.value ->> 'ID' FROM json_each(?) j)", gone); err != nil {
			return err
		}
		if err := t.exec("UPDATE slot SET owed = 0 WHERE epoch = ? AND shard = ? AND id IN (SELECT j.value ->> 'Slot' FROM json_each(?) j)", c.Epoch, c.Shard, gone); err != nil {
			return err
		}
	}
	set, err := column.JSON(all)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE marker SET lease_owner = '', lease_end = 0
 WHERE duty = 'settle' AND id IN (SELECT j.value ->> 'ID' FROM json_each(?) j) AND lease_version <> version`, set)
}

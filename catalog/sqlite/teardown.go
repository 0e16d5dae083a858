package sqlite

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// TrimStream raises a stream's live_from and arms its teardown.
func (d *DB) TrimStream(ctx context.Context, name string, pos segment.Pos) (catalog.Stream, error) {
	return d.trimStream(ctx, "TrimStream", name, func(s catalog.Stream) (catalog.Stream, error) {
		return catalog.TrimStream(s, pos)
	})
}

// DeleteStream trims through the tip and lists the stream as deleted.
func (d *DB) DeleteStream(ctx context.Context, name string) (catalog.Stream, error) {
	return d.trimStream(ctx, "DeleteStream", name, func(s catalog.Stream) (catalog.Stream, error) {
		return catalog.DeleteStream(s), nil
	})
}

func (d *DB) trimStream(ctx context.Context, verb, name string, decide func(catalog.Stream) (catalog.Stream, error)) (s catalog.Stream, err error) {
	err = d.write(ctx, verb, func(t *tx) (err error) {
		if s, _, err = t.streamBy("s.name = ?", name); err != nil {
			return err
		}
		if s, err = decide(s); err != nil {
			return err
		}
		if err := t.exec("UPDATE stream SET live_epoch = ?, live_seq = ?, deleted = ? WHERE id = ?",
			int64(s.LiveFrom.Epoch), int64(s.LiveFrom.Seq), s.Deleted, s.ID); err != nil {
			return err
		}
		return t.arm(catalog.DutyTeardown, catalog.StreamID(s.ID), "", 0)
	})
	return s, err
}

// WalkStream returns the next page of a stream's dead refs. Retired ones are gone,
// so the next call goes on where this one ended.
func (d *DB) WalkStream(ctx context.Context, streamID int64, limit int) (w catalog.WalkPage, err error) {
	err = d.read(ctx, "WalkStream", func(t *tx) error {
		if err := t.checkKinds("WalkStream"); err != nil {
			return err
		}
		if w.Stream, w.LiveFrom, err = t.streamBy("s.id = ?", streamID); err != nil {
			return err
		}
		return t.query(selectRefs+"WHERE r.stream = ? ORDER BY r.epoch, r.first", func(scan column.Scan) error {
			l, err := scanRef(scan)
			if err != nil {
				return err
			}
			if w.Take(&l, catalog.PageSize(limit)) {
				return errStop
			}
			return nil
		}, streamID)
	})
	if err != nil {
		return catalog.WalkPage{}, err
	}
	return w, nil
}

// ArmWatchers arms what will look at the objects of refs that are about to go.
func (d *DB) ArmWatchers(ctx context.Context, refs []catalog.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	return d.write(ctx, "ArmWatchers", func(t *tx) error {
		if err := catalog.CheckKnown("ArmWatchers", refs); err != nil {
			return err
		}
		if err := t.watchSettled(refs); err != nil {
			return err
		}
		return t.slotsDue(catalog.KeysOf(refs, (*catalog.Ref).IsSlot), false)
	})
}

// slotsDue makes the settle markers of slots due, those that still owe one.
// unnamed: only of slots that no ref names any more.
func (t *tx) slotsDue(keys []string, unnamed bool) error {
	if len(keys) == 0 {
		return nil
	}
	all, err := catalog.SettleIDs(keys)
	if err != nil {
		return err
	}
	rows := make([][2]string, len(keys))
	for i, key := range keys {
		rows[i] = [2]string{all[i], key}
	}
	set, err := column.JSON(rows)
	if err != nil {
		return err
	}
	ids := []string{}
	if err := t.query(`SELECT j.value ->> 0 FROM json_each(?) j
 WHERE NOT ? OR NOT EXISTS (SELECT 1 FROM object o JOIN ref r ON r.object = o.id WHERE o.key = j.value ->> 1)`, func(scan column.Scan) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	}, set, unnamed); err != nil || len(ids) == 0 {
		return err
	}
	if set, err = column.JSON(ids); err != nil {
		return err
	}
	v, err := t.version()
	if err != nil {
		return err
	}
	return t.exec("UPDATE marker SET version = ?, due = MIN(due, ?) WHERE duty = 'settle' AND id IN (SELECT value FROM json_each(?))", v, column.Nanos(t.now), set)
}

// RetireRefs deletes dead refs that stand as they were seen; others are left.
func (d *DB) RetireRefs(ctx context.Context, refs []catalog.Ref) (retired int, err error) {
	if len(refs) == 0 {
		return 0, nil
	}
	err = d.write(ctx, "RetireRefs", func(t *tx) error {
		retired = 0
		if err := t.checkKinds("RetireRefs"); err != nil {
			return err
		}
		have, err := t.standing(refs)
		if err != nil {
			return err
		}
		gone := catalog.Retirable(refs, have.Of)
		if len(gone) == 0 {
			return nil
		}
		if err := t.deleteRefs(gone); err != nil {
			return err
		}
		if err := t.dropObjects(gone); err != nil {
			return err
		}
		retired = len(gone)
		// The object row is gone with its last ref, so "no ref names it" is plain to see.
		return t.slotsDue(catalog.KeysOf(gone, (*catalog.Ref).IsSlot), true)
	})
	if err != nil {
		return 0, err
	}
	return retired, nil
}

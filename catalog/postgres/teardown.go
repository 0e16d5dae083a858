package postgres

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

// trimStream holds the stream's row: of a trim and an absorb that moves the tip, the
// second waits for the first and sees what it left (moveTips).
func (d *DB) trimStream(ctx context.Context, verb, name string, decide func(catalog.Stream) (catalog.Stream, error)) (s catalog.Stream, err error) {
	err = d.write(ctx, verb, func(t *tx) (err error) {
		m := t.askStream("s.name = $1", []byte(name), " FOR UPDATE OF s")
		if err := t.flush(); err != nil {
			return err
		}
		if err := m.check(); err != nil {
			return err
		}
		s = m.Stream
		if s, err = decide(s); err != nil {
			return err
		}
		t.exec("UPDATE stream SET live_epoch = $1::int8, live_seq = $2, deleted = $3 WHERE id = $4", int64(s.LiveFrom.Epoch), int64(s.LiveFrom.Seq), s.Deleted, s.ID)
		t.arm(catalog.DutyTeardown, catalog.StreamID(s.ID), "", 0)
		return nil
	})
	return s, err
}

// WalkStream returns the next page of a stream's dead refs. Retired ones are gone,
// so the next call goes on where this one ended.
func (d *DB) WalkStream(ctx context.Context, streamID int64, limit int) (w catalog.WalkPage, err error) {
	err = d.read(ctx, "WalkStream", func(t *tx) error {
		w = catalog.WalkPage{}
		t.askKinds("WalkStream")
		m := t.askStream("s.id = $1::int8", streamID, "")
		n := catalog.PageSize(limit)
		// Each row is dead or ends the walk: one more than a page is enough to know.
		t.ask(selectRefs+"WHERE r.stream = $1 ORDER BY r.stream, r.epoch, r.first LIMIT $2", func(scan column.Scan) error {
			l, err := scanRef(scan)
			if err != nil {
				return err
			}
			if w.Take(&l, n) {
				return errStop
			}
			return nil
		}, streamID, int64(n+1))
		if err := t.flush(); err != nil {
			return err
		}
		w.Stream, w.LiveFrom = m.Stream, m.live
		return m.check()
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
		grace, err := t.grace()
		if err != nil {
			return err
		}
		t.watchSettled(refs, grace)
		return t.slotsDue(catalog.KeysOf(refs, (*catalog.Ref).IsSlot))
	})
}

// slotsDue queues that the settle markers of slots become due, of those that still owe one.
func (t *tx) slotsDue(keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	ids, err := catalog.SettleIDs(keys)
	if err != nil {
		return err
	}
	t.newVersion()
	t.exec("UPDATE marker SET version = "+version+", due = LEAST(due, $1) FROM unnest($2::text[]) j(id) WHERE marker.duty = 'settle' AND marker.id = j.id", column.Nanos(t.now), ids)
	return nil
}

// RetireRefs deletes dead refs that stand as they were seen; others are left. What was
// dead when it was read stays dead, for live_from only rises; and a ref that a commit
// replaced meanwhile is not deleted (deleteRefs).
func (d *DB) RetireRefs(ctx context.Context, refs []catalog.Ref) (retired int, err error) {
	if len(refs) == 0 {
		return 0, nil
	}
	err = d.write(ctx, "RetireRefs", func(t *tx) error {
		retired = 0
		t.askKinds("RetireRefs")
		have := t.askStanding(refs)
		if err := t.flush(); err != nil {
			return err
		}
		gone := catalog.Retirable(refs, have.Of)
		if len(gone) == 0 {
			return nil
		}
		objects, err := t.lockObjects(nil, gone)
		if err != nil {
			return err
		}
		t.deleteRefs(gone, objects)
		dropped := t.dropObjects(gone)
		if err := t.flush(); err != nil {
			return err
		}
		retired = len(gone)
		return t.slotsDue(catalog.KeysOf(gone, func(r *catalog.Ref) bool { return r.IsSlot() && dropped[r.Key] }))
	})
	if err != nil {
		return 0, err
	}
	return retired, nil
}

package postgres

import (
	"context"

	"github.com/strandline/strandline/catalog"
)

// AcceptLoss gives up what a stream has in an object, or what a void slot holds.
func (d *DB) AcceptLoss(ctx context.Context, key, stream string) (lost []catalog.Ref, err error) {
	if key == "" { // lost refs have none: they were given up before
		return nil, catalog.Invalid("AcceptLoss", "no key")
	}
	err = d.write(ctx, "AcceptLoss", func(t *tx) error {
		lost = nil
		if stream == "" {
			return t.loseVoid(key)
		}
		lost, err = t.loseRefs(key, stream)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// loseRefs takes no lock before its deletion, which finds out whether a commit or a retire
// came in between (deleteRefs).
func (t *tx) loseRefs(key, stream string) ([]catalog.Ref, error) {
	t.askKinds("AcceptLoss")
	var live []catalog.LiveRef
	t.askRefs(&live, "SELECT "+refCols+` FROM stream s JOIN object o ON o.key = $1 JOIN ref r ON r.object = o.id AND r.stream = s.id
 LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard WHERE s.name = $2 ORDER BY r.epoch, r.first`, plain(key), []byte(stream))
	settings := t.askSettings("")
	if err := t.flush(); err != nil {
		return nil, err
	}
	were := catalog.PlainRefs(live)
	lost, err := catalog.LoseRefs(key, stream, were)
	if err != nil {
		return nil, err
	}
	objects, err := t.lockObjects(lost, were) // one row for all that is lost: its key is the empty one
	if err != nil {
		return nil, err
	}
	t.deleteRefs(were, objects)
	if err := t.insertRefs(lost, func(r *catalog.Ref) int64 { return objects[r.Key] }); err != nil {
		return nil, err
	}
	t.dropObjects(were)
	t.watchSettled(were, t.graceOf(settings))
	if err := t.slotsDue(catalog.KeysOf(were, (*catalog.Ref).IsSlot)); err != nil {
		return nil, err
	}
	t.audit(catalog.AuditLoss, key, catalog.DescribeLoss(lost))
	return lost, nil
}

// loseVoid ends the wait of a void slot that holds rows: its chain's trim goes on.
func (t *tx) loseVoid(key string) error {
	k, err := catalog.VoidSlot(key)
	if err != nil {
		return err
	}
	settings := t.askSettings("")
	n, err := t.execN(`DELETE FROM marker WHERE duty = 'settle' AND id = $1
 AND EXISTS (SELECT 1 FROM slot WHERE slot.epoch = $2::int8 AND slot.shard = $3::int8 AND slot.id = $4 AND slot.void)`,
		catalog.SettleID(k.Chain, k.ID), int64(k.Chain.Epoch), int64(k.Chain.Shard), int64(k.ID))
	if err != nil {
		return err
	}
	if n == 0 {
		return catalog.NothingToLose(key, "")
	}
	t.armTrim(k.Chain, settings)
	t.audit(catalog.AuditLoss, key, catalog.DescribeVoidLoss(k))
	return nil
}

package sqlite

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

func (t *tx) loseRefs(key, stream string) ([]catalog.Ref, error) {
	if err := t.checkKinds("AcceptLoss"); err != nil {
		return nil, err
	}
	live, err := t.refs("SELECT "+refCols+` FROM stream s CROSS JOIN object o ON o.key = ? CROSS JOIN ref r ON r.object = o.id AND r.stream = s.id
 LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard WHERE s.name = ? ORDER BY r.epoch, r.first`, key, stream)
	if err != nil {
		return nil, err
	}
	were := catalog.PlainRefs(live)
	lost, err := catalog.LoseRefs(key, stream, were)
	if err != nil {
		return nil, err
	}
	object, err := t.object(&lost[0]) // one row for all that is lost: its key is the empty one
	if err != nil {
		return nil, err
	}
	if err := t.deleteRefs(were); err != nil {
		return nil, err
	}
	if err := t.insertRefs(lost, func(*catalog.Ref) int64 { return object }); err != nil {
		return nil, err
	}
	if err := t.dropObjects(were); err != nil {
		return nil, err
	}
	if err := t.watchSettled(were); err != nil {
		return nil, err
	}
	if err := t.slotsDue(catalog.KeysOf(were, (*catalog.Ref).IsSlot), false); err != nil {
		return nil, err
	}
	return lost, t.audit(catalog.AuditLoss, key, catalog.DescribeLoss(lost))
}

// loseVoid ends the wait of a void slot that holds rows: its chain's trim goes on.
func (t *tx) loseVoid(key string) error {
	k, err := catalog.VoidSlot(key)
	if err != nil {
		return err
	}
	id := catalog.SettleID(k.Chain, k.ID)
	n, err := t.execN(`DELETE FROM marker WHERE duty = 'settle' AND id = ?
 AND EXISTS (SELECT 1 FROM slot WHERE epoch = ? AND shard = ? AND id = ? AND void = 1)`, id, k.Chain.Epoch, k.Chain.Shard, int64(k.ID))
	if err != nil {
		return err
	}
	if n == 0 {
		return catalog.NothingToLose(key, "")
	}
	if err := t.armTrim(k.Chain); err != nil {
		return err
	}
	return t.audit(catalog.AuditLoss, key, catalog.DescribeVoidLoss(k))
}

package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
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
	if len(live) == 0 {
		return nil, catalog.NothingToLose(key, stream)
	}
	were := catalog.PlainRefs(live)
	lost := make([]catalog.Ref, len(were))
	for i := range were {
		lost[i] = catalog.LoseRef(were[i])
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
	k, err := segment.ParseKey(key)
	if err != nil || k.Kind != segment.KeySlot {
		return catalog.NothingToLose(key, "")
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
	grace, err := t.grace()
	if err != nil {
		return err
	}
	if err := t.arm(catalog.DutyTrimCheck, catalog.ChainID(k.Chain), "", time.Duration(grace)); err != nil {
		return err
	}
	return t.audit(catalog.AuditLoss, key, fmt.Sprintf("void slot %d of chain %s: the rows in it are given up", k.ID, k.Chain))
}

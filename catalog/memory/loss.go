package memory

import (
	"context"

	"github.com/strandline/strandline/catalog"
)

// AcceptLoss gives up what a stream has in an object, or what a void slot holds.
func (c *Catalog) AcceptLoss(ctx context.Context, key, stream string) (lost []catalog.Ref, err error) {
	if key == "" { // lost refs have none: they were given up before
		return nil, catalog.Invalid("AcceptLoss", "no key")
	}
	err = c.write(ctx, "AcceptLoss", func(t *tx) error {
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
	var were []catalog.Ref
	if s, ok := t.streamName.get(stream); ok {
		for k, r := range t.refName.from(objectKey{key: key, refKey: refKey{stream: s.ID}}) {
			if k.key != key || k.stream != s.ID {
				break
			}
			were = append(were, *r)
		}
	}
	lost, err := catalog.LoseRefs(key, stream, were)
	if err != nil {
		return nil, err
	}
	for i := range lost {
		r := lost[i]
		t.putRef(&r)
	}
	t.watchSettled(were)
	if err := t.slotsDue(catalog.KeysOf(were, (*catalog.Ref).IsSlot), false); err != nil {
		return nil, err
	}
	t.record(catalog.AuditLoss, key, catalog.DescribeLoss(lost))
	return lost, nil
}

// loseVoid ends the wait of a void slot that holds rows: its chain's trim goes on.
func (t *tx) loseVoid(key string) error {
	k, err := catalog.VoidSlot(key)
	if err != nil {
		return err
	}
	s, ok := t.slot.get(slotKey{k.Chain, k.ID})
	m, waits := t.marker.get(markerKey{catalog.DutySettle, catalog.SettleID(k.Chain, k.ID)})
	if !ok || !s.Void || !waits {
		return catalog.NothingToLose(key, "")
	}
	t.dropMarker(m)
	t.armTrim(k.Chain)
	t.record(catalog.AuditLoss, key, catalog.DescribeVoidLoss(k))
	return nil
}

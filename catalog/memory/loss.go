package memory

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
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
	if len(were) == 0 {
		return nil, catalog.NothingToLose(key, stream)
	}
	lost := make([]catalog.Ref, len(were))
	for i := range were {
		lost[i] = catalog.LoseRef(were[i])
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
	k, err := segment.ParseKey(key)
	if err != nil || k.Kind != segment.KeySlot {
		return catalog.NothingToLose(key, "")
	}
	s, ok := t.slot.get(slotKey{k.Chain, k.ID})
	m, waits := t.marker.get(markerKey{catalog.DutySettle, catalog.SettleID(k.Chain, k.ID)})
	if !ok || !s.Void || !waits {
		return catalog.NothingToLose(key, "")
	}
	t.dropMarker(m)
	t.armTrim(k.Chain)
	t.record(catalog.AuditLoss, key, fmt.Sprintf("void slot %d of chain %s: the rows in it are given up", k.ID, k.Chain))
	return nil
}

package sqlite

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// armNext arms what a commit makes the other policies owe (03 §4), due at once. It goes
// in the commit's own transaction: a crash before it leaves neither, and no scan ever
// looks for what was missed.
func (t *tx) armNext(next catalog.Next, committed []catalog.Ref) error {
	if len(committed) == 0 {
		return nil
	}
	if next.TailTarget > 0 {
		if err := t.armTails(next.TailTarget, committed); err != nil {
			return err
		}
	}
	if c := &committed[0]; next.PackFan > 0 && c.Kind == catalog.RefPack {
		return t.armMerge(c, next.PackFan) // one commit, one pack
	}
	return nil
}

// armMerge arms the pack-merge of a pack's generation once it has enough packs.
func (t *tx) armMerge(pack *catalog.Ref, fan int) error {
	keys, err := t.packs(pack.Chain, pack.Generation, fan)
	if err != nil || len(keys) < fan {
		return err
	}
	return t.arm(catalog.DutyPackMerge, catalog.PackMergeID(pack.Chain, pack.Generation), "", 0)
}

// armTails arms the tail-fills of the stream objects right before the committed refs.
func (t *tx) armTails(target int64, committed []catalog.Ref) error {
	var ends [][3]int64
	for i := range committed {
		if r := &committed[i]; r.Kind == catalog.RefStream && r.PrevLast != (segment.Pos{}) {
			ends = append(ends, [3]int64{r.StreamID, int64(r.PrevLast.Epoch), int64(r.PrevLast.Seq)})
		}
	}
	if len(ends) == 0 {
		return nil
	}
	set, err := column.JSON(ends)
	if err != nil {
		return err
	}
	// The ref that ends there, if one does, is the last that begins at or below.
	tails, err := t.refs("SELECT "+refCols+` FROM json_each(?) j
 CROSS JOIN ref r ON r.stream = j.value ->> 0 AND r.epoch = j.value ->> 1 AND r.first = (
 SELECT MAX(x.first) FROM ref x WHERE x.stream = j.value ->> 0 AND x.epoch = j.value ->> 1 AND x.first <= j.value ->> 2)`+refJoins, set)
	if err != nil {
		return err
	}
	return t.armAll(catalog.DutyTailFill, catalog.TailsDue(committed, tails, target), 0)
}

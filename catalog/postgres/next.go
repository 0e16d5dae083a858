package postgres

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// armNext arms what a commit makes the other policies owe (03 §4), due at once. It goes
// in the commit's own transaction: a crash before it leaves neither, and no scan ever
// looks for what was missed.
func (t *tx) armNext(next catalog.Next, committed []catalog.Ref) error {
	if len(committed) == 0 {
		return nil
	}
	var tails []catalog.LiveRef
	if next.TailTarget > 0 {
		t.askTails(committed, &tails)
	}
	pack := &committed[0] // one commit, one pack
	packs := 0
	if next.PackFan > 0 && pack.Kind == catalog.RefPack {
		t.askPacks(pack.Chain, pack.Generation, next.PackFan, func(string) { packs++ })
	}
	if err := t.flush(); err != nil {
		return err
	}
	t.armAll(catalog.DutyTailFill, catalog.TailsDue(committed, tails, next.TailTarget), 0)
	if packs > 0 && packs >= next.PackFan {
		t.arm(catalog.DutyPackMerge, catalog.PackMergeID(pack.Chain, pack.Generation), "", 0)
	}
	return nil
}

// askTails reads the refs right before the committed ones to stream objects. The ref that
// ends there, if one does, is the last that begins at or below.
func (t *tx) askTails(committed []catalog.Ref, out *[]catalog.LiveRef) {
	var streams, epochs, lasts []int64
	for i := range committed {
		if r := &committed[i]; r.Kind == catalog.RefStream && r.PrevLast != (segment.Pos{}) {
			streams, epochs, lasts = append(streams, r.StreamID), append(epochs, int64(r.PrevLast.Epoch)), append(lasts, int64(r.PrevLast.Seq))
		}
	}
	if len(streams) == 0 {
		return
	}
	t.askRefs(out, "SELECT "+refCols+` FROM unnest($1::int8[], $2::int8[], $3::int8[]) j(stream, epoch, last)
 JOIN ref r ON r.stream = j.stream AND r.epoch = j.epoch AND r.first = (
 SELECT max(x.first) FROM ref x WHERE x.stream = j.stream AND x.epoch = j.epoch AND x.first <= j.last)`+refJoins, streams, epochs, lasts)
}

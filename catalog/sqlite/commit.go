package sqlite

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// CommitRewrite makes an output visible (03 §4 step 5): all runs, or none.
func (d *DB) CommitRewrite(ctx context.Context, r catalog.Rewrite) (out catalog.Rewritten, err error) {
	if err := catalog.ValidateRewrite(&r); err != nil {
		return out, err
	}
	err = d.write(ctx, "CommitRewrite", func(t *tx) error {
		out, err = t.commitRewrite(&r)
		return err
	})
	return out, err
}

func (t *tx) commitRewrite(r *catalog.Rewrite) (out catalog.Rewritten, err error) {
	if err := t.checkKinds("CommitRewrite"); err != nil {
		return out, err
	}
	in, err := t.intent(r.Key)
	if err != nil {
		return out, err
	}
	if out.Committed, err = t.committedBefore(r); err != nil {
		return out, err
	}
	if len(out.Committed) > 0 {
		out.Already = true
		return out, t.settleIntent(in, r, true)
	}
	if err := catalog.CheckIntent("CommitRewrite", in, r.Key, r.Nonce); err != nil {
		return out, err
	}
	swaps, err := t.planSwaps(r)
	if err != nil {
		return out, err
	}
	if out, err = t.applySwaps(swaps); err != nil {
		return out, err
	}
	if err := t.armNext(r.Next, out.Committed); err != nil {
		return out, err
	}
	return out, t.settleIntent(in, r, !out.Nothing)
}

// committedBefore: the answer of an earlier commit was lost. Commits are all or
// none, so one ref that names the key says that all of it happened; a trim may have
// taken others since.
func (t *tx) committedBefore(r *catalog.Rewrite) ([]catalog.Ref, error) {
	live, err := t.refs("SELECT "+refCols+` FROM object o CROSS JOIN ref r ON r.object = o.id LEFT JOIN stream s ON s.id = r.stream
 LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard WHERE o.key = ? ORDER BY r.stream, r.epoch, r.first`, r.Key)
	return catalog.PlainRefs(live), err
}

// settleIntent writes what the commit leaves of its job's intent.
func (t *tx) settleIntent(in *catalog.Intent, r *catalog.Rewrite, named bool) error {
	switch left, done := catalog.SettleIntent(in, r, named); {
	case done:
		return t.dropIntent(r.Key)
	case left != nil:
		return t.putIntent(left)
	}
	return nil
}

// planSwaps validates every run against what stands, before anything is written.
func (t *tx) planSwaps(r *catalog.Rewrite) ([]catalog.Swap, error) {
	var expect []catalog.Ref
	for i := range r.Runs {
		expect = append(expect, r.Runs[i].Expect...)
	}
	have, err := t.standing(expect)
	if err != nil {
		return nil, err
	}
	live, found, err := t.liveFroms(r)
	if err != nil {
		return nil, err
	}
	return catalog.PlanSwaps(r, live, found, have.At)
}

// liveFroms are the effective live_from of the runs, in order, in one query.
func (t *tx) liveFroms(r *catalog.Rewrite) (out []segment.Pos, found int, err error) {
	rows := make([][3]int64, len(r.Runs))
	for i := range r.Runs {
		n := &r.Runs[i].New
		rows[i] = [3]int64{n.StreamID, int64(n.Epoch), int64(n.Shard)}
	}
	set, err := column.JSON(rows)
	if err != nil {
		return nil, 0, err
	}
	out = make([]segment.Pos, len(r.Runs))
	err = t.query(`SELECT j.key, s.live_epoch, s.live_seq, c.watermark_seq FROM json_each(?) j CROSS JOIN stream s ON s.id = j.value ->> 0
 CROSS JOIN chain c ON c.epoch = j.value ->> 1 AND c.shard = j.value ->> 2`, func(scan column.Scan) error {
		var i int
		var p segment.Pos
		var watermark segment.Seq
		if err := scan(&i, &p.Epoch, &p.Seq, &watermark); err != nil {
			return err
		}
		found++
		out[i] = catalog.EffectiveLiveFrom(p, r.Runs[i].New.Chain, watermark)
		return nil
	}, set)
	return out, found, err
}

// applySwaps writes what the runs' swaps say: retired rows out, committed ones and
// remainders in, watchers armed, in this order and as sets.
func (t *tx) applySwaps(swaps []catalog.Swap) (catalog.Rewritten, error) {
	out, gone, come := catalog.SwapRefs(swaps)
	if len(gone) == 0 {
		return out, nil
	}
	objects, err := t.objects(come)
	if err != nil {
		return out, err
	}
	if err := t.deleteRefs(gone); err != nil {
		return out, err
	}
	catalog.SortRefs(come)
	if err := t.insertRefs(come, func(r *catalog.Ref) int64 { return objects[r.Key] }); err != nil {
		return out, err
	}
	if err := t.dropObjects(gone); err != nil {
		return out, err
	}
	return out, t.watchSettled(gone)
}

// objects are the numbers of the keys that refs to come name.
func (t *tx) objects(refs []catalog.Ref) (map[string]int64, error) {
	out := map[string]int64{}
	for i := range refs {
		if _, ok := out[refs[i].Key]; ok {
			continue
		}
		id, err := t.object(&refs[i])
		if err != nil {
			return nil, err
		}
		out[refs[i].Key] = id
	}
	return out, nil
}

// watchSettled arms the reap-checks of the settled objects among the refs, one read
// grace out. Slots have their settle markers.
func (t *tx) watchSettled(refs []catalog.Ref) error {
	grace, err := t.grace()
	if err != nil {
		return err
	}
	return t.armAll(catalog.DutyReapCheck, catalog.WatchersOf(refs), time.Duration(grace))
}

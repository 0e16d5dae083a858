package postgres

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// CommitRewrite makes an output visible (03 §4 step 5): all runs, or none. Four round
// trips and a commit, whatever the number of refs.
//
// Against the judge, the reap and another announcement of the key it holds the intent's
// row, from before it looks for refs that name the key: who condemns holds it as well, and
// looks for refs behind it. So of commit and condemn the second sees the first, and never
// both happen.
//
// Against a commit, a retire or a loss over one of its refs it holds nothing while it
// plans; its deletion finds out (deleteRefs). Against a trim and a watermark it needs no
// lock: live_from only rises, and it is read after the refs, so what a trim's walk retired
// before the refs were read counts as dead. A trim that comes in between leaves what it
// would leave after the commit: refs that its walk sees, dead or straddling, as they stand.
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
	stands := t.askIntent(r.Key, " FOR UPDATE")
	t.askKinds("CommitRewrite")
	var before []catalog.LiveRef
	t.askRefs(&before, naming+"WHERE o.key = $1 ORDER BY r.stream, r.epoch, r.first", r.Key)
	var expect []catalog.Ref
	for i := range r.Runs {
		expect = append(expect, r.Runs[i].Expect...)
	}
	have := t.askStanding(expect)
	live, found := t.askLiveFroms(r)
	settings := t.askSettings("")
	if err := t.flush(); err != nil {
		return out, err
	}
	in := stands.in
	// The answer of an earlier commit was lost. Commits are all or none, so one ref that
	// names the key says that all of it happened; a trim may have taken others since.
	if len(before) > 0 {
		// That commit may have been cut off from its synchronous standby. A transaction that
		// writes nothing would not wait for it; one that keeps a row does.
		t.exec("SELECT 1 FROM object WHERE key = $1 FOR UPDATE", r.Key)
		out.Committed, out.Already = catalog.PlainRefs(before), true
		return out, t.settleIntent(in, r, true)
	}
	if err := catalog.CheckIntent("CommitRewrite", in, r.Key, r.Nonce); err != nil {
		return out, err
	}
	swaps, err := catalog.PlanSwaps(r, live, *found, have.At)
	if err != nil {
		return out, err
	}
	if out, err = t.applySwaps(swaps, t.graceOf(settings)); err != nil {
		return out, err
	}
	if err := t.armNext(r.Next, out.Committed); err != nil {
		return out, err
	}
	return out, t.settleIntent(in, r, !out.Nothing)
}

// settleIntent queues what the commit leaves of its job's intent.
func (t *tx) settleIntent(in *catalog.Intent, r *catalog.Rewrite, named bool) error {
	switch left, done := catalog.SettleIntent(in, r, named); {
	case done:
		t.dropIntent(r.Key)
	case left != nil:
		return t.putIntent(left)
	}
	return nil
}

// askLiveFroms reads the effective live_from of the runs, in order.
func (t *tx) askLiveFroms(r *catalog.Rewrite) (out []segment.Pos, found *int) {
	n := len(r.Runs)
	streams, epochs, shards := make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range r.Runs {
		o := &r.Runs[i].New
		streams[i], epochs[i], shards[i] = o.StreamID, int64(o.Epoch), int64(o.Shard)
	}
	out, found = make([]segment.Pos, n), new(int)
	t.ask(`SELECT j.i, s.live_epoch, s.live_seq, c.watermark_seq FROM unnest($1::int8[], $2::int8[], $3::int8[]) WITH ORDINALITY j(stream, epoch, shard, i)
 JOIN stream s ON s.id = j.stream JOIN chain c ON c.epoch = j.epoch AND c.shard = j.shard`, func(scan column.Scan) error {
		var i int
		var p segment.Pos
		var watermark segment.Seq
		if err := scan(&i, &p.Epoch, &p.Seq, &watermark); err != nil {
			return err
		}
		*found++
		out[i-1] = catalog.EffectiveLiveFrom(p, r.Runs[i-1].New.Chain, watermark)
		return nil
	}, streams, epochs, shards)
	return out, found
}

// applySwaps writes what the runs' swaps say: retired rows out, committed ones and
// remainders in, watchers armed, in this order and as sets.
func (t *tx) applySwaps(swaps []catalog.Swap, grace time.Duration) (catalog.Rewritten, error) {
	out, gone, come := catalog.SwapRefs(swaps)
	if len(gone) == 0 {
		return out, nil
	}
	objects, err := t.lockObjects(come, gone)
	if err != nil {
		return out, err
	}
	t.deleteRefs(gone, objects)
	catalog.SortRefs(come)
	if err := t.insertRefs(come, func(r *catalog.Ref) int64 { return objects[r.Key] }); err != nil {
		return out, err
	}
	t.dropObjects(gone)
	t.watchSettled(gone, grace)
	return out, nil
}

// watchSettled arms the reap-checks of the settled objects among the refs, one read
// grace out. Slots have their settle markers.
func (t *tx) watchSettled(refs []catalog.Ref, grace time.Duration) {
	t.armAll(catalog.DutyReapCheck, catalog.WatchersOf(refs), grace)
}

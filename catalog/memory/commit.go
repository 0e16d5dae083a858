package memory

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// CommitRewrite makes an output visible (03 §4 step 5): all runs, or none.
func (c *Catalog) CommitRewrite(ctx context.Context, r catalog.Rewrite) (out catalog.Rewritten, err error) {
	if err := catalog.ValidateRewrite(&r); err != nil {
		return out, err
	}
	err = c.write(ctx, "CommitRewrite", func(t *tx) error {
		out, err = t.commitRewrite(&r)
		return err
	})
	return out, err
}

func (t *tx) commitRewrite(r *catalog.Rewrite) (out catalog.Rewritten, err error) {
	if err := t.checkKinds("CommitRewrite"); err != nil {
		return out, err
	}
	in := t.intentOf(r.Key)
	// The answer of an earlier commit was lost. Commits are all or none, so one ref that
	// names the key says that all of it happened; a trim may have taken others since.
	for have := range t.naming(r.Key) {
		out.Committed = append(out.Committed, *have)
	}
	if len(out.Committed) > 0 {
		out.Already = true
		t.settleIntent(in, r, true)
		return out, nil
	}
	if err := catalog.CheckIntent("CommitRewrite", in, r.Key, r.Nonce); err != nil && !t.skip[CommitIntent] {
		return out, err
	}
	swaps, err := t.planSwaps(r)
	if err != nil {
		return out, err
	}
	if out, err = t.applySwaps(swaps); err != nil {
		return out, err
	}
	t.armNext(r.Next, out.Committed)
	t.settleIntent(in, r, !out.Nothing)
	return out, nil
}

// settleIntent writes what the commit leaves of its job's intent.
func (t *tx) settleIntent(in *catalog.Intent, r *catalog.Rewrite, named bool) {
	switch left, done := catalog.SettleIntent(in, r, named); {
	case done:
		t.dropIntent(r.Key)
	case left != nil:
		t.putIntent(left)
	}
}

// planSwaps validates every run against what stands, before anything is written.
func (t *tx) planSwaps(r *catalog.Rewrite) ([]catalog.Swap, error) {
	live := make([]segment.Pos, len(r.Runs))
	found := 0
	for i := range r.Runs {
		n := &r.Runs[i].New
		s, okStream := t.stream.get(n.StreamID)
		row, okChain := t.chain.get(n.Chain)
		if okStream && okChain {
			live[i] = catalog.EffectiveLiveFrom(s.LiveFrom, n.Chain, row.WatermarkSeq)
			found++
		}
	}
	return catalog.PlanSwaps(r, live, found, func(stream int64, at segment.Pos) *catalog.Ref {
		return t.standing(r, refKey{stream, at.Epoch, at.Seq})
	})
}

// standing is the ref of a key, nil if none stands.
func (t *tx) standing(r *catalog.Rewrite, at refKey) *catalog.Ref {
	if t.skip[CommitRefs] { // whatever stands, or nothing, is what was seen
		for i := range r.Runs {
			for j := range r.Runs[i].Expect {
				if e := r.Runs[i].Expect[j]; keyOf(&e) == at {
					return &e
				}
			}
		}
	}
	have, ok := t.ref.get(at)
	if !ok {
		return nil
	}
	out := *have
	return &out
}

// applySwaps writes what the runs' swaps say: retired rows out, committed ones and
// remainders in, watchers armed.
func (t *tx) applySwaps(swaps []catalog.Swap) (catalog.Rewritten, error) {
	out, gone, come := catalog.SwapRefs(swaps)
	for i := range come {
		if err := t.checkObject(&come[i]); err != nil {
			return out, err
		}
	}
	for i := range gone {
		if have, ok := t.ref.get(keyOf(&gone[i])); ok {
			t.dropRef(have)
		}
	}
	for i := range come {
		r := come[i]
		t.putRef(&r)
	}
	if !t.skip[Watch] {
		t.watchSettled(gone)
	}
	return out, nil
}

// watchSettled arms the reap-checks of the settled objects among the refs, one read
// grace out. Slots have their settle markers.
func (t *tx) watchSettled(refs []catalog.Ref) {
	t.armAll(catalog.DutyReapCheck, catalog.WatchersOf(refs), t.grace())
}

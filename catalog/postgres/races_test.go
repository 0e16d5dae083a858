package postgres

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/segment"
)

// The guards of 03, each as two verbs that meet.
var races = []race{
	{"commit against condemn", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		w.Clock.Advance(time.Hour)
		m, _ := w.Marker(catalog.DutyOrphan, commit.Key)
		return committing(commit), condemning(m.MarkerRef)
	}},
	{"condemn against commit", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		w.Clock.Advance(time.Hour)
		m, _ := w.Marker(catalog.DutyOrphan, commit.Key)
		return condemning(m.MarkerRef), committing(commit)
	}},
	{"announce against condemn of a dead key", func(w *catalogtest.World) (op, op) {
		m := ripe(w)
		return announcing(w, m.ID, "other"), reaping(m)
	}},
	{"condemn of a dead key against announce", func(w *catalogtest.World) (op, op) {
		m := ripe(w)
		return reaping(m), announcing(w, m.ID, "other")
	}},
	{"condemn of a dead key against announce, commit", func(w *catalogtest.World) (op, op) {
		m := ripe(w)
		again := catalogtest.Output(m.ID, 0, catalog.RefStream, w.Refs("a")...)
		announce := announcing(w, m.ID, "other")
		return reaping(m), both(announce, committing(catalog.Rewrite{Key: m.ID, Nonce: "other", Runs: []catalog.Run{again}}))
	}},
	{"condemn of a dead key against arm", func(w *catalogtest.World) (op, op) {
		m := ripe(w)
		return reaping(m), arming(m.Duty, m.ID)
	}},
	{"condemn of a dead key against a commit that leaves it", func(w *catalogtest.World) (op, op) {
		m := ripe(w)
		_, err := announcing(w, m.ID, "again")(w.Ctx, w.C)
		w.OK(err)
		again := catalog.Rewrite{Key: m.ID, Nonce: "again", Runs: []catalog.Run{catalogtest.Output(m.ID, 0, catalog.RefStream, w.Refs("a")...)}}
		_, err = w.C.CommitRewrite(w.Ctx, again)
		w.OK(err)
		key := segment.StreamKey("a", 1, 1, 7)
		w.Announce(key, "n")
		leave := catalog.Rewrite{Key: key, Nonce: "n", Runs: []catalog.Run{catalogtest.Output(key, 7, catalog.RefStream, w.Refs("a")...)}}
		return reaping(m), committing(leave)
	}},
	{"announce again against condemn", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2")
		w.Clock.Advance(time.Hour)
		m, _ := w.Marker(catalog.DutyOrphan, commit.Key)
		return announcing(w, commit.Key, "other"), condemning(m.MarkerRef)
	}},
	{"announce against announce", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		key := segment.StreamKey("a", 1, 1, 0)
		return announcing(w, key, "one"), announcing(w, key, "two")
	}},
	{"upload against condemn", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2")
		w.Clock.Advance(time.Hour)
		m, _ := w.Marker(catalog.DutyOrphan, commit.Key)
		return func(ctx context.Context, c catalog.Catalog) (any, error) {
			return nil, c.AddUpload(ctx, commit.Key, commit.Nonce, "u")
		}, condemning(m.MarkerRef)
	}},
	{"absorb against acquire", func(w *catalogtest.World) (op, op) { return absorbing1(w, "a:2"), stealing(w, 7) }},
	{"acquire against absorb", func(w *catalogtest.World) (op, op) { return stealing(w, 7), absorbing1(w, "a:2") }},
	{"acquire against acquire", func(w *catalogtest.World) (op, op) { return stealing(w, 7), stealing(w, 8) }},
	{"absorb against absorb", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		return absorbing1(w, "a:2 c:1"), absorbing1(w, "a:2 c:1")
	}},
	{"renew against acquire", func(w *catalogtest.World) (op, op) {
		return func(ctx context.Context, c catalog.Catalog) (any, error) {
			return c.RenewChain(ctx, w.Chain, w.Owner, w.Term, time.Hour)
		}, stealing(w, 7)
	}},
	{"absorb against trim", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		return absorbing1(w, "a:2 b:1"), deleting("a")
	}},
	{"trim against absorb", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		return deleting("a"), absorbing1(w, "a:2 b:1")
	}},
	{"commit against trim", func(w *catalogtest.World) (op, op) {
		return committing(rewriting(w, "a:2 b:1")), trimming("a", 2)
	}},
	{"commit against trim, walk", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return committing(commit), both(trimming("a", 3), retiring(w.Refs("a")[:1]))
	}},
	{"commit against commit", func(w *catalogtest.World) (op, op) {
		one := rewriting(w, "a:2 b:1")
		two := one
		two.Key = segment.StreamKey("a", 1, 1, 0)
		w.Announce(two.Key, two.Nonce)
		two.Runs = []catalog.Run{catalogtest.Output(two.Key, 0, catalog.RefStream, w.Refs("a")...)}
		return committing(one), committing(two)
	}},
	{"commit against itself", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return committing(commit), committing(commit)
	}},
	{"commit against loss", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return committing(commit), losing(w.Refs("a")[0].Key, "a")
	}},
	{"loss against commit", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return losing(w.Refs("a")[0].Key, "a"), committing(commit)
	}},
	{"retire against commit", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		dead := w.Refs("a")
		_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 3})
		w.OK(err)
		return retiring(dead[:1]), committing(commit)
	}},
	{"retire against retire of one object", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		w.Absorb("c:1")
		a, b := w.Refs("a"), w.Refs("b")
		for _, name := range []string{"a", "b"} {
			_, err := w.C.DeleteStream(w.Ctx, name)
			w.OK(err)
		}
		for _, m := range w.SettleMarkers() { // so that it shows who makes it due: the last
			w.OK(w.C.Postpone(w.Ctx, m, time.Hour, ""))
		}
		return retiring(a), retiring(b)
	}},
	{"watermark against a new consumer", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		return raising(w, 2, 1), absorbingWith(w, segment.Consumer{Name: "c", Cursor: 1})
	}},
	{"a new consumer against watermark", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		return absorbingWith(w, segment.Consumer{Name: "c", Cursor: 1}), raising(w, 2, 1)
	}},
	{"advance-trim against commit", func(w *catalogtest.World) (op, op) {
		commit := condemnedSlot(w)
		return advancing(w, 1, 2), committing(commit)
	}},
	{"commit against advance-trim", func(w *catalogtest.World) (op, op) {
		commit := condemnedSlot(w)
		return committing(commit), advancing(w, 1, 2)
	}},
	{"advance-trim against absorb", func(w *catalogtest.World) (op, op) {
		condemnedSlot(w)
		return advancing(w, 1, 2), absorbing1(w, "c:1")
	}},
	{"condemn-slots against absorb", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Settle("a")
		_, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
		w.OK(err)
		_, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
		w.OK(err)
		m, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
		return func(ctx context.Context, c catalog.Catalog) (any, error) {
			return c.CondemnSlots(ctx, m.MarkerRef, w.Chain, 1, 2)
		}, absorbing1(w, "c:1")
	}},
	{"rewritten against resolve", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		w.Settle("a")
		return rewinding(w), resolving(w)
	}},
	{"resolve against arm", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Settle("a")
		return resolving(w), arming(catalog.DutySettle, catalog.SettleID(w.Chain, 1))
	}},
	{"resolve against commit", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return resolving(w), committing(commit)
	}},
	{"reopen against an absorb that closes", func(w *catalogtest.World) (op, op) {
		_, err := w.C.SetTopologyState(w.Ctx, 1, catalog.TopologyOpen, catalog.TopologyClosing)
		w.OK(err)
		return stepping(catalog.TopologyClosing, catalog.TopologyOpen), closing(w)
	}},
	{"an absorb that closes against reopen", func(w *catalogtest.World) (op, op) {
		_, err := w.C.SetTopologyState(w.Ctx, 1, catalog.TopologyOpen, catalog.TopologyClosing)
		w.OK(err)
		return closing(w), stepping(catalog.TopologyClosing, catalog.TopologyOpen)
	}},
	{"margin against margin", func(*catalogtest.World) (op, op) { return margins(time.Minute), margins(2 * time.Minute) }},
	{"a plan against commit", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return planning("a"), committing(commit)
	}},
	{"commit against a plan", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return committing(commit), planning("a")
	}},
	{"commit against liveness", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return committing(commit), living(commit.Key)
	}},
	{"a window against commit, resolve", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return windowing(w), both(committing(commit), resolving(w))
	}},
	{"lease against lease", func(w *catalogtest.World) (op, op) { return leasing(w, "one"), leasing(w, "two") }},
	{"topology against topology", func(*catalogtest.World) (op, op) { return ensuring(2), ensuring(2) }},
}

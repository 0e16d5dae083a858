package postgres

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/segment"
)

// rewriting absorbs two slots and announces a pack of all their rows.
func rewriting(w *catalogtest.World, spans string) catalog.Rewrite {
	w.Absorb(spans)
	w.Absorb(spans)
	r := catalog.Rewrite{Key: segment.PackKey(w.Chain, 1, 2, 0), Nonce: "n"}
	for _, sp := range catalogtest.Spans(w.T, spans) {
		refs := w.Refs(sp.Stream)
		for i := range refs { // the rows of other streams lie between them
			if i == 0 || refs[i].PrevLast == refs[i-1].LastPos() {
				continue
			}
			w.T.Fatal("a gap")
		}
		r.Runs = append(r.Runs, catalogtest.Output(r.Key, 0, catalog.RefPack, refs...))
	}
	w.Announce(r.Key, r.Nonce)
	return r
}

func committing(r catalog.Rewrite) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.CommitRewrite(ctx, r) }
}

func condemning(m catalog.MarkerRef) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		v, _, err := c.CondemnIntent(ctx, m)
		return v, err
	}
}

// ripe makes a dead settled key of stream a whose reap-check is confirmed, its grace over.
func ripe(w *catalogtest.World) catalog.MarkerRef {
	w.Absorb("a:4")
	key := w.Settle("a")
	w.Settle("a") // a second revision: the first is dead
	m, _ := w.Marker(catalog.DutyReapCheck, key)
	w.OK(w.C.Confirm(w.Ctx, m.MarkerRef))
	w.Clock.Advance(time.Minute)
	m, _ = w.Marker(catalog.DutyReapCheck, key)
	return m.MarkerRef
}

func reaping(m catalog.MarkerRef) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return nil, c.CondemnKey(ctx, m) }
}

func announcing(w *catalogtest.World, key, nonce string) op {
	h := w.Holder()
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.Announce(ctx, catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: h, Nonce: nonce, Deadline: time.Second})
	}
}

func both(a, b op) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		x, errA := a(ctx, c)
		y, errB := b(ctx, c)
		return []string{say(x, errA), say(y, errB)}, nil
	}
}

func arming(d catalog.Duty, id string) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return nil, c.Arm(ctx, d, id, "", 0) }
}

func absorbing1(w *catalogtest.World, spans string) op {
	a := w.Build(spans)
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.AbsorbSlot(ctx, a) }
}

func absorbingWith(w *catalogtest.World, k segment.Consumer) op {
	a := w.Build("a:2")
	a.Consumers = []segment.Consumer{k}
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.AbsorbSlot(ctx, a) }
}

func closing(w *catalogtest.World) op {
	a := w.Build("a:2")
	a.Slot.Closed = true
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.AbsorbSlot(ctx, a) }
}

func stealing(w *catalogtest.World, owner uint64) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.AcquireChain(ctx, catalog.Acquire{Chain: w.Chain, Owner: catalogtest.UUID(owner), Address: "b:1", Lease: time.Hour, Expect: w.Term, Steal: true})
	}
}

func deleting(name string) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.DeleteStream(ctx, name) }
}

func trimming(name string, seq segment.Seq) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.TrimStream(ctx, name, segment.Pos{Epoch: 1, Seq: seq})
	}
}

func retiring(refs []catalog.Ref) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.RetireRefs(ctx, refs) }
}

func losing(key, stream string) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.AcceptLoss(ctx, key, stream)
	}
}

func raising(w *catalogtest.World, seq segment.Seq, id segment.ID) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.RaiseWatermark(ctx, catalog.Watermark{Chain: w.Chain, Seq: seq, Segment: id, Term: w.Term})
	}
}

// condemnedSlot has slot 1 condemned, its grace over, and two slots behind it about to be
// rewritten.
func condemnedSlot(w *catalogtest.World) catalog.Rewrite {
	w.Absorb("a:2")
	w.Settle("a")
	_, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	w.Absorb("b:2")
	w.Absorb("b:2")
	_, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	m, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	_, err = w.C.CondemnSlots(w.Ctx, m.MarkerRef, w.Chain, 1, 2)
	w.OK(err)
	w.Clock.Advance(time.Minute)
	r := catalog.Rewrite{Key: segment.StreamKey("b", 1, 3, 0), Nonce: "n"}
	r.Runs = []catalog.Run{catalogtest.Output(r.Key, 0, catalog.RefStream, w.Refs("b")...)}
	w.Announce(r.Key, r.Nonce)
	return r
}

func advancing(w *catalogtest.World, from, to segment.ID) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.AdvanceTrim(ctx, w.Chain, from, to)
	}
}

func rewinding(w *catalogtest.World) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.AdvanceRewritten(ctx, w.Chain, 0) }
}

func resolving(w *catalogtest.World) op {
	ms := w.SettleMarkers()
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.ResolveSettled(ctx, w.Chain, ms) }
}

func stepping(from, to catalog.TopologyState) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.SetTopologyState(ctx, 1, from, to) }
}

func margins(v time.Duration) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.SetReadGrace(ctx, v) }
}

func planning(name string) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.Plan(ctx, catalog.PlanRequest{Stream: name})
	}
}

func living(key string) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) { return c.Liveness(ctx, key) }
}

func leasing(w *catalogtest.World, owner string) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return nil, c.LeaseDuty(ctx, catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(w.Chain), Owner: owner}, time.Hour)
	}
}

func ensuring(e segment.Epoch) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.EnsureTopology(ctx, catalog.Topology{
			Epoch: e, Shards: 3, Class: segment.ClassStandard, Buckets: []string{"b"}, Settle: true, State: catalog.TopologyOpening,
		})
	}
}

// windowing answers the slots of a window and the refs that name them.
func windowing(w *catalogtest.World) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		win, err := c.Window(ctx, w.Chain, 1<<40)
		slots := make([]segment.ID, len(win.Slots))
		for i := range win.Slots {
			slots[i] = win.Slots[i].ID
		}
		return []any{slots, win.Refs}, err
	}
}

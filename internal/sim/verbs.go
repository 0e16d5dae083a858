package sim

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// One method a verb of catalog.Catalog; TestEveryVerbIsAStep finds one that is missing.

func (sc *stepCatalog) Now(ctx context.Context) (time.Time, error) {
	return step(ctx, sc, verb{"Now", reads, keyOf()}, func(ctx context.Context) (time.Time, error) { return sc.Catalog.Now(ctx) })
}

func (sc *stepCatalog) Settings(ctx context.Context) (catalog.Settings, error) {
	return step(ctx, sc, verb{"Settings", reads, keyOf()}, func(ctx context.Context) (catalog.Settings, error) { return sc.Catalog.Settings(ctx) })
}

func (sc *stepCatalog) Init(ctx context.Context, deployment segment.UUID) (catalog.Settings, error) {
	return step(ctx, sc, verb{"Init", mutates, keyOf()}, func(ctx context.Context) (catalog.Settings, error) { return sc.Catalog.Init(ctx, deployment) })
}

func (sc *stepCatalog) SeedReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return step(ctx, sc, verb{"SeedReadGrace", mutates, keyOf(d)}, func(ctx context.Context) (catalog.Margin, error) { return sc.Catalog.SeedReadGrace(ctx, d) })
}

func (sc *stepCatalog) SeedOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return step(ctx, sc, verb{"SeedOrphanGrace", mutates, keyOf(d)}, func(ctx context.Context) (catalog.Margin, error) { return sc.Catalog.SeedOrphanGrace(ctx, d) })
}

func (sc *stepCatalog) SetReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return step(ctx, sc, verb{"SetReadGrace", mutates, keyOf(d)}, func(ctx context.Context) (catalog.Margin, error) { return sc.Catalog.SetReadGrace(ctx, d) })
}

func (sc *stepCatalog) SetOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return step(ctx, sc, verb{"SetOrphanGrace", mutates, keyOf(d)}, func(ctx context.Context) (catalog.Margin, error) { return sc.Catalog.SetOrphanGrace(ctx, d) })
}

func (sc *stepCatalog) EnsureTopology(ctx context.Context, t catalog.Topology) (catalog.Topology, error) {
	return step(ctx, sc, verb{"EnsureTopology", mutates, keyOf(t)}, func(ctx context.Context) (catalog.Topology, error) { return sc.Catalog.EnsureTopology(ctx, t) })
}

func (sc *stepCatalog) Topologies(ctx context.Context) ([]catalog.Topology, error) {
	return step(ctx, sc, verb{"Topologies", reads, keyOf()}, func(ctx context.Context) ([]catalog.Topology, error) { return sc.Catalog.Topologies(ctx) })
}

func (sc *stepCatalog) SetTopologyState(ctx context.Context, e segment.Epoch, from catalog.TopologyState, to catalog.TopologyState) (catalog.Topology, error) {
	return step(ctx, sc, verb{"SetTopologyState", mutates, keyOf(e, from, to)}, func(ctx context.Context) (catalog.Topology, error) {
		return sc.Catalog.SetTopologyState(ctx, e, from, to)
	})
}

func (sc *stepCatalog) SetRetention(ctx context.Context, e segment.Epoch, r catalog.Retention) (catalog.Topology, error) {
	return step(ctx, sc, verb{"SetRetention", mutates, keyOf(e, r)}, func(ctx context.Context) (catalog.Topology, error) { return sc.Catalog.SetRetention(ctx, e, r) })
}

func (sc *stepCatalog) RegisterAuditor(ctx context.Context, id string, lease time.Duration) (int, error) {
	return step(ctx, sc, verb{"RegisterAuditor", mutates, keyOf(id, lease)}, func(ctx context.Context) (int, error) { return sc.Catalog.RegisterAuditor(ctx, id, lease) })
}

func (sc *stepCatalog) Audit(ctx context.Context, kind string, subject string, detail string) error {
	_, err := step(ctx, sc, verb{"Audit", mutates, keyOf(kind, subject)}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, sc.Catalog.Audit(ctx, kind, subject, detail)
	})
	return err
}

func (sc *stepCatalog) AcquireChain(ctx context.Context, a catalog.Acquire) (catalog.ChainRow, error) {
	return step(ctx, sc, verb{"AcquireChain", mutates, keyOf(a)}, func(ctx context.Context) (catalog.ChainRow, error) { return sc.Catalog.AcquireChain(ctx, a) })
}

func (sc *stepCatalog) RenewChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error) {
	return step(ctx, sc, verb{"RenewChain", mutates, keyOf(c, term, lease)}, func(ctx context.Context) (catalog.ChainRow, error) {
		return sc.Catalog.RenewChain(ctx, c, owner, term, lease)
	})
}

func (sc *stepCatalog) ReleaseChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term) error {
	_, err := step(ctx, sc, verb{"ReleaseChain", mutates, keyOf(c, term)}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, sc.Catalog.ReleaseChain(ctx, c, owner, term)
	})
	return err
}

func (sc *stepCatalog) Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error) {
	return step(ctx, sc, verb{"Chain", reads, keyOf(c)}, func(ctx context.Context) (catalog.ChainRow, error) { return sc.Catalog.Chain(ctx, c) })
}

func (sc *stepCatalog) Chains(ctx context.Context) ([]catalog.ChainRow, error) {
	return step(ctx, sc, verb{"Chains", reads, keyOf()}, func(ctx context.Context) ([]catalog.ChainRow, error) { return sc.Catalog.Chains(ctx) })
}

func (sc *stepCatalog) Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error) {
	return step(ctx, sc, verb{"Terms", reads, keyOf(c)}, func(ctx context.Context) ([]catalog.TermRow, error) { return sc.Catalog.Terms(ctx, c) })
}

func (sc *stepCatalog) AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (catalog.ChainRow, error) {
	return step(ctx, sc, verb{"AckClosed", mutates, keyOf(c, consumer, seq)}, func(ctx context.Context) (catalog.ChainRow, error) {
		return sc.Catalog.AckClosed(ctx, c, consumer, seq)
	})
}

func (sc *stepCatalog) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	return step(ctx, sc, verb{"AbsorbSlot", mutates, keyOf(a)}, func(ctx context.Context) (catalog.Absorbed, error) { return sc.Catalog.AbsorbSlot(ctx, a) })
}

func (sc *stepCatalog) LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error {
	_, err := step(ctx, sc, verb{"LeaseDuty", mutates, keyOf(h, lease)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.LeaseDuty(ctx, h, lease) })
	return err
}

func (sc *stepCatalog) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	_, err := step(ctx, sc, verb{"ReleaseDuty", mutates, keyOf(h)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.ReleaseDuty(ctx, h) })
	return err
}

func (sc *stepCatalog) Window(ctx context.Context, c segment.Chain, maxBytes int64) (catalog.Window, error) {
	return step(ctx, sc, verb{"Window", reads, keyOf(c, maxBytes)}, func(ctx context.Context) (catalog.Window, error) { return sc.Catalog.Window(ctx, c, maxBytes) })
}

func (sc *stepCatalog) Announce(ctx context.Context, a catalog.Announce) (catalog.Intent, error) {
	return step(ctx, sc, verb{"Announce", mutates, keyOf(a)}, func(ctx context.Context) (catalog.Intent, error) { return sc.Catalog.Announce(ctx, a) })
}

func (sc *stepCatalog) AddUpload(ctx context.Context, key string, nonce string, upload string) error {
	_, err := step(ctx, sc, verb{"AddUpload", mutates, keyOf(key)}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, sc.Catalog.AddUpload(ctx, key, nonce, upload)
	})
	return err
}

func (sc *stepCatalog) DropUpload(ctx context.Context, key string, nonce string, upload string) error {
	_, err := step(ctx, sc, verb{"DropUpload", mutates, keyOf(key)}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, sc.Catalog.DropUpload(ctx, key, nonce, upload)
	})
	return err
}

func (sc *stepCatalog) CommitRewrite(ctx context.Context, r catalog.Rewrite) (catalog.Rewritten, error) {
	return step(ctx, sc, verb{"CommitRewrite", mutates, keyOf(r)}, func(ctx context.Context) (catalog.Rewritten, error) {
		done, err := sc.Catalog.CommitRewrite(ctx, r)
		if err == nil {
			sc.p.sim.committed(sc.p, &r)
		}
		return done, err
	})
}

func (sc *stepCatalog) ResolveSettled(ctx context.Context, c segment.Chain, markers []catalog.MarkerRef) (int, error) {
	return step(ctx, sc, verb{"ResolveSettled", mutates, keyOf(c, markers)}, func(ctx context.Context) (int, error) { return sc.Catalog.ResolveSettled(ctx, c, markers) })
}

func (sc *stepCatalog) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (catalog.PackWindow, error) {
	return step(ctx, sc, verb{"PackWindow", reads, keyOf(c, generation, packs)}, func(ctx context.Context) (catalog.PackWindow, error) {
		return sc.Catalog.PackWindow(ctx, c, generation, packs)
	})
}

func (sc *stepCatalog) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	return step(ctx, sc, verb{"Liveness", reads, keyOf(key)}, func(ctx context.Context) ([]catalog.LiveRef, error) { return sc.Catalog.Liveness(ctx, key) })
}

func (sc *stepCatalog) Confirm(ctx context.Context, m catalog.MarkerRef) error {
	_, err := step(ctx, sc, verb{"Confirm", mutates, keyOf(m)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.Confirm(ctx, m) })
	return err
}

func (sc *stepCatalog) CondemnKey(ctx context.Context, m catalog.MarkerRef) error {
	_, err := step(ctx, sc, verb{"CondemnKey", mutates, keyOf(m)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.CondemnKey(ctx, m) })
	return err
}

func (sc *stepCatalog) BurnKey(ctx context.Context, keys []string) error {
	_, err := step(ctx, sc, verb{"BurnKey", mutates, keyOf(keys)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.BurnKey(ctx, keys) })
	return err
}

func (sc *stepCatalog) Intent(ctx context.Context, key string) (catalog.Intent, error) {
	return step(ctx, sc, verb{"Intent", reads, keyOf(key)}, func(ctx context.Context) (catalog.Intent, error) { return sc.Catalog.Intent(ctx, key) })
}

func (sc *stepCatalog) CondemnIntent(ctx context.Context, m catalog.MarkerRef) (catalog.Verdict, catalog.Intent, error) {
	p, err := step(ctx, sc, verb{"CondemnIntent", mutates, keyOf(m)}, func(ctx context.Context) (two[catalog.Verdict, catalog.Intent], error) {
		a, b, err := sc.Catalog.CondemnIntent(ctx, m)
		return two[catalog.Verdict, catalog.Intent]{a, b}, err
	})
	return p.a, p.b, err
}

func (sc *stepCatalog) BurnIntent(ctx context.Context, key string) error {
	_, err := step(ctx, sc, verb{"BurnIntent", mutates, keyOf(key)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.BurnIntent(ctx, key) })
	return err
}

func (sc *stepCatalog) RemoveIntent(ctx context.Context, key string) (bool, error) {
	return step(ctx, sc, verb{"RemoveIntent", mutates, keyOf(key)}, func(ctx context.Context) (bool, error) { return sc.Catalog.RemoveIntent(ctx, key) })
}

func (sc *stepCatalog) RaiseWatermark(ctx context.Context, w catalog.Watermark) (catalog.ChainRow, error) {
	return step(ctx, sc, verb{"RaiseWatermark", mutates, keyOf(w)}, func(ctx context.Context) (catalog.ChainRow, error) { return sc.Catalog.RaiseWatermark(ctx, w) })
}

func (sc *stepCatalog) DeadRefs(ctx context.Context, c segment.Chain, limit int) ([]catalog.Ref, bool, error) {
	p, err := step(ctx, sc, verb{"DeadRefs", reads, keyOf(c, limit)}, func(ctx context.Context) (two[[]catalog.Ref, bool], error) {
		a, b, err := sc.Catalog.DeadRefs(ctx, c, limit)
		return two[[]catalog.Ref, bool]{a, b}, err
	})
	return p.a, p.b, err
}

func (sc *stepCatalog) StraddlingRefs(ctx context.Context, c segment.Chain, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	p, err := step(ctx, sc, verb{"StraddlingRefs", reads, keyOf(c, after, limit)}, func(ctx context.Context) (two[[]catalog.Ref, bool], error) {
		a, b, err := sc.Catalog.StraddlingRefs(ctx, c, after, limit)
		return two[[]catalog.Ref, bool]{a, b}, err
	})
	return p.a, p.b, err
}

func (sc *stepCatalog) AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (catalog.ChainRow, error) {
	return step(ctx, sc, verb{"AdvanceRewritten", mutates, keyOf(c, consumerHoldMax)}, func(ctx context.Context) (catalog.ChainRow, error) {
		return sc.Catalog.AdvanceRewritten(ctx, c, consumerHoldMax)
	})
}

func (sc *stepCatalog) DueSlots(ctx context.Context, c segment.Chain, limit int) (catalog.TrimPlan, error) {
	return step(ctx, sc, verb{"DueSlots", reads, keyOf(c, limit)}, func(ctx context.Context) (catalog.TrimPlan, error) { return sc.Catalog.DueSlots(ctx, c, limit) })
}

func (sc *stepCatalog) AdvanceTrim(ctx context.Context, c segment.Chain, from segment.ID, to segment.ID) (catalog.ChainRow, error) {
	return step(ctx, sc, verb{"AdvanceTrim", mutates, keyOf(c, from, to)}, func(ctx context.Context) (catalog.ChainRow, error) { return sc.Catalog.AdvanceTrim(ctx, c, from, to) })
}

func (sc *stepCatalog) CondemnSlots(ctx context.Context, m catalog.MarkerRef, c segment.Chain, expect segment.ID, to segment.ID) (catalog.ChainRow, error) {
	return step(ctx, sc, verb{"CondemnSlots", mutates, keyOf(m, c, expect, to)}, func(ctx context.Context) (catalog.ChainRow, error) {
		return sc.Catalog.CondemnSlots(ctx, m, c, expect, to)
	})
}

func (sc *stepCatalog) TrimStream(ctx context.Context, name string, pos segment.Pos) (catalog.Stream, error) {
	return step(ctx, sc, verb{"TrimStream", mutates, keyOf(name, pos)}, func(ctx context.Context) (catalog.Stream, error) { return sc.Catalog.TrimStream(ctx, name, pos) })
}

func (sc *stepCatalog) DeleteStream(ctx context.Context, name string) (catalog.Stream, error) {
	return step(ctx, sc, verb{"DeleteStream", mutates, keyOf(name)}, func(ctx context.Context) (catalog.Stream, error) { return sc.Catalog.DeleteStream(ctx, name) })
}

func (sc *stepCatalog) WalkStream(ctx context.Context, streamID int64, limit int) (catalog.WalkPage, error) {
	return step(ctx, sc, verb{"WalkStream", reads, keyOf(streamID, limit)}, func(ctx context.Context) (catalog.WalkPage, error) {
		return sc.Catalog.WalkStream(ctx, streamID, limit)
	})
}

func (sc *stepCatalog) ArmWatchers(ctx context.Context, refs []catalog.Ref) error {
	_, err := step(ctx, sc, verb{"ArmWatchers", mutates, keyOf(refs)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.ArmWatchers(ctx, refs) })
	return err
}

func (sc *stepCatalog) RetireRefs(ctx context.Context, refs []catalog.Ref) (int, error) {
	return step(ctx, sc, verb{"RetireRefs", mutates, keyOf(refs)}, func(ctx context.Context) (int, error) { return sc.Catalog.RetireRefs(ctx, refs) })
}

func (sc *stepCatalog) AcceptLoss(ctx context.Context, key string, stream string) ([]catalog.Ref, error) {
	return step(ctx, sc, verb{"AcceptLoss", mutates, keyOf(key, stream)}, func(ctx context.Context) ([]catalog.Ref, error) { return sc.Catalog.AcceptLoss(ctx, key, stream) })
}

func (sc *stepCatalog) AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error {
	_, err := step(ctx, sc, verb{"AdvanceJournal", mutates, keyOf(c, n)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.AdvanceJournal(ctx, c, n) })
	return err
}

func (sc *stepCatalog) TakeDue(ctx context.Context, t catalog.Take) ([]catalog.Marker, error) {
	return step(ctx, sc, verb{"TakeDue", mutates, keyOf(t)}, func(ctx context.Context) ([]catalog.Marker, error) { return sc.Catalog.TakeDue(ctx, t) })
}

func (sc *stepCatalog) Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error {
	_, err := step(ctx, sc, verb{"Arm", mutates, keyOf(d, id, class, in)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.Arm(ctx, d, id, class, in) })
	return err
}

func (sc *stepCatalog) Resolve(ctx context.Context, m catalog.MarkerRef) error {
	_, err := step(ctx, sc, verb{"Resolve", mutates, keyOf(m)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.Resolve(ctx, m) })
	return err
}

func (sc *stepCatalog) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	_, err := step(ctx, sc, verb{"Postpone", mutates, keyOf(m, in)}, func(ctx context.Context) (struct{}, error) { return struct{}{}, sc.Catalog.Postpone(ctx, m, in, cause) })
	return err
}

func (sc *stepCatalog) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	return step(ctx, sc, verb{"Marker", reads, keyOf(d, id)}, func(ctx context.Context) (catalog.Marker, error) { return sc.Catalog.Marker(ctx, d, id) })
}

func (sc *stepCatalog) NextDue(ctx context.Context, duties []catalog.Duty) (time.Time, bool, error) {
	p, err := step(ctx, sc, verb{"NextDue", reads, keyOf(duties)}, func(ctx context.Context) (two[time.Time, bool], error) {
		a, b, err := sc.Catalog.NextDue(ctx, duties)
		return two[time.Time, bool]{a, b}, err
	})
	return p.a, p.b, err
}

func (sc *stepCatalog) Stream(ctx context.Context, name string) (catalog.Stream, error) {
	return step(ctx, sc, verb{"Stream", reads, keyOf(name)}, func(ctx context.Context) (catalog.Stream, error) { return sc.Catalog.Stream(ctx, name) })
}

func (sc *stepCatalog) Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error) {
	return step(ctx, sc, verb{"Streams", reads, keyOf(after, limit)}, func(ctx context.Context) ([]catalog.Stream, error) { return sc.Catalog.Streams(ctx, after, limit) })
}

func (sc *stepCatalog) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	return step(ctx, sc, verb{"Plan", reads, keyOf(r)}, func(ctx context.Context) (catalog.Plan, error) { return sc.Catalog.Plan(ctx, r) })
}

func (sc *stepCatalog) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	return step(ctx, sc, verb{"Slots", reads, keyOf(c, from, limit)}, func(ctx context.Context) ([]catalog.SlotRow, error) { return sc.Catalog.Slots(ctx, c, from, limit) })
}

func (sc *stepCatalog) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	return step(ctx, sc, verb{"ChainRefs", reads, keyOf(c, from, limit)}, func(ctx context.Context) ([]catalog.Ref, error) { return sc.Catalog.ChainRefs(ctx, c, from, limit) })
}

func (sc *stepCatalog) RefsAcross(ctx context.Context, c segment.Chain, at segment.Seq, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	p, err := step(ctx, sc, verb{"RefsAcross", mutates, keyOf(c, at, after, limit)}, func(ctx context.Context) (two[[]catalog.Ref, bool], error) {
		a, b, err := sc.Catalog.RefsAcross(ctx, c, at, after, limit)
		return two[[]catalog.Ref, bool]{a, b}, err
	})
	return p.a, p.b, err
}

func (sc *stepCatalog) Status(ctx context.Context) (catalog.Status, error) {
	return step(ctx, sc, verb{"Status", reads, keyOf()}, func(ctx context.Context) (catalog.Status, error) { return sc.Catalog.Status(ctx) })
}

func (sc *stepCatalog) Debts(ctx context.Context) (catalog.Debts, error) {
	return step(ctx, sc, verb{"Debts", mutates, keyOf()}, func(ctx context.Context) (catalog.Debts, error) { return sc.Catalog.Debts(ctx) })
}

func (sc *stepCatalog) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	return step(ctx, sc, verb{"RefsByKey", reads, keyOf(after, limit)}, func(ctx context.Context) ([]catalog.LiveRef, error) { return sc.Catalog.RefsByKey(ctx, after, limit) })
}

func (sc *stepCatalog) MarkersOf(ctx context.Context, d catalog.Duty, afterID string, limit int) ([]catalog.Marker, error) {
	return step(ctx, sc, verb{"MarkersOf", reads, keyOf(d, afterID, limit)}, func(ctx context.Context) ([]catalog.Marker, error) {
		return sc.Catalog.MarkersOf(ctx, d, afterID, limit)
	})
}

func (sc *stepCatalog) Intents(ctx context.Context, afterKey string, limit int) ([]catalog.Intent, error) {
	return step(ctx, sc, verb{"Intents", reads, keyOf(afterKey, limit)}, func(ctx context.Context) ([]catalog.Intent, error) { return sc.Catalog.Intents(ctx, afterKey, limit) })
}

func (sc *stepCatalog) AuditRows(ctx context.Context, after int64, limit int) ([]catalog.AuditRow, error) {
	return step(ctx, sc, verb{"AuditRows", reads, keyOf(after, limit)}, func(ctx context.Context) ([]catalog.AuditRow, error) { return sc.Catalog.AuditRows(ctx, after, limit) })
}

package catalogtest

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// The verbs, each to both.

func (w *Twin) Now(ctx context.Context) (time.Time, error) {
	return call(w, "Now", func(cat catalog.Catalog) (time.Time, error) { return cat.Now(ctx) })
}

// Session is the first one's: a verb that is bound to it is held to it there alone.
func (w *Twin) Session(ctx context.Context) (catalog.Session, error) { return w.first.Session(ctx) }

func (w *Twin) Settings(ctx context.Context) (catalog.Settings, error) {
	return call(w, "Settings", func(cat catalog.Catalog) (catalog.Settings, error) { return cat.Settings(ctx) })
}

func (w *Twin) Init(ctx context.Context, deployment segment.UUID) (catalog.Settings, error) {
	return call(w, "Init", func(cat catalog.Catalog) (catalog.Settings, error) { return cat.Init(ctx, deployment) })
}

func (w *Twin) SeedReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return call(w, "SeedReadGrace", func(cat catalog.Catalog) (catalog.Margin, error) { return cat.SeedReadGrace(ctx, d) })
}

func (w *Twin) SeedOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return call(w, "SeedOrphanGrace", func(cat catalog.Catalog) (catalog.Margin, error) { return cat.SeedOrphanGrace(ctx, d) })
}

func (w *Twin) SetReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return call(w, "SetReadGrace", func(cat catalog.Catalog) (catalog.Margin, error) { return cat.SetReadGrace(ctx, d) })
}

func (w *Twin) SetOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return call(w, "SetOrphanGrace", func(cat catalog.Catalog) (catalog.Margin, error) { return cat.SetOrphanGrace(ctx, d) })
}

func (w *Twin) EnsureTopology(ctx context.Context, t catalog.Topology) (catalog.Topology, error) {
	return call(w, "EnsureTopology", func(cat catalog.Catalog) (catalog.Topology, error) { return cat.EnsureTopology(ctx, t) })
}

func (w *Twin) Topologies(ctx context.Context) ([]catalog.Topology, error) {
	return call(w, "Topologies", func(cat catalog.Catalog) ([]catalog.Topology, error) { return cat.Topologies(ctx) })
}

func (w *Twin) SetTopologyState(ctx context.Context, e segment.Epoch, from, to catalog.TopologyState) (catalog.Topology, error) {
	return call(w, "SetTopologyState", func(cat catalog.Catalog) (catalog.Topology, error) { return cat.SetTopologyState(ctx, e, from, to) })
}

func (w *Twin) SetRetention(ctx context.Context, e segment.Epoch, r catalog.Retention) (catalog.Topology, error) {
	return call(w, "SetRetention", func(cat catalog.Catalog) (catalog.Topology, error) { return cat.SetRetention(ctx, e, r) })
}

func (w *Twin) RegisterAuditor(ctx context.Context, id string, lease time.Duration) (int, error) {
	return call(w, "RegisterAuditor", func(cat catalog.Catalog) (int, error) { return cat.RegisterAuditor(ctx, id, lease) })
}

func (w *Twin) Audit(ctx context.Context, kind, subject, detail string) error {
	return do(w, "Audit", func(cat catalog.Catalog) error { return cat.Audit(ctx, kind, subject, detail) })
}

func (w *Twin) AcquireChain(ctx context.Context, a catalog.Acquire) (catalog.ChainRow, error) {
	return call(w, "AcquireChain", func(cat catalog.Catalog) (catalog.ChainRow, error) { return cat.AcquireChain(ctx, a) })
}

func (w *Twin) RenewChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error) {
	return call(w, "RenewChain", func(cat catalog.Catalog) (catalog.ChainRow, error) { return cat.RenewChain(ctx, c, owner, term, lease) })
}

func (w *Twin) ReleaseChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term) error {
	return do(w, "ReleaseChain", func(cat catalog.Catalog) error { return cat.ReleaseChain(ctx, c, owner, term) })
}

func (w *Twin) Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error) {
	return call(w, "Chain", func(cat catalog.Catalog) (catalog.ChainRow, error) { return cat.Chain(ctx, c) })
}

func (w *Twin) Chains(ctx context.Context) ([]catalog.ChainRow, error) {
	return call(w, "Chains", func(cat catalog.Catalog) ([]catalog.ChainRow, error) { return cat.Chains(ctx) })
}

func (w *Twin) Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error) {
	return call(w, "Terms", func(cat catalog.Catalog) ([]catalog.TermRow, error) { return cat.Terms(ctx, c) })
}

func (w *Twin) AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (catalog.ChainRow, error) {
	return call(w, "AckClosed", func(cat catalog.Catalog) (catalog.ChainRow, error) { return cat.AckClosed(ctx, c, consumer, seq) })
}

func (w *Twin) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	return call(w, "AbsorbSlot", func(cat catalog.Catalog) (catalog.Absorbed, error) { return cat.AbsorbSlot(ctx, a) })
}

func (w *Twin) LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error {
	return do(w, "LeaseDuty", func(cat catalog.Catalog) error { return cat.LeaseDuty(ctx, h, lease) })
}

func (w *Twin) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	return do(w, "ReleaseDuty", func(cat catalog.Catalog) error { return cat.ReleaseDuty(ctx, h) })
}

func (w *Twin) Window(ctx context.Context, c segment.Chain, maxBytes int64) (catalog.Window, error) {
	return call(w, "Window", func(cat catalog.Catalog) (catalog.Window, error) { return cat.Window(ctx, c, maxBytes) })
}

func (w *Twin) Announce(ctx context.Context, a catalog.Announce) (catalog.Intent, error) {
	return call(w, "Announce", func(cat catalog.Catalog) (catalog.Intent, error) { return cat.Announce(ctx, a) })
}

func (w *Twin) AddUpload(ctx context.Context, key, nonce, upload string) error {
	return do(w, "AddUpload", func(cat catalog.Catalog) error { return cat.AddUpload(ctx, key, nonce, upload) })
}

func (w *Twin) DropUpload(ctx context.Context, key, nonce, upload string) error {
	return do(w, "DropUpload", func(cat catalog.Catalog) error { return cat.DropUpload(ctx, key, nonce, upload) })
}

func (w *Twin) CommitRewrite(ctx context.Context, r catalog.Rewrite) (catalog.Rewritten, error) {
	return call(w, "CommitRewrite", func(cat catalog.Catalog) (catalog.Rewritten, error) { return cat.CommitRewrite(ctx, r) })
}

func (w *Twin) ResolveSettled(ctx context.Context, c segment.Chain, markers []catalog.MarkerRef) (int, error) {
	return call(w, "ResolveSettled", func(cat catalog.Catalog) (int, error) { return cat.ResolveSettled(ctx, c, markers) })
}

func (w *Twin) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (catalog.PackWindow, error) {
	return call(w, "PackWindow", func(cat catalog.Catalog) (catalog.PackWindow, error) {
		return cat.PackWindow(ctx, c, generation, packs)
	})
}

func (w *Twin) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	return call(w, "Liveness", func(cat catalog.Catalog) ([]catalog.LiveRef, error) { return cat.Liveness(ctx, key) })
}

func (w *Twin) Confirm(ctx context.Context, m catalog.MarkerRef) error {
	return do(w, "Confirm", func(cat catalog.Catalog) error { return cat.Confirm(ctx, m) })
}

func (w *Twin) CondemnKey(ctx context.Context, m catalog.MarkerRef) error {
	return do(w, "CondemnKey", func(cat catalog.Catalog) error { return cat.CondemnKey(ctx, m) })
}

func (w *Twin) BurnKey(ctx context.Context, keys []string) error {
	return do(w, "BurnKey", func(cat catalog.Catalog) error { return cat.BurnKey(ctx, keys) })
}

func (w *Twin) Intent(ctx context.Context, key string) (catalog.Intent, error) {
	return call(w, "Intent", func(cat catalog.Catalog) (catalog.Intent, error) { return cat.Intent(ctx, key) })
}

func (w *Twin) CondemnIntent(ctx context.Context, m catalog.MarkerRef) (catalog.Verdict, catalog.Intent, error) {
	p, err := call(w, "CondemnIntent", func(cat catalog.Catalog) (pair[catalog.Verdict, catalog.Intent], error) {
		return pairOf(cat.CondemnIntent(ctx, m))
	})
	return p.A, p.B, err
}

func (w *Twin) BurnIntent(ctx context.Context, key string) error {
	return do(w, "BurnIntent", func(cat catalog.Catalog) error { return cat.BurnIntent(ctx, key) })
}

func (w *Twin) RemoveIntent(ctx context.Context, key string) (bool, error) {
	return call(w, "RemoveIntent", func(cat catalog.Catalog) (bool, error) { return cat.RemoveIntent(ctx, key) })
}

func (w *Twin) RaiseWatermark(ctx context.Context, mark catalog.Watermark) (catalog.ChainRow, error) {
	return call(w, "RaiseWatermark", func(cat catalog.Catalog) (catalog.ChainRow, error) { return cat.RaiseWatermark(ctx, mark) })
}

func (w *Twin) DeadRefs(ctx context.Context, c segment.Chain, limit int) ([]catalog.Ref, bool, error) {
	p, err := call(w, "DeadRefs", func(cat catalog.Catalog) (pair[[]catalog.Ref, bool], error) {
		return pairOf(cat.DeadRefs(ctx, c, limit))
	})
	return p.A, p.B, err
}

func (w *Twin) StraddlingRefs(ctx context.Context, c segment.Chain, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	p, err := call(w, "StraddlingRefs", func(cat catalog.Catalog) (pair[[]catalog.Ref, bool], error) {
		return pairOf(cat.StraddlingRefs(ctx, c, after, limit))
	})
	return p.A, p.B, err
}

func (w *Twin) AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (catalog.ChainRow, error) {
	return call(w, "AdvanceRewritten", func(cat catalog.Catalog) (catalog.ChainRow, error) {
		return cat.AdvanceRewritten(ctx, c, consumerHoldMax)
	})
}

func (w *Twin) DueSlots(ctx context.Context, c segment.Chain, limit int) (catalog.TrimPlan, error) {
	return call(w, "DueSlots", func(cat catalog.Catalog) (catalog.TrimPlan, error) { return cat.DueSlots(ctx, c, limit) })
}

func (w *Twin) AdvanceTrim(ctx context.Context, c segment.Chain, from, to segment.ID) (catalog.ChainRow, error) {
	return call(w, "AdvanceTrim", func(cat catalog.Catalog) (catalog.ChainRow, error) { return cat.AdvanceTrim(ctx, c, from, to) })
}

func (w *Twin) CondemnSlots(ctx context.Context, m catalog.MarkerRef, c segment.Chain, expect, to segment.ID) (catalog.ChainRow, error) {
	return call(w, "CondemnSlots", func(cat catalog.Catalog) (catalog.ChainRow, error) { return cat.CondemnSlots(ctx, m, c, expect, to) })
}

func (w *Twin) TrimStream(ctx context.Context, name string, pos segment.Pos) (catalog.Stream, error) {
	return call(w, "TrimStream", func(cat catalog.Catalog) (catalog.Stream, error) { return cat.TrimStream(ctx, name, pos) })
}

func (w *Twin) DeleteStream(ctx context.Context, name string) (catalog.Stream, error) {
	return call(w, "DeleteStream", func(cat catalog.Catalog) (catalog.Stream, error) { return cat.DeleteStream(ctx, name) })
}

func (w *Twin) WalkStream(ctx context.Context, streamID int64, limit int) (catalog.WalkPage, error) {
	return call(w, "WalkStream", func(cat catalog.Catalog) (catalog.WalkPage, error) { return cat.WalkStream(ctx, streamID, limit) })
}

func (w *Twin) ArmWatchers(ctx context.Context, refs []catalog.Ref) error {
	return do(w, "ArmWatchers", func(cat catalog.Catalog) error { return cat.ArmWatchers(ctx, refs) })
}

func (w *Twin) RetireRefs(ctx context.Context, refs []catalog.Ref) (int, error) {
	return call(w, "RetireRefs", func(cat catalog.Catalog) (int, error) { return cat.RetireRefs(ctx, refs) })
}

func (w *Twin) AcceptLoss(ctx context.Context, key, stream string) ([]catalog.Ref, error) {
	return call(w, "AcceptLoss", func(cat catalog.Catalog) ([]catalog.Ref, error) { return cat.AcceptLoss(ctx, key, stream) })
}

func (w *Twin) AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error {
	return do(w, "AdvanceJournal", func(cat catalog.Catalog) error { return cat.AdvanceJournal(ctx, c, n) })
}

func (w *Twin) TakeDue(ctx context.Context, t catalog.Take) ([]catalog.Marker, error) {
	return call(w, "TakeDue", func(cat catalog.Catalog) ([]catalog.Marker, error) { return cat.TakeDue(ctx, t) })
}

func (w *Twin) Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error {
	return do(w, "Arm", func(cat catalog.Catalog) error { return cat.Arm(ctx, d, id, class, in) })
}

func (w *Twin) Resolve(ctx context.Context, m catalog.MarkerRef) error {
	return do(w, "Resolve", func(cat catalog.Catalog) error { return cat.Resolve(ctx, m) })
}

func (w *Twin) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	return do(w, "Postpone", func(cat catalog.Catalog) error { return cat.Postpone(ctx, m, in, cause) })
}

func (w *Twin) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	return call(w, "Marker", func(cat catalog.Catalog) (catalog.Marker, error) { return cat.Marker(ctx, d, id) })
}

func (w *Twin) NextDue(ctx context.Context, duties []catalog.Duty) (time.Time, bool, error) {
	p, err := call(w, "NextDue", func(cat catalog.Catalog) (pair[time.Time, bool], error) { return pairOf(cat.NextDue(ctx, duties)) })
	return p.A, p.B, err
}

func (w *Twin) Stream(ctx context.Context, name string) (catalog.Stream, error) {
	return call(w, "Stream", func(cat catalog.Catalog) (catalog.Stream, error) { return cat.Stream(ctx, name) })
}

func (w *Twin) Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error) {
	return call(w, "Streams", func(cat catalog.Catalog) ([]catalog.Stream, error) { return cat.Streams(ctx, after, limit) })
}

func (w *Twin) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	return call(w, "Plan", func(cat catalog.Catalog) (catalog.Plan, error) { return cat.Plan(ctx, r) })
}

func (w *Twin) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	return call(w, "Slots", func(cat catalog.Catalog) ([]catalog.SlotRow, error) { return cat.Slots(ctx, c, from, limit) })
}

func (w *Twin) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	return call(w, "ChainRefs", func(cat catalog.Catalog) ([]catalog.Ref, error) { return cat.ChainRefs(ctx, c, from, limit) })
}

func (w *Twin) Status(ctx context.Context) (catalog.Status, error) {
	return call(w, "Status", func(cat catalog.Catalog) (catalog.Status, error) { return cat.Status(ctx) })
}

func (w *Twin) RefsAcross(ctx context.Context, c segment.Chain, at segment.Seq, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	p, err := call(w, "RefsAcross", func(cat catalog.Catalog) (pair[[]catalog.Ref, bool], error) {
		return pairOf(cat.RefsAcross(ctx, c, at, after, limit))
	})
	return p.A, p.B, err
}

func (w *Twin) Debts(ctx context.Context) (catalog.Debts, error) {
	return call(w, "Debts", func(cat catalog.Catalog) (catalog.Debts, error) { return cat.Debts(ctx) })
}

func (w *Twin) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	return call(w, "RefsByKey", func(cat catalog.Catalog) ([]catalog.LiveRef, error) { return cat.RefsByKey(ctx, after, limit) })
}

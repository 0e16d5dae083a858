// Code follows the interface of package catalog, verb by verb.

package audittest

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Catalog puts faults before every verb. Its fields are set before use.
type Catalog struct {
	catalog.Catalog
	F *Faults
}

// Now goes through the faults.
func (f *Catalog) Now(ctx context.Context) (time.Time, error) {
	return verb(f.F, "Now", func() (time.Time, error) { return f.Catalog.Now(ctx) })
}

// Settings goes through the faults.
func (f *Catalog) Settings(ctx context.Context) (catalog.Settings, error) {
	return verb(f.F, "Settings", func() (catalog.Settings, error) { return f.Catalog.Settings(ctx) })
}

// Init goes through the faults.
func (f *Catalog) Init(ctx context.Context, deployment segment.UUID) (catalog.Settings, error) {
	return verb(f.F, "Init", func() (catalog.Settings, error) { return f.Catalog.Init(ctx, deployment) })
}

// SeedReadGrace goes through the faults.
func (f *Catalog) SeedReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return verb(f.F, "SeedReadGrace", func() (catalog.Margin, error) { return f.Catalog.SeedReadGrace(ctx, d) })
}

// SeedOrphanGrace goes through the faults.
func (f *Catalog) SeedOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return verb(f.F, "SeedOrphanGrace", func() (catalog.Margin, error) { return f.Catalog.SeedOrphanGrace(ctx, d) })
}

// SetReadGrace goes through the faults.
func (f *Catalog) SetReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return verb(f.F, "SetReadGrace", func() (catalog.Margin, error) { return f.Catalog.SetReadGrace(ctx, d) })
}

// SetOrphanGrace goes through the faults.
func (f *Catalog) SetOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return verb(f.F, "SetOrphanGrace", func() (catalog.Margin, error) { return f.Catalog.SetOrphanGrace(ctx, d) })
}

// EnsureTopology goes through the faults.
func (f *Catalog) EnsureTopology(ctx context.Context, t catalog.Topology) (catalog.Topology, error) {
	return verb(f.F, "EnsureTopology", func() (catalog.Topology, error) { return f.Catalog.EnsureTopology(ctx, t) })
}

// Topologies goes through the faults.
func (f *Catalog) Topologies(ctx context.Context) ([]catalog.Topology, error) {
	return verb(f.F, "Topologies", func() ([]catalog.Topology, error) { return f.Catalog.Topologies(ctx) })
}

// RegisterAuditor goes through the faults.
func (f *Catalog) RegisterAuditor(ctx context.Context, id string, lease time.Duration) (int, error) {
	return verb(f.F, "RegisterAuditor", func() (int, error) { return f.Catalog.RegisterAuditor(ctx, id, lease) })
}

// Audit goes through the faults.
func (f *Catalog) Audit(ctx context.Context, kind string, subject string, detail string) error {
	return verb0(f.F, "Audit", func() error { return f.Catalog.Audit(ctx, kind, subject, detail) })
}

// AcquireChain goes through the faults.
func (f *Catalog) AcquireChain(ctx context.Context, a catalog.Acquire) (catalog.ChainRow, error) {
	return verb(f.F, "AcquireChain", func() (catalog.ChainRow, error) { return f.Catalog.AcquireChain(ctx, a) })
}

// RenewChain goes through the faults.
func (f *Catalog) RenewChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error) {
	return verb(f.F, "RenewChain", func() (catalog.ChainRow, error) { return f.Catalog.RenewChain(ctx, c, owner, term, lease) })
}

// ReleaseChain goes through the faults.
func (f *Catalog) ReleaseChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term) error {
	return verb0(f.F, "ReleaseChain", func() error { return f.Catalog.ReleaseChain(ctx, c, owner, term) })
}

// Chain goes through the faults.
func (f *Catalog) Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error) {
	return verb(f.F, "Chain", func() (catalog.ChainRow, error) { return f.Catalog.Chain(ctx, c) })
}

// Chains goes through the faults.
func (f *Catalog) Chains(ctx context.Context) ([]catalog.ChainRow, error) {
	return verb(f.F, "Chains", func() ([]catalog.ChainRow, error) { return f.Catalog.Chains(ctx) })
}

// Terms goes through the faults.
func (f *Catalog) Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error) {
	return verb(f.F, "Terms", func() ([]catalog.TermRow, error) { return f.Catalog.Terms(ctx, c) })
}

// AbsorbSlot goes through the faults.
func (f *Catalog) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	return verb(f.F, "AbsorbSlot", func() (catalog.Absorbed, error) { return f.Catalog.AbsorbSlot(ctx, a) })
}

// LeaseDuty goes through the faults.
func (f *Catalog) LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error {
	return verb0(f.F, "LeaseDuty", func() error { return f.Catalog.LeaseDuty(ctx, h, lease) })
}

// ReleaseDuty goes through the faults.
func (f *Catalog) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	return verb0(f.F, "ReleaseDuty", func() error { return f.Catalog.ReleaseDuty(ctx, h) })
}

// Window goes through the faults.
func (f *Catalog) Window(ctx context.Context, c segment.Chain, maxBytes int64) (catalog.Window, error) {
	return verb(f.F, "Window", func() (catalog.Window, error) { return f.Catalog.Window(ctx, c, maxBytes) })
}

// Announce goes through the faults.
func (f *Catalog) Announce(ctx context.Context, a catalog.Announce) (catalog.Intent, error) {
	return verb(f.F, "Announce", func() (catalog.Intent, error) { return f.Catalog.Announce(ctx, a) })
}

// AddUpload goes through the faults.
func (f *Catalog) AddUpload(ctx context.Context, key string, nonce string, upload string) error {
	return verb0(f.F, "AddUpload", func() error { return f.Catalog.AddUpload(ctx, key, nonce, upload) })
}

// DropUpload goes through the faults.
func (f *Catalog) DropUpload(ctx context.Context, key string, nonce string, upload string) error {
	return verb0(f.F, "DropUpload", func() error { return f.Catalog.DropUpload(ctx, key, nonce, upload) })
}

// CommitRewrite goes through the faults.
func (f *Catalog) CommitRewrite(ctx context.Context, r catalog.Rewrite) (catalog.Rewritten, error) {
	return verb(f.F, "CommitRewrite", func() (catalog.Rewritten, error) { return f.Catalog.CommitRewrite(ctx, r) })
}

// ResolveSettled goes through the faults.
func (f *Catalog) ResolveSettled(ctx context.Context, c segment.Chain, markers []catalog.MarkerRef) (int, error) {
	return verb(f.F, "ResolveSettled", func() (int, error) { return f.Catalog.ResolveSettled(ctx, c, markers) })
}

// Liveness goes through the faults.
func (f *Catalog) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	return verb(f.F, "Liveness", func() ([]catalog.LiveRef, error) { return f.Catalog.Liveness(ctx, key) })
}

// Confirm goes through the faults.
func (f *Catalog) Confirm(ctx context.Context, m catalog.MarkerRef) error {
	return verb0(f.F, "Confirm", func() error { return f.Catalog.Confirm(ctx, m) })
}

// CondemnKey goes through the faults.
func (f *Catalog) CondemnKey(ctx context.Context, m catalog.MarkerRef) error {
	return verb0(f.F, "CondemnKey", func() error { return f.Catalog.CondemnKey(ctx, m) })
}

// BurnKey goes through the faults.
func (f *Catalog) BurnKey(ctx context.Context, keys []string) error {
	return verb0(f.F, "BurnKey", func() error { return f.Catalog.BurnKey(ctx, keys) })
}

// Intent goes through the faults.
func (f *Catalog) Intent(ctx context.Context, key string) (catalog.Intent, error) {
	return verb(f.F, "Intent", func() (catalog.Intent, error) { return f.Catalog.Intent(ctx, key) })
}

// CondemnIntent goes through the faults.
func (f *Catalog) CondemnIntent(ctx context.Context, m catalog.MarkerRef) (catalog.Verdict, catalog.Intent, error) {
	type pair struct {
		a catalog.Verdict
		b catalog.Intent
	}
	p, err := verb(f.F, "CondemnIntent", func() (pair, error) {
		a, b, err := f.Catalog.CondemnIntent(ctx, m)
		return pair{a, b}, err
	})
	return p.a, p.b, err
}

// BurnIntent goes through the faults.
func (f *Catalog) BurnIntent(ctx context.Context, key string) error {
	return verb0(f.F, "BurnIntent", func() error { return f.Catalog.BurnIntent(ctx, key) })
}

// RemoveIntent goes through the faults.
func (f *Catalog) RemoveIntent(ctx context.Context, key string) (bool, error) {
	return verb(f.F, "RemoveIntent", func() (bool, error) { return f.Catalog.RemoveIntent(ctx, key) })
}

// AdvanceRewritten goes through the faults.
func (f *Catalog) AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (catalog.ChainRow, error) {
	return verb(f.F, "AdvanceRewritten", func() (catalog.ChainRow, error) { return f.Catalog.AdvanceRewritten(ctx, c, consumerHoldMax) })
}

// DueSlots goes through the faults.
func (f *Catalog) DueSlots(ctx context.Context, c segment.Chain, limit int) (catalog.TrimPlan, error) {
	return verb(f.F, "DueSlots", func() (catalog.TrimPlan, error) { return f.Catalog.DueSlots(ctx, c, limit) })
}

// AdvanceTrim goes through the faults.
func (f *Catalog) AdvanceTrim(ctx context.Context, c segment.Chain, from segment.ID, to segment.ID) (catalog.ChainRow, error) {
	return verb(f.F, "AdvanceTrim", func() (catalog.ChainRow, error) { return f.Catalog.AdvanceTrim(ctx, c, from, to) })
}

// CondemnSlots goes through the faults.
func (f *Catalog) CondemnSlots(ctx context.Context, m catalog.MarkerRef, c segment.Chain, expect segment.ID, to segment.ID) (catalog.ChainRow, error) {
	return verb(f.F, "CondemnSlots", func() (catalog.ChainRow, error) { return f.Catalog.CondemnSlots(ctx, m, c, expect, to) })
}

// TrimStream goes through the faults.
func (f *Catalog) TrimStream(ctx context.Context, name string, pos segment.Pos) (catalog.Stream, error) {
	return verb(f.F, "TrimStream", func() (catalog.Stream, error) { return f.Catalog.TrimStream(ctx, name, pos) })
}

// DeleteStream goes through the faults.
func (f *Catalog) DeleteStream(ctx context.Context, name string) (catalog.Stream, error) {
	return verb(f.F, "DeleteStream", func() (catalog.Stream, error) { return f.Catalog.DeleteStream(ctx, name) })
}

// WalkStream goes through the faults.
func (f *Catalog) WalkStream(ctx context.Context, streamID int64, limit int) (catalog.WalkPage, error) {
	return verb(f.F, "WalkStream", func() (catalog.WalkPage, error) { return f.Catalog.WalkStream(ctx, streamID, limit) })
}

// ArmWatchers goes through the faults.
func (f *Catalog) ArmWatchers(ctx context.Context, refs []catalog.Ref) error {
	return verb0(f.F, "ArmWatchers", func() error { return f.Catalog.ArmWatchers(ctx, refs) })
}

// RetireRefs goes through the faults.
func (f *Catalog) RetireRefs(ctx context.Context, refs []catalog.Ref) (int, error) {
	return verb(f.F, "RetireRefs", func() (int, error) { return f.Catalog.RetireRefs(ctx, refs) })
}

// AdvanceJournal goes through the faults.
func (f *Catalog) AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error {
	return verb0(f.F, "AdvanceJournal", func() error { return f.Catalog.AdvanceJournal(ctx, c, n) })
}

// TakeDue goes through the faults.
func (f *Catalog) TakeDue(ctx context.Context, t catalog.Take) ([]catalog.Marker, error) {
	return verb(f.F, "TakeDue", func() ([]catalog.Marker, error) { return f.Catalog.TakeDue(ctx, t) })
}

// Arm goes through the faults.
func (f *Catalog) Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error {
	return verb0(f.F, "Arm", func() error { return f.Catalog.Arm(ctx, d, id, class, in) })
}

// Resolve goes through the faults.
func (f *Catalog) Resolve(ctx context.Context, m catalog.MarkerRef) error {
	return verb0(f.F, "Resolve", func() error { return f.Catalog.Resolve(ctx, m) })
}

// Postpone goes through the faults.
func (f *Catalog) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	return verb0(f.F, "Postpone", func() error { return f.Catalog.Postpone(ctx, m, in, cause) })
}

// NextDue goes through the faults.
func (f *Catalog) NextDue(ctx context.Context, duties []catalog.Duty) (time.Time, bool, error) {
	type pair struct {
		a time.Time
		b bool
	}
	p, err := verb(f.F, "NextDue", func() (pair, error) {
		a, b, err := f.Catalog.NextDue(ctx, duties)
		return pair{a, b}, err
	})
	return p.a, p.b, err
}

// Stream goes through the faults.
func (f *Catalog) Stream(ctx context.Context, name string) (catalog.Stream, error) {
	return verb(f.F, "Stream", func() (catalog.Stream, error) { return f.Catalog.Stream(ctx, name) })
}

// Streams goes through the faults.
func (f *Catalog) Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error) {
	return verb(f.F, "Streams", func() ([]catalog.Stream, error) { return f.Catalog.Streams(ctx, after, limit) })
}

// Plan goes through the faults.
func (f *Catalog) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	return verb(f.F, "Plan", func() (catalog.Plan, error) { return f.Catalog.Plan(ctx, r) })
}

// Slots goes through the faults.
func (f *Catalog) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	return verb(f.F, "Slots", func() ([]catalog.SlotRow, error) { return f.Catalog.Slots(ctx, c, from, limit) })
}

// ChainRefs goes through the faults.
func (f *Catalog) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	return verb(f.F, "ChainRefs", func() ([]catalog.Ref, error) { return f.Catalog.ChainRefs(ctx, c, from, limit) })
}

// Status goes through the faults.
func (f *Catalog) Status(ctx context.Context) (catalog.Status, error) {
	return verb(f.F, "Status", func() (catalog.Status, error) { return f.Catalog.Status(ctx) })
}

// Debts goes through the faults.
func (f *Catalog) Debts(ctx context.Context) (catalog.Debts, error) {
	return verb(f.F, "Debts", func() (catalog.Debts, error) { return f.Catalog.Debts(ctx) })
}

// RefsByKey goes through the faults.
func (f *Catalog) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	return verb(f.F, "RefsByKey", func() ([]catalog.LiveRef, error) { return f.Catalog.RefsByKey(ctx, after, limit) })
}

// MarkersOf goes through the faults.
func (f *Catalog) MarkersOf(ctx context.Context, d catalog.Duty, afterID string, limit int) ([]catalog.Marker, error) {
	return verb(f.F, "MarkersOf", func() ([]catalog.Marker, error) { return f.Catalog.MarkersOf(ctx, d, afterID, limit) })
}

// Intents goes through the faults.
func (f *Catalog) Intents(ctx context.Context, afterKey string, limit int) ([]catalog.Intent, error) {
	return verb(f.F, "Intents", func() ([]catalog.Intent, error) { return f.Catalog.Intents(ctx, afterKey, limit) })
}

// AuditRows goes through the faults.
func (f *Catalog) AuditRows(ctx context.Context, after int64, limit int) ([]catalog.AuditRow, error) {
	return verb(f.F, "AuditRows", func() ([]catalog.AuditRow, error) { return f.Catalog.AuditRows(ctx, after, limit) })
}

// PackWindow goes through the faults.
func (f *Catalog) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (catalog.PackWindow, error) {
	return verb(f.F, "PackWindow", func() (catalog.PackWindow, error) { return f.Catalog.PackWindow(ctx, c, generation, packs) })
}

// AcceptLoss goes through the faults.
func (f *Catalog) AcceptLoss(ctx context.Context, key, stream string) ([]catalog.Ref, error) {
	return verb(f.F, "AcceptLoss", func() ([]catalog.Ref, error) { return f.Catalog.AcceptLoss(ctx, key, stream) })
}

package auditbench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// counted is a catalog whose verbs are counted, each one transaction. A verb that stands
// in catalog.Catalog and not here fails TestEveryVerbIsCounted.
type counted struct {
	catalog.Catalog

	verbs atomic.Int64
}

func (v *counted) Now(ctx context.Context) (time.Time, error) {
	v.verbs.Add(1)
	return v.Catalog.Now(ctx)
}

func (v *counted) Settings(ctx context.Context) (catalog.Settings, error) {
	v.verbs.Add(1)
	return v.Catalog.Settings(ctx)
}

func (v *counted) Init(ctx context.Context, deployment segment.UUID) (catalog.Settings, error) {
	v.verbs.Add(1)
	return v.Catalog.Init(ctx, deployment)
}

func (v *counted) SeedReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	v.verbs.Add(1)
	return v.Catalog.SeedReadGrace(ctx, d)
}

func (v *counted) SeedOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	v.verbs.Add(1)
	return v.Catalog.SeedOrphanGrace(ctx, d)
}

func (v *counted) SetReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	v.verbs.Add(1)
	return v.Catalog.SetReadGrace(ctx, d)
}

func (v *counted) SetOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	v.verbs.Add(1)
	return v.Catalog.SetOrphanGrace(ctx, d)
}

func (v *counted) EnsureTopology(ctx context.Context, t catalog.Topology) (catalog.Topology, error) {
	v.verbs.Add(1)
	return v.Catalog.EnsureTopology(ctx, t)
}

func (v *counted) Topologies(ctx context.Context) ([]catalog.Topology, error) {
	v.verbs.Add(1)
	return v.Catalog.Topologies(ctx)
}

func (v *counted) SetTopologyState(ctx context.Context, e segment.Epoch, from, to catalog.TopologyState) (catalog.Topology, error) {
	v.verbs.Add(1)
	return v.Catalog.SetTopologyState(ctx, e, from, to)
}

func (v *counted) SetRetention(ctx context.Context, e segment.Epoch, r catalog.Retention) (catalog.Topology, error) {
	v.verbs.Add(1)
	return v.Catalog.SetRetention(ctx, e, r)
}

func (v *counted) RegisterAuditor(ctx context.Context, id string, lease time.Duration) (int, error) {
	v.verbs.Add(1)
	return v.Catalog.RegisterAuditor(ctx, id, lease)
}

func (v *counted) Audit(ctx context.Context, kind, subject, detail string) error {
	v.verbs.Add(1)
	return v.Catalog.Audit(ctx, kind, subject, detail)
}

func (v *counted) AcquireChain(ctx context.Context, a catalog.Acquire) (catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.AcquireChain(ctx, a)
}

func (v *counted) RenewChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.RenewChain(ctx, c, owner, term, lease)
}

func (v *counted) ReleaseChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term) error {
	v.verbs.Add(1)
	return v.Catalog.ReleaseChain(ctx, c, owner, term)
}

func (v *counted) Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.Chain(ctx, c)
}

func (v *counted) Chains(ctx context.Context) ([]catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.Chains(ctx)
}

func (v *counted) Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error) {
	v.verbs.Add(1)
	return v.Catalog.Terms(ctx, c)
}

func (v *counted) AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.AckClosed(ctx, c, consumer, seq)
}

func (v *counted) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	v.verbs.Add(1)
	return v.Catalog.AbsorbSlot(ctx, a)
}

func (v *counted) LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error {
	v.verbs.Add(1)
	return v.Catalog.LeaseDuty(ctx, h, lease)
}

func (v *counted) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	v.verbs.Add(1)
	return v.Catalog.ReleaseDuty(ctx, h)
}

func (v *counted) Window(ctx context.Context, c segment.Chain, maxBytes int64) (catalog.Window, error) {
	v.verbs.Add(1)
	return v.Catalog.Window(ctx, c, maxBytes)
}

func (v *counted) Announce(ctx context.Context, a catalog.Announce) (catalog.Intent, error) {
	v.verbs.Add(1)
	return v.Catalog.Announce(ctx, a)
}

func (v *counted) AddUpload(ctx context.Context, key, nonce, upload string) error {
	v.verbs.Add(1)
	return v.Catalog.AddUpload(ctx, key, nonce, upload)
}

func (v *counted) DropUpload(ctx context.Context, key, nonce, upload string) error {
	v.verbs.Add(1)
	return v.Catalog.DropUpload(ctx, key, nonce, upload)
}

func (v *counted) CommitRewrite(ctx context.Context, r catalog.Rewrite) (catalog.Rewritten, error) {
	v.verbs.Add(1)
	return v.Catalog.CommitRewrite(ctx, r)
}

func (v *counted) ResolveSettled(ctx context.Context, c segment.Chain, markers []catalog.MarkerRef) (int, error) {
	v.verbs.Add(1)
	return v.Catalog.ResolveSettled(ctx, c, markers)
}

func (v *counted) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (catalog.PackWindow, error) {
	v.verbs.Add(1)
	return v.Catalog.PackWindow(ctx, c, generation, packs)
}

package verbs

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// One method a verb of catalog.Catalog, here and in judging.go; TestEveryVerb finds one
// that is missing.

func (x *around) Now(ctx context.Context) (time.Time, error) {
	return one(ctx, x, Verb{Name: "Now"}, func(ctx context.Context) (time.Time, error) {
		return x.catalog.Now(ctx)
	})
}

func (x *around) Session(ctx context.Context) (catalog.Session, error) {
	return one(ctx, x, Verb{Name: "Session"}, func(ctx context.Context) (catalog.Session, error) {
		return x.catalog.Session(ctx)
	})
}

func (x *around) Settings(ctx context.Context) (catalog.Settings, error) {
	return one(ctx, x, Verb{Name: "Settings"}, func(ctx context.Context) (catalog.Settings, error) {
		return x.catalog.Settings(ctx)
	})
}

func (x *around) Init(ctx context.Context, deployment segment.UUID) (catalog.Settings, error) {
	return one(ctx, x, Verb{Name: "Init", Mutates: true}, func(ctx context.Context) (catalog.Settings, error) {
		return x.catalog.Init(ctx, deployment)
	})
}

func (x *around) SeedReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return one(ctx, x, Verb{Name: "SeedReadGrace", Mutates: true, About: []any{d}}, func(ctx context.Context) (catalog.Margin, error) {
		return x.catalog.SeedReadGrace(ctx, d)
	})
}

func (x *around) SeedOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return one(ctx, x, Verb{Name: "SeedOrphanGrace", Mutates: true, About: []any{d}}, func(ctx context.Context) (catalog.Margin, error) {
		return x.catalog.SeedOrphanGrace(ctx, d)
	})
}

func (x *around) SetReadGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return one(ctx, x, Verb{Name: "SetReadGrace", Mutates: true, About: []any{d}}, func(ctx context.Context) (catalog.Margin, error) {
		return x.catalog.SetReadGrace(ctx, d)
	})
}

func (x *around) SetOrphanGrace(ctx context.Context, d time.Duration) (catalog.Margin, error) {
	return one(ctx, x, Verb{Name: "SetOrphanGrace", Mutates: true, About: []any{d}}, func(ctx context.Context) (catalog.Margin, error) {
		return x.catalog.SetOrphanGrace(ctx, d)
	})
}

func (x *around) EnsureTopology(ctx context.Context, t catalog.Topology) (catalog.Topology, error) {
	return one(ctx, x, Verb{Name: "EnsureTopology", Mutates: true, About: []any{t}}, func(ctx context.Context) (catalog.Topology, error) {
		return x.catalog.EnsureTopology(ctx, t)
	})
}

func (x *around) Topologies(ctx context.Context) ([]catalog.Topology, error) {
	return one(ctx, x, Verb{Name: "Topologies"}, func(ctx context.Context) ([]catalog.Topology, error) {
		return x.catalog.Topologies(ctx)
	})
}

func (x *around) SetTopologyState(ctx context.Context, e segment.Epoch, from catalog.TopologyState, to catalog.TopologyState) (catalog.Topology, error) {
	return one(ctx, x, Verb{Name: "SetTopologyState", Mutates: true, About: []any{e, from, to}}, func(ctx context.Context) (catalog.Topology, error) {
		return x.catalog.SetTopologyState(ctx, e, from, to)
	})
}

func (x *around) SetRetention(ctx context.Context, e segment.Epoch, r catalog.Retention) (catalog.Topology, error) {
	return one(ctx, x, Verb{Name: "SetRetention", Mutates: true, About: []any{e, r}}, func(ctx context.Context) (catalog.Topology, error) {
		return x.catalog.SetRetention(ctx, e, r)
	})
}

func (x *around) RegisterAuditor(ctx context.Context, id string, lease time.Duration) (int, error) {
	return one(ctx, x, Verb{Name: "RegisterAuditor", Mutates: true, About: []any{id, lease}}, func(ctx context.Context) (int, error) {
		return x.catalog.RegisterAuditor(ctx, id, lease)
	})
}

func (x *around) Audit(ctx context.Context, kind string, subject string, detail string) error {
	return x.call(ctx, Verb{Name: "Audit", Mutates: true, About: []any{kind, subject}}, func(ctx context.Context) error {
		return x.catalog.Audit(ctx, kind, subject, detail)
	})
}

func (x *around) AcquireChain(ctx context.Context, a catalog.Acquire) (catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "AcquireChain", Mutates: true, About: []any{a}}, func(ctx context.Context) (catalog.ChainRow, error) {
		return x.catalog.AcquireChain(ctx, a)
	})
}

func (x *around) RenewChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "RenewChain", Mutates: true, About: []any{c, term, lease}}, func(ctx context.Context) (catalog.ChainRow, error) {
		return x.catalog.RenewChain(ctx, c, owner, term, lease)
	})
}

func (x *around) ReleaseChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term) error {
	return x.call(ctx, Verb{Name: "ReleaseChain", Mutates: true, About: []any{c, term}}, func(ctx context.Context) error {
		return x.catalog.ReleaseChain(ctx, c, owner, term)
	})
}

func (x *around) Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "Chain", About: []any{c}}, func(ctx context.Context) (catalog.ChainRow, error) {
		return x.catalog.Chain(ctx, c)
	})
}

func (x *around) Chains(ctx context.Context) ([]catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "Chains"}, func(ctx context.Context) ([]catalog.ChainRow, error) {
		return x.catalog.Chains(ctx)
	})
}

func (x *around) Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error) {
	return one(ctx, x, Verb{Name: "Terms", About: []any{c}}, func(ctx context.Context) ([]catalog.TermRow, error) {
		return x.catalog.Terms(ctx, c)
	})
}

func (x *around) AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "AckClosed", Mutates: true, About: []any{c, consumer, seq}}, func(ctx context.Context) (catalog.ChainRow, error) {
		return x.catalog.AckClosed(ctx, c, consumer, seq)
	})
}

func (x *around) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	return one(ctx, x, Verb{Name: "AbsorbSlot", Mutates: true, About: []any{a}}, func(ctx context.Context) (catalog.Absorbed, error) {
		return x.catalog.AbsorbSlot(ctx, a)
	})
}

func (x *around) LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error {
	return x.call(ctx, Verb{Name: "LeaseDuty", Mutates: true, About: []any{h, lease}}, func(ctx context.Context) error { return x.catalog.LeaseDuty(ctx, h, lease) })
}

func (x *around) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	return x.call(ctx, Verb{Name: "ReleaseDuty", Mutates: true, About: []any{h}}, func(ctx context.Context) error { return x.catalog.ReleaseDuty(ctx, h) })
}

func (x *around) Window(ctx context.Context, c segment.Chain, maxBytes int64) (catalog.Window, error) {
	return one(ctx, x, Verb{Name: "Window", About: []any{c, maxBytes}}, func(ctx context.Context) (catalog.Window, error) {
		return x.catalog.Window(ctx, c, maxBytes)
	})
}

func (x *around) Announce(ctx context.Context, a catalog.Announce) (catalog.Intent, error) {
	return one(ctx, x, Verb{Name: "Announce", Mutates: true, About: []any{a}}, func(ctx context.Context) (catalog.Intent, error) {
		return x.catalog.Announce(ctx, a)
	})
}

func (x *around) AddUpload(ctx context.Context, key string, nonce string, upload string) error {
	return x.call(ctx, Verb{Name: "AddUpload", Mutates: true, About: []any{key}}, func(ctx context.Context) error { return x.catalog.AddUpload(ctx, key, nonce, upload) })
}

func (x *around) DropUpload(ctx context.Context, key string, nonce string, upload string) error {
	return x.call(ctx, Verb{Name: "DropUpload", Mutates: true, About: []any{key}}, func(ctx context.Context) error { return x.catalog.DropUpload(ctx, key, nonce, upload) })
}

func (x *around) CommitRewrite(ctx context.Context, r catalog.Rewrite) (catalog.Rewritten, error) {
	return one(ctx, x, Verb{Name: "CommitRewrite", Mutates: true, About: []any{r}}, func(ctx context.Context) (catalog.Rewritten, error) {
		return x.catalog.CommitRewrite(ctx, r)
	})
}

func (x *around) ResolveSettled(ctx context.Context, c segment.Chain, markers []catalog.MarkerRef) (int, error) {
	return one(ctx, x, Verb{Name: "ResolveSettled", Mutates: true, About: []any{c, markers}}, func(ctx context.Context) (int, error) {
		return x.catalog.ResolveSettled(ctx, c, markers)
	})
}

func (x *around) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (catalog.PackWindow, error) {
	return one(ctx, x, Verb{Name: "PackWindow", About: []any{c, generation, packs}}, func(ctx context.Context) (catalog.PackWindow, error) {
		return x.catalog.PackWindow(ctx, c, generation, packs)
	})
}

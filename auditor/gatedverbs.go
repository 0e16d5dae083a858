package auditor

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// gated is the catalog of all duties. Of its verbs those go through the gate that could bring
// the row of a chain which was rolled back up to its head again, so that nobody knew any more
// that it had lost commits: the cursors that catalog.CheckHead holds against a head.
// TestEveryVerbHasItsGate says of each other one why it may go round.
type gated struct {
	catalog.Catalog
	gate catalog.Gate
}

// AbsorbSlot waits for heads that cannot be read: the one that nobody could look at may be the
// one that its row would catch up with. Acknowledgements wait for their owner's absorb, not for this one.
func (c gated) AbsorbSlot(ctx context.Context, s catalog.Absorb) (catalog.Absorbed, error) {
	return through(ctx, c.gate, func(ctx context.Context) (catalog.Absorbed, error) { return c.Catalog.AbsorbSlot(ctx, s) })
}

// RaiseWatermark waits, too: what they know of is kept.
func (c gated) RaiseWatermark(ctx context.Context, w catalog.Watermark) (catalog.ChainRow, error) {
	return through(ctx, c.gate, func(ctx context.Context) (catalog.ChainRow, error) { return c.Catalog.RaiseWatermark(ctx, w) })
}

// CondemnSlots waits, too.
func (c gated) CondemnSlots(ctx context.Context, m catalog.MarkerRef, chain segment.Chain, expect, to segment.ID) (catalog.ChainRow, error) {
	return through(ctx, c.gate, func(ctx context.Context) (catalog.ChainRow, error) {
		return c.Catalog.CondemnSlots(ctx, m, chain, expect, to)
	})
}

// through is a verb with an answer behind a gate.
func through[T any](ctx context.Context, gate catalog.Gate, verb func(context.Context) (T, error)) (out T, err error) {
	err = gate(ctx, func(ctx context.Context) (err error) {
		out, err = verb(ctx)
		return err
	})
	return out, err
}

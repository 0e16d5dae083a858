package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// maxHead bounds a chain's head: 10,000 consumers of 200 bytes, escaped.
const maxHead = 16 << 20

// heads holds every chain's row against its head in the bucket (03 §0). Under a
// catalog that was rolled back live objects would look leaked: there is no verdict.
func (w *walk) heads(ctx context.Context) error {
	for chain := range w.chains {
		if err := headOf(ctx, w.cat, w.classes, chain, w.epochs[chain.Epoch]); err != nil {
			return err
		}
	}
	return nil
}

// headsOf is heads for who does not walk. A catalog that was rolled back names objects
// that were rewritten since and are gone with good reason: nothing is lost with them.
func headsOf(ctx context.Context, cat LossCatalog, classes objstore.Classes) error {
	topologies, err := cat.Topologies(ctx)
	if err != nil {
		return err
	}
	epochs := make(map[segment.Epoch]segment.Class, len(topologies))
	for i := range topologies {
		epochs[topologies[i].Epoch] = topologies[i].Class
	}
	rows, err := cat.Chains(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := headOf(ctx, cat, classes, rows[i].Chain, epochs[rows[i].Epoch]); err != nil {
			return err
		}
	}
	return nil
}

// headOf holds one chain's row against its head.
func headOf(ctx context.Context, cat interface {
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
}, classes objstore.Classes, chain segment.Chain, class segment.Class,
) error {
	set, err := classes.Set(string(class))
	if err != nil {
		return fmt.Errorf("chain %s: %w", chain, err)
	}
	key := segment.HeadKey(chain)
	body, _, err := set.First().ReadAll(ctx, key, maxHead)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil // no slot of the chain has gone yet
	}
	if err != nil {
		return fmt.Errorf("read the head of chain %s: %w", chain, err)
	}
	head, err := segment.DecodeHead(body)
	if err != nil {
		return segment.InFile(err, key, 0)
	}
	row, err := cat.Chain(ctx, chain) // after the head, which only ever holds what the row had
	if err != nil {
		return err
	}
	return catalog.CheckHead(*head, row)
}

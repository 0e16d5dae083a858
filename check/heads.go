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
		set, err := w.classes.Set(string(w.epochs[chain.Epoch]))
		if err != nil {
			return fmt.Errorf("chain %s: %w", chain, err)
		}
		key := segment.HeadKey(chain)
		body, _, err := set.First().ReadAll(ctx, key, maxHead)
		if errors.Is(err, objstore.ErrNotFound) {
			continue // no slot of the chain has gone yet
		}
		if err != nil {
			return fmt.Errorf("read the head of chain %s: %w", chain, err)
		}
		head, err := segment.DecodeHead(body)
		if err != nil {
			return segment.InFile(err, key, 0)
		}
		row, err := w.cat.Chain(ctx, chain) // after the head, which only ever holds what the row had
		if err != nil {
			return err
		}
		if err := catalog.CheckHead(*head, row); err != nil {
			return err
		}
	}
	return nil
}

package sqlite

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// PackWindow is what a pack-merge may take.
func (d *DB) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (catalog.PackWindow, error) {
	return catalog.PackWindow{}, catalog.Invalid("PackWindow", "not built yet")
}

// AcceptLoss turns a stream's refs that name key into lost ones.
func (d *DB) AcceptLoss(ctx context.Context, key, stream string) ([]catalog.Ref, error) {
	return nil, catalog.Invalid("AcceptLoss", "not built yet")
}

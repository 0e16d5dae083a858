package reap

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// CheckHead holds the chain's row against its head, read in this order: a row
// behind its head is catalog.ErrRolledBack, and nothing is deleted on the chain. No
// head is fine, because one is written before any slot goes.
func CheckHead(ctx context.Context, store HeadStore, cat HeadCatalog, chain segment.Chain) error {
	_, err := lookHead(ctx, store, cat, chain)
	return err
}

// lookHead is CheckHead, and gives the head that it read.
func lookHead(ctx context.Context, store HeadStore, cat HeadCatalog, chain segment.Chain) (*seenHead, error) {
	head, etag, err := readHead(ctx, store, chain)
	if err != nil {
		return nil, err
	}
	row, err := cat.Chain(ctx, chain)
	if err != nil {
		return nil, err
	}
	return &seenHead{head, etag}, checkRollback(head, &row)
}

// checkRollback is pure. The head holds only what the row had committed before.
func checkRollback(head *segment.Head, row *catalog.ChainRow) error {
	if head == nil {
		return nil
	}
	return catalog.CheckHead(*head, *row)
}

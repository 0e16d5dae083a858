package reap

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// ErrRolledBack: the catalog's row of a chain is behind its head in the bucket.
var ErrRolledBack = errors.New("the catalog was rolled back")

// RollbackError says what is behind. Nothing is deleted on the chain.
type RollbackError struct {
	Chain segment.Chain
	What  string
	Head  uint64
	Row   uint64
}

func (e *RollbackError) Error() string {
	return fmt.Sprintf("%v: chain %s has %s %d, its head %s says %d: nothing is appended or deleted on it; restore a newer catalog, or run rebuild",
		ErrRolledBack, e.Chain, e.What, e.Row, segment.HeadKey(e.Chain), e.Head)
}

func (e *RollbackError) Unwrap() error { return ErrRolledBack }

// CheckHead holds the chain's row against its head; no head is fine, because a
// head is written before any slot goes.
func CheckHead(ctx context.Context, store HeadStore, cat HeadCatalog, chain segment.Chain) error {
	head, _, err := readHead(ctx, store, chain)
	if err != nil {
		return err
	}
	row, err := cat.Chain(ctx, chain)
	if err != nil {
		return err
	}
	return checkRollback(head, &row)
}

// checkRollback is pure. The head holds only what the row had committed before.
func checkRollback(head *segment.Head, row *catalog.ChainRow) error {
	if head == nil {
		return nil
	}
	for _, c := range []struct {
		what      string
		head, row uint64
	}{
		{"term", uint64(head.Term), uint64(row.Term)},
		{"absorbed_end", uint64(head.AbsorbedEnd), uint64(row.AbsorbedEnd)},
		{"watermark", uint64(head.WatermarkSeq), uint64(row.WatermarkSeq)},
		{"condemned", uint64(head.Condemned), uint64(row.Condemned)},
		{"trimmed", uint64(head.Trimmed), uint64(row.Trimmed)},
	} {
		if c.row < c.head {
			return &RollbackError{Chain: row.Chain, What: c.what, Head: c.head, Row: c.row}
		}
	}
	return nil
}

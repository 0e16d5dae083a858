package catalog

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/segment"
)

// ErrRolledBack: the chain row is behind its head object, which only ever holds
// what the row had committed before: the catalog lost commits (03 §0).
var ErrRolledBack = errors.New("catalog: rolled back")

// CheckHead holds a chain row against the head object of its chain. The head is read
// first, then the row. On an error: no append and no delete on this chain.
func CheckHead(head segment.Head, row ChainRow) error {
	if head.Chain() != row.Chain {
		return Invalid("CheckHead", "head of chain %s against row of %s", head.Chain(), row.Chain)
	}
	var behind string
	switch {
	case row.Term < head.Term:
		behind = fmt.Sprintf("term %d, head %d", row.Term, head.Term)
	case row.AbsorbedEnd < head.AbsorbedEnd:
		behind = fmt.Sprintf("absorbed_end %d, head %d", row.AbsorbedEnd, head.AbsorbedEnd)
	case row.WatermarkSeq < head.WatermarkSeq:
		behind = fmt.Sprintf("watermark seq %d, head %d", row.WatermarkSeq, head.WatermarkSeq)
	case row.WatermarkSegment < head.WatermarkSegment:
		behind = fmt.Sprintf("watermark segment %d, head %d", row.WatermarkSegment, head.WatermarkSegment)
	case row.Condemned < head.Condemned:
		behind = fmt.Sprintf("condemned %d, head %d", row.Condemned, head.Condemned)
	default:
		return nil
	}
	return fmt.Errorf("%w: chain %s: row has %s; stop writers and auditors, then bring the newest copy of the catalog back (a rebuild from the bucket comes with a later release)",
		ErrRolledBack, row.Chain, behind)
}

package check

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// chainRows holds what every chain's row says against itself. A row is one look, so nothing
// of it is a race.
func (w *walk) chainRows(context.Context) error {
	for _, c := range w.sortedChains() {
		row := w.chains[c]
		for _, why := range insane(&row) {
			w.add(func(r *Report) {
				r.addDamage(w.cfg.MaxFindings, DamageItem{Epoch: c.Epoch, Why: "chain " + c.String() + ": " + why})
			})
		}
	}
	return nil
}

// insane lists what a chain's row may not say.
func insane(row *catalog.ChainRow) (whys []string) {
	bad := func(format string, args ...any) { whys = append(whys, fmt.Sprintf(format, args...)) }
	if err := catalog.CheckCursors(row); err != nil {
		bad("its cursors are not in order: trimmed %d, condemned %d, rewritten %d, absorbed_end %d; bring the newest copy of the catalog back",
			row.Trimmed, row.Condemned, row.Rewritten, row.AbsorbedEnd)
	}
	if row.LastTerm > row.Term {
		bad("its last slot is of term %d, the chain's is %d", row.LastTerm, row.Term)
	}
	if row.WatermarkSeq != 0 && row.WatermarkSeq >= row.NextSeq {
		bad("its watermark %d is beyond its last row %d", row.WatermarkSeq, row.NextSeq-1)
	}
	if row.WatermarkSegment != 0 && row.WatermarkSegment >= row.AbsorbedEnd {
		bad("its watermark's slot %d is not absorbed: absorbed_end is %d", row.WatermarkSegment, row.AbsorbedEnd)
	}
	seen := map[string]bool{}
	for _, c := range row.Consumers {
		if c.Cursor != 0 && c.Cursor >= row.NextSeq {
			bad("consumer %q has acknowledged row %d, the last is %d", c.Name, c.Cursor, max(row.NextSeq, 1)-1)
		}
		if seen[c.Name] {
			bad("consumer %q stands in it twice", c.Name)
		}
		seen[c.Name] = true
	}
	return whys
}

// beyond says whether a stream's last row is one that its chain does not have. The
// chain's row is read after the stream's: it only grows.
func (w *walk) beyond(ctx context.Context, c segment.Chain, last segment.Seq) (bool, error) {
	row, ok := w.chains[c]
	if ok && last < row.NextSeq {
		return false, nil
	}
	row, err := w.cat.Chain(ctx, c)
	return err == nil && last >= row.NextSeq, err
}

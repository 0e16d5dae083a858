package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// streams walks every stream's refs and holds that each follows the one before: a
// hole is a span of rows that no object serves.
func (w *walk) streams(ctx context.Context) error {
	after := ""
	for {
		page, err := w.cat.Streams(ctx, after, w.cfg.Page)
		if err != nil {
			return fmt.Errorf("list streams: %w", err)
		}
		for i := range page {
			if err := w.stream(ctx, page[i].Name); err != nil {
				return err
			}
			after = page[i].Name
		}
		if len(page) < w.cfg.Page {
			return nil
		}
	}
}

func (w *walk) stream(ctx context.Context, name string) error {
	w.report.Streams++
	var from, last segment.Pos
	for {
		p, err := w.cat.Plan(ctx, catalog.PlanRequest{Stream: name, From: from, Limit: w.cfg.Page})
		if errors.Is(err, catalog.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("plan stream %q: %w", name, err)
		}
		if from.Less(p.LiveFrom) {
			from, last = p.LiveFrom, segment.Pos{}
		}
		if last, err = w.links(p, from, last), nil; !p.More {
			return err
		}
		from = last.Next()
	}
}

// links reports the holes of one page, which is one look at the catalog, and
// returns the last position it saw.
func (w *walk) links(p catalog.Plan, from, last segment.Pos) segment.Pos {
	for i := range p.Refs {
		ref := &p.Refs[i]
		ok := ref.PrevLast == last
		if i == 0 {
			ok = ref.PrevLast.Less(from) || ref.PrevLast == (segment.Pos{})
		}
		if !ok {
			w.hole(p.Stream.Name, from, last, ref.PrevLast, fmt.Sprintf("no ref serves the rows before %s", ref.FirstPos()))
		}
		if ref.Kind == catalog.RefLost {
			w.report.addDamage(w.cfg.MaxFindings, DamageItem{
				Stream: ref.Stream, Epoch: ref.Epoch, First: ref.First, Last: ref.Last,
				Why: "lost, and accepted as lost by an operator",
			})
		}
		last = ref.LastPos()
	}
	if !p.More && last.Less(p.Stream.Last) && !p.Stream.Last.Less(from) {
		w.hole(p.Stream.Name, from, last, p.Stream.Last, "no ref serves the end of the stream")
		last = p.Stream.Last
	}
	return last
}

// hole reports the rows after last, or from the first live one on, up to end. Which
// seqs in between are the stream's own, nothing tells any more.
func (w *walk) hole(stream string, from, last, end segment.Pos, why string) {
	begin := last.Next()
	if begin.Less(from) {
		begin = from
	}
	d := DamageItem{Stream: stream, Epoch: end.Epoch, First: 1, Last: end.Seq, Why: why}
	if begin.Epoch == end.Epoch {
		d.First = max(1, begin.Seq)
	}
	w.report.addDamage(w.cfg.MaxFindings, d)
}

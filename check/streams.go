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

// links reports the holes of one page and returns the last position it saw.
func (w *walk) links(p catalog.Plan, from, last segment.Pos) segment.Pos {
	for i := range p.Refs {
		ref := &p.Refs[i]
		ok := ref.PrevLast == last
		if i == 0 {
			ok = ref.PrevLast.Less(from) || ref.PrevLast == (segment.Pos{})
		}
		if !ok {
			w.hole(p.Stream.Name, ref, last)
		}
		if ref.Kind == catalog.RefLost {
			w.damage(ref, "lost, and accepted as lost by an operator")
		}
		last = ref.LastPos()
	}
	if !p.More && last.Less(p.Stream.Last) && !p.Stream.Last.Less(from) {
		w.report.addDamage(w.cfg.MaxFindings, DamageItem{
			Stream: p.Stream.Name, Epoch: p.Stream.Last.Epoch, First: last.Seq + 1, Last: p.Stream.Last.Seq,
			Why: "no ref serves the end of the stream",
		})
	}
	return last
}

func (w *walk) hole(stream string, ref *catalog.Ref, last segment.Pos) {
	first := segment.Seq(1)
	if last.Epoch == ref.Epoch {
		first = last.Seq + 1
	}
	w.report.addDamage(w.cfg.MaxFindings, DamageItem{
		Stream: stream, Epoch: ref.PrevLast.Epoch, First: first, Last: ref.PrevLast.Seq,
		Why: fmt.Sprintf("no ref serves the rows before %s", ref.FirstPos()),
	})
}

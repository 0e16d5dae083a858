package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// streams walks every stream's refs and holds that each follows the one before: a
// hole is a span of rows that no object serves. What an epoch's chain gave up is none,
// though an older epoch's rows stand before it.
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
		if last, err = w.links(ctx, p, from, last); err != nil || !p.More {
			return err
		}
		from = last.Next()
	}
}

// links reports the holes and overlaps of one page, which is one look at the catalog,
// and returns the last position it saw.
func (w *walk) links(ctx context.Context, p catalog.Plan, from, last segment.Pos) (segment.Pos, error) {
	for i := range p.Refs {
		ref := &p.Refs[i]
		switch {
		case !p.Linked(ref, firstOrLast(i, from, last), i == 0):
			w.hole(p.Stream.Name, from, last, ref.PrevLast, fmt.Sprintf("no ref serves the rows before %s", ref.FirstPos()))
		case ref.PrevLast != (segment.Pos{}) && !ref.PrevLast.Less(ref.FirstPos()) || ref.Last < ref.First:
			w.span(ref, fmt.Sprintf("its ref begins at %s, the one before ends at %s: rows would be read twice", ref.FirstPos(), ref.PrevLast))
		}
		if ref.Kind == catalog.RefLost {
			w.add(func(r *Report) {
				add(&r.Lost, &r.LostTotal, w.cfg.MaxFindings, DamageItem{
					Stream: ref.Stream, Epoch: ref.Epoch, First: ref.First, Last: ref.Last,
					Why: "lost, and accepted as lost by an operator",
				})
			})
		}
		last = ref.LastPos()
	}
	if p.More {
		return last, nil
	}
	return last, w.tip(ctx, p, from, last)
}

func firstOrLast(i int, from, last segment.Pos) segment.Pos {
	if i == 0 {
		return from
	}
	return last
}

// tip holds the end of a stream's refs against what the stream and its chain say.
func (w *walk) tip(ctx context.Context, p catalog.Plan, from, last segment.Pos) error {
	name, tip := p.Stream.Name, p.Stream.Last
	switch {
	case last.Less(tip) && !tip.Less(from) && !p.Dead(tip):
		w.hole(name, from, last, tip, "no ref serves the end of the stream")
	case len(p.Refs) > 0 && tip.Less(last):
		ref := p.Refs[len(p.Refs)-1]
		w.span(&ref, fmt.Sprintf("its refs end at %s, the stream says that its last row is %s", last, tip))
	}
	if len(p.Refs) == 0 || p.Refs[len(p.Refs)-1].Epoch != tip.Epoch {
		return nil
	}
	ref := p.Refs[len(p.Refs)-1]
	beyond, err := w.beyond(ctx, ref.Chain, tip.Seq)
	if beyond {
		w.span(&ref, fmt.Sprintf("the stream's last row is %s, which its chain %s does not have yet", tip, ref.Chain))
	}
	return err
}

// span reports the rows of a ref.
func (w *walk) span(ref *catalog.Ref, why string) {
	w.add(func(r *Report) {
		r.addDamage(w.cfg.MaxFindings, DamageItem{Stream: ref.Stream, Epoch: ref.Epoch, First: ref.First, Last: ref.Last, Key: ref.Key, Why: why})
	})
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
	w.add(func(r *Report) { r.addDamage(w.cfg.MaxFindings, d) })
}

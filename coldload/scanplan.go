package coldload

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// slotAt returns the first slot from condemned on that holds rows at or above
// next; nil if there is none. Void slots hold none.
func (sc *scan) slotAt(ctx context.Context, row *catalog.ChainRow) (*catalog.SlotRow, error) {
	id := max(row.Condemned, sc.slot)
	for {
		page, err := sc.reader.catalog.Slots(ctx, sc.chain, id, sc.reader.cfg.PlanRefs)
		if err != nil {
			return nil, fmt.Errorf("scan chain %s: %w", sc.chain, err)
		}
		for i := range page {
			if s := &page[i]; !s.Void && s.Next > sc.next {
				return s, nil
			}
			id = page[i].ID + 1
			sc.slot = id
		}
		if len(page) < sc.reader.cfg.PlanRefs {
			return nil, nil
		}
	}
}

// slotStretch is a slot by its footer: one span a chunk, and every row is there.
func (sc *scan) slotStretch(ctx context.Context, row *catalog.ChainRow, slot *catalog.SlotRow, expires time.Time) (stretch, error) {
	st := stretch{end: slot.Next - 1, dense: true}
	class, err := sc.class(ctx)
	if err != nil {
		return st, err
	}
	ref := catalog.Ref{
		Chain: sc.chain, First: slot.First, Last: slot.Next - 1, Kind: catalog.RefSlot, Class: class,
		Key: segment.SlotKey(sc.chain, slot.ID), Revision: -1, Chunks: 1,
	}
	st.slot = ref.Key
	f, err := sc.reader.footer(ctx, &ref, expires)
	if err != nil {
		return st, sc.inScan(err)
	}
	if f.Slot == nil || f.Slot.UUID != slot.UUID || f.Slot.Digest != slot.Digest {
		return st, &ScanError{Chain: sc.chain, At: sc.next, Key: ref.Key, Kind: ErrCorrupt, Detail: "it is not the slot that was absorbed there"}
	}
	for i := range f.Chunks {
		c := &f.Chunks[i]
		if c.Stream == "" || c.Last < sc.next {
			continue
		}
		r := ref
		r.Stream, r.First, r.Last, r.Rows, r.RowSum = c.Stream, c.First, c.Last, c.Rows, c.RowSum
		r.Offset, r.Stored, r.Raw, r.Codec, r.CRC, r.Sum = c.Offset, c.Stored, c.Raw, c.Codec, c.CRC, c.Sum
		st.refs = append(st.refs, r)
	}
	return st, nil
}

// class is that of the chain's slots.
func (sc *scan) class(ctx context.Context) (segment.Class, error) {
	tops, err := sc.reader.catalog.Topologies(ctx)
	if err != nil {
		return "", fmt.Errorf("scan chain %s: %w", sc.chain, err)
	}
	if top := catalog.EpochIn(tops, sc.chain.Epoch); top != nil {
		return top.Class, nil
	}
	return "", fmt.Errorf("scan chain %s: %w: its epoch", sc.chain, catalog.ErrNotFound)
}

// refStretch gathers refs that hold rows from next up to border. The catalog pages
// them by their last row, but a merge needs them by their first. So a pass reads those
// that end first, some Config.ScanRefs, and then those that lie across the end of the
// last of them: together that is all there is up to there, and no pass goes on to the tip. It
// keeps those that begin first, and the stretch ends before the first that was not kept.
// Refs that begin at or below next are always kept: at most one for each stream.
func (sc *scan) refStretch(ctx context.Context, border segment.Seq) (stretch, error) {
	st := stretch{end: border}
	kept := byFirst{}
	more, at, err := sc.ending(ctx, &st, &kept)
	if err == nil && more {
		err = sc.across(ctx, at, &st, &kept)
	}
	if err != nil {
		return st, fmt.Errorf("scan chain %s: %w", sc.chain, err)
	}
	st.split(kept)
	return st, nil
}

// ending keeps the refs that end first. more: the pass stopped at a row behind which
// others end.
func (sc *scan) ending(ctx context.Context, st *stretch, kept *byFirst) (more bool, at segment.Seq, err error) {
	for from := sc.next; ; {
		page, err := sc.reader.catalog.ChainRefs(ctx, sc.chain, from, sc.reader.cfg.PlanRefs)
		if err != nil {
			return false, 0, err
		}
		sc.keep(st, kept, page)
		if len(page) < sc.reader.cfg.PlanRefs {
			return false, 0, nil
		}
		at = page[len(page)-1].Last
		if at >= st.end || len(*kept) >= sc.reader.cfg.ScanRefs {
			st.end = min(st.end, at)
			return true, at, nil
		}
		from = at + 1 // no two refs of a chain end at one row
	}
}

// across keeps the refs that begin at or before a row and end behind it.
func (sc *scan) across(ctx context.Context, at segment.Seq, st *stretch, kept *byFirst) error {
	var after *catalog.Ref
	for {
		page, more, err := sc.reader.catalog.RefsAcross(ctx, sc.chain, at, after, sc.reader.cfg.PlanRefs)
		if err != nil {
			return err
		}
		sc.keep(st, kept, page)
		if !more || len(page) == 0 {
			return nil
		}
		after = &page[len(page)-1]
	}
}

// keep takes what begins within the stretch, and shortens it where that is too much.
func (sc *scan) keep(st *stretch, kept *byFirst, page []catalog.Ref) {
	for i := range page {
		if page[i].First > st.end {
			continue
		}
		heap.Push(kept, page[i])
		if len(*kept) > sc.reader.cfg.ScanRefs && (*kept)[0].First > sc.next {
			st.end = (*kept)[0].First - 1
			heap.Pop(kept)
		}
	}
}

// byFirst is a heap with the ref that begins last on top.
type byFirst []catalog.Ref

func (h byFirst) Len() int           { return len(h) }
func (h byFirst) Less(i, j int) bool { return h[i].First > h[j].First }
func (h byFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byFirst) Push(x any)        { *h = append(*h, x.(catalog.Ref)) } //nolint:forcetypeassert // our own Push
func (h *byFirst) Pop() any {
	old := *h
	r := old[len(old)-1]
	*h = old[:len(old)-1]
	return r
}

// links holds, once a scan, that the refs of every stream link from next to the
// tip: what a stretch of refs leaves out is then a trim and no hole. Later changes
// of refs keep that (I1), but for trims.
func (sc *scan) links(ctx context.Context) error {
	if sc.linked {
		return nil
	}
	after := ""
	for {
		page, err := sc.reader.catalog.Streams(ctx, after, sc.reader.cfg.PlanRefs)
		if err != nil {
			return fmt.Errorf("scan chain %s: %w", sc.chain, err)
		}
		for i := range page {
			if s := &page[i]; !s.Last.Less(segment.Pos{Epoch: sc.chain.Epoch, Seq: sc.next}) && !s.Last.Less(s.LiveFrom) {
				if err := sc.linksOf(ctx, s); err != nil {
					return err
				}
			}
			after = page[i].Name
		}
		if len(page) < sc.reader.cfg.PlanRefs {
			sc.linked = true
			return nil
		}
	}
}

func (sc *scan) linksOf(ctx context.Context, s *catalog.Stream) error {
	from, end := segment.Pos{Epoch: sc.chain.Epoch, Seq: sc.next}, segment.Pos{Epoch: sc.chain.Epoch, Seq: math.MaxUint64}
	for {
		p, err := sc.reader.plan(ctx, s.Name, later(from, s.LiveFrom), end)
		var trimmed *ReadError
		if isTrimmed(err) && errors.As(err, &trimmed) {
			// A trim overtook the look; or the stream lies in another chain, whose watermark
			// is higher and in no stream's row. Either way it begins there now.
			from = trimmed.First
			continue
		}
		if err != nil {
			return err
		}
		if !p.More || len(p.Refs) == 0 {
			return nil
		}
		from = p.Refs[len(p.Refs)-1].LastPos().Next()
	}
}

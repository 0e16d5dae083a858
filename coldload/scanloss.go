package coldload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// A ref of rows that were accepted as lost says of which stream they were, and between which
// seqs they lay; it does not say which seqs those are. The rows of other streams lie in
// between, and are there. So a scan reads what is there, and takes for lost what has no row
// within such a span. It ends before the first seq of that kind (I7: nothing behind it is
// shown to a caller who was not told), and names the next row that is there: who goes on from
// there skips none.

// byFirstRow is the order in which windows meet lost refs.
func byFirstRow(a, b catalog.Ref) int { return cmp.Compare(a.First, b.First) }

// lossIn is the error of the first seq from first to last that lies in a span accepted as
// lost; nil: none does. None of these seqs has a row.
func (w *window) lossIn(first, last segment.Seq) *ScanError {
	var found *ScanError
	for i := range w.st.lost {
		ref := &w.st.lost[i]
		if ref.First > last {
			break // they come by their first row
		}
		at := max(first, ref.First, w.st.live[ref.Stream])
		if at > min(last, ref.Last) || found != nil && at >= found.At {
			continue
		}
		found = &ScanError{Chain: w.chain, At: at, Kind: ErrLost, Detail: fmt.Sprintf(
			"rows %d to %d of stream %q were accepted as lost by an operator; those of other streams between them are there", ref.First, ref.Last, ref.Stream)}
	}
	return found
}

// gaps are the runs of seqs of the window that have no row.
func (w *window) gaps() iter.Seq2[segment.Seq, segment.Seq] {
	return func(yield func(first, last segment.Seq) bool) {
		next := w.next
		for i := range w.rows {
			if seq := w.rows[i].Seq; seq > next && !yield(next, seq-1) {
				return
			}
			next = w.rows[i].Seq + 1
		}
		if next <= w.end {
			yield(next, w.end)
		}
	}
}

// onlyLost is whether every seq without a row lies in a span accepted as lost.
func (w *window) onlyLost() bool {
	for first, last := range w.gaps() {
		for first <= last {
			loss := w.lossIn(first, first)
			if loss == nil {
				return false
			}
			for i := range w.st.lost {
				if r := &w.st.lost[i]; max(r.First, w.st.live[r.Stream]) <= first && r.Last >= first {
					first = r.Last + 1
				}
			}
		}
	}
	return true
}

// pass goes over seqs that have no row to one that has, and keeps the first loss among them.
func (w *window) pass(to segment.Seq) {
	if w.next < to && w.loss == nil {
		w.loss = w.lossIn(w.next, to-1)
	}
	w.next = max(w.next, to)
}

// turn says whether a slot that cannot be read whole is to be read by its refs. A slot stands
// in its chain for a while after streams gave up what they had in it; what its object lacks is
// then what the refs say, and what it has besides is read by the others. Without such an
// operator's word the fault stays as it is, loud.
func (sc *scan) turn(ctx context.Context, st *stretch, err error) bool {
	if !st.dense || !isGone(err) && !errors.Is(err, ErrCorrupt) {
		return false
	}
	on := scan{reader: sc.reader, chain: sc.chain, next: sc.next}
	for on.next <= st.end {
		refs, err := on.refStretch(ctx, st.end)
		if err != nil {
			return false
		}
		if len(refs.lost) > 0 {
			sc.byRefs = st.end + 1
			return true
		}
		on.next = refs.end + 1
	}
	return false
}

// told puts the end of a scan that met a loss: from sc.next on nothing was dealt with.
func (sc *scan) told(ctx context.Context, err error) error {
	if sc.loss == nil || sc.over || ctx.Err() != nil {
		return err
	}
	sc.loss.First = sc.next
	return sc.loss
}

// split puts the refs of a pass apart: those to read, and those of lost rows.
func (st *stretch) split(kept []catalog.Ref) {
	for i := range kept {
		switch r := &kept[i]; {
		case r.First > st.end:
		case r.Kind == catalog.RefLost:
			st.lost = append(st.lost, *r)
		default:
			st.refs = append(st.refs, *r)
		}
	}
	slices.SortFunc(st.lost, byFirstRow)
}

package coldload

import (
	"cmp"
	"context"
	"slices"

	"github.com/strandline/strandline/catalog"
)

// explain proves that rows which no ref of the stretch serves were given up, or accepted as
// lost. looked: the stretch's refs were looked at twice.
func (w *window) explain(ctx context.Context, looked bool) error {
	if !looked {
		again, err := w.refStretch(ctx, w.st.end)
		if err != nil {
			return err
		}
		// The pages of one pass are not one look: a rewrite between two of them may have
		// moved a ref behind the pass. Two passes that saw the same missed nothing, for the
		// last row of every span stays at or ahead of where it was.
		if !again.same(w.st) {
			return errPlanAged
		}
	}
	if w.onlyLost() {
		return nil // and is told
	}
	return w.links(ctx)
}

// doubt says whether a finding on the rows of a stretch stands. Pages of one pass that a
// rewrite came between may name a row twice: by the ref that it replaced, and by the longer
// one that it put in its place further on. Then it is no finding, and the scan plans again.
func (sc *scan) doubt(ctx context.Context, st *stretch, finding error) error {
	if st.dense {
		return finding
	}
	again, err := sc.refStretch(ctx, st.end)
	if err != nil {
		return err
	}
	if !again.same(st) {
		return errPlanAged
	}
	return finding
}

func (st *stretch) same(as *stretch) bool {
	return st.end == as.end && sameRefs(st.refs, as.refs) && sameRefs(st.lost, as.lost)
}

func sameRefs(a, b []catalog.Ref) bool {
	order := func(x, y catalog.Ref) int { return cmp.Compare(x.Last, y.Last) }
	a, b = slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order)
	return slices.EqualFunc(a, b, func(x, y catalog.Ref) bool { return x.Same(&y) })
}

package catalog

import (
	"fmt"

	"github.com/strandline/strandline/segment"
)

// Swap is what a run's commit does to the refs of one stream.
type Swap struct {
	// Committed is the ref that names the output; nil if the trim took all of it.
	Committed *Ref
	// Replaced is the ref whose row Committed takes. Their Firsts differ only where
	// the head of Replaced, below live_from, was not copied.
	Replaced *Ref
	// Retired rows go.
	Retired []Ref
	// Remainder is what a winner that covers less leaves of the last ref touched: that
	// ref's row goes (it is among Retired, or is Replaced) and this one comes.
	Remainder *Ref
}

// Sources are the refs whose objects lose a span by the swap.
func (s *Swap) Sources() []Ref {
	if s.Replaced == nil {
		return s.Retired
	}
	return append([]Ref{*s.Replaced}, s.Retired...)
}

// ValidateRun checks what does not depend on what stands.
func ValidateRun(run *Run) error {
	const verb = "CommitRewrite"
	if len(run.Expect) == 0 {
		return Invalid(verb, "a run without refs")
	}
	n, first := &run.New, &run.Expect[0]
	switch {
	case n.Key == "" || !n.Kind.Settled() || n.Revision < 0:
		return Invalid(verb, "output %q of kind %q, revision %d", n.Key, string(n.Kind), n.Revision)
	case n.StreamID != first.StreamID || n.Chain != first.Chain:
		return Invalid(verb, "output of stream %d chain %s for %s", n.StreamID, n.Chain, first.describe())
	case n.First < first.First || n.First > first.Last || n.Last < n.First || n.Last > run.Expect[len(run.Expect)-1].Last:
		return Invalid(verb, "output %d to %d does not lie in the run, %s and on", n.First, n.Last, first.describe())
	}
	for i := range run.Expect {
		e := &run.Expect[i]
		switch {
		case e.StreamID != first.StreamID || e.Chain != first.Chain:
			return Invalid(verb, "two streams or chains in one run: %s, %s", first.describe(), e.describe())
		case e.Key == n.Key:
			return Invalid(verb, "output %q would replace itself", n.Key)
		case e.Kind == RefLost:
			return Invalid(verb, "a lost span ends a run: %s", e.describe())
		case i > 0 && e.PrevLast != run.Expect[i-1].LastPos():
			return Invalid(verb, "run has a gap before %s", e.describe())
		}
	}
	return nil
}

// PlanSwaps validates every run against what stands, before anything is written. live says
// where the runs' streams live from in their chains, of the runs whose stream and chain were
// found; standing gives the ref that begins at a position of a stream, nil if none does.
func PlanSwaps(r *Rewrite, live []segment.Pos, found int, standing func(stream int64, at segment.Pos) *Ref) ([]Swap, error) {
	if found != len(r.Runs) {
		return nil, Conflict("CommitRewrite", "streams and chains", len(r.Runs), found)
	}
	swaps := make([]Swap, len(r.Runs))
	for i := range r.Runs {
		run := &r.Runs[i]
		var err error
		swaps[i], err = PlanSwap(run, live[i], func(p segment.Pos) *Ref {
			return standing(run.New.StreamID, p)
		})
		if err != nil {
			return nil, err
		}
	}
	return swaps, nil
}

// SwapRefs sums swaps up: what the commit says, the refs that go, and those that come.
func SwapRefs(swaps []Swap) (out Rewritten, gone, come []Ref) {
	for i := range swaps {
		sw := &swaps[i]
		gone = append(gone, sw.Sources()...)
		out.Retired += len(sw.Retired)
		if sw.Committed != nil {
			come = append(come, *sw.Committed)
			out.Committed = append(out.Committed, *sw.Committed)
		}
		if sw.Remainder != nil {
			come = append(come, *sw.Remainder)
		}
	}
	out.Nothing = len(out.Committed) == 0
	return out, gone, come
}

// PlanSwap validates a run against what stands and says what to do: all of it, or
// an error. standing gives the ref that begins at a position of the run's stream,
// nil if none does. Refs that a trim retired, or is about to, are left out at the
// front; any other difference is ErrConflict.
func PlanSwap(run *Run, liveFrom segment.Pos, standing func(segment.Pos) *Ref) (Swap, error) {
	const verb = "CommitRewrite"
	if err := ValidateRun(run); err != nil {
		return Swap{}, err
	}
	var sw Swap
	var left Ref // sums of what was left out at the front
	live := make([]Ref, 0, len(run.Expect))
	for i := range run.Expect {
		e := &run.Expect[i]
		if e.First > run.New.Last {
			break // wholly behind a winner that covers less: untouched
		}
		have := standing(e.FirstPos())
		switch {
		case have == nil && e.Dead(liveFrom):
			addSums(&left, e)
		case have == nil:
			return Swap{}, Conflict(verb, "ref unchanged", e.describe(), "no ref that begins there")
		case !have.Same(e):
			return Swap{}, Conflict(verb, "ref unchanged", e.describe(), have.describe())
		case have.Dead(liveFrom):
			// The walk has not come by yet: retired here, it needs no copy.
			addSums(&left, e)
			sw.Retired = append(sw.Retired, *have)
		case len(live) > 0 && have.PrevLast != live[len(live)-1].LastPos():
			return Swap{}, Conflict(verb, "run without a gap", live[len(live)-1].LastPos(), have.PrevLast)
		default:
			live = append(live, *have)
		}
	}
	if len(live) == 0 {
		return sw, nil
	}
	sw.Replaced = &live[0]
	sw.Retired = append(sw.Retired, live[1:]...)
	err := sw.commit(run, live, &left, liveFrom)
	return sw, err
}

// commit describes the output's ref and what a winner that covers less leaves.
//
// An output may begin inside its first ref (cut), because nothing below live_from
// is copied. How many rows of the ref went missing is then not known to the catalog,
// so such an output has to end with a ref. Or its first ref is the remainder that a winner
// left, which begins behind the winner's last row and before its own first: nothing is missing.
func (sw *Swap) commit(run *Run, live []Ref, left *Ref, liveFrom segment.Pos) error {
	const verb = "CommitRewrite"
	first, last := &run.Expect[0], &live[len(live)-1]
	cut := run.New.First > first.First
	whole := run.New.Last >= last.Last
	total := sumsOf(live)
	if cut && !first.FirstPos().Less(liveFrom) && !complete(run, live, left) {
		return Conflict(verb, "head below live_from", liveFrom, fmt.Sprintf("output begins at %s, inside %s", run.New.FirstPos(), first.describe()))
	}
	if cut && !whole {
		return Invalid(verb, "an output that begins inside %s must end with a ref, not inside %s", first.describe(), last.describe())
	}
	c := run.New
	c.Stream, c.PrevLast = live[0].Stream, live[0].PrevLast
	switch {
	case !cut:
		c.First = live[0].First
		subSums(&c, left)
	case live[0].First == first.First:
		if c.Rows > total.Rows {
			return Conflict(verb, "rows", fmt.Sprintf("at most %d", total.Rows), c.Rows)
		}
		// The row before it is one that was cut off: who was given rows up to an earlier
		// one only has to learn that this one went.
		if before := run.New.PrevLast; c.PrevLast.Less(before) && before.Less(c.FirstPos()) {
			c.PrevLast = before
		}
	default: // the ref that it begins inside is gone: it has all of the others
		c.First = live[0].First
		c.Rows, c.RowSum, c.Bytes = total.Rows, total.RowSum, total.Bytes
	}
	sw.Committed = &c
	if !whole {
		return sw.leave(run, &total, last)
	}
	c.Last = last.Last // rows of other streams may stand between the two
	if !cut && (c.Rows != total.Rows || c.RowSum != total.RowSum) {
		// Other rows for the same seqs: never committed (03 §4 step 4).
		return Conflict(verb, "row sum", fmt.Sprintf("%d rows, sum %016x", total.Rows, total.RowSum), fmt.Sprintf("%d rows, sum %016x", c.Rows, c.RowSum))
	}
	return nil
}

// complete says that the output has every row of live, by their sums, and of those left
// out none: it begins later than its first ref only because no row stands there.
func complete(run *Run, live []Ref, left *Ref) bool {
	total := sumsOf(live)
	return left.Rows == 0 && run.New.Last >= live[len(live)-1].Last && run.New.Rows == total.Rows && run.New.RowSum == total.RowSum
}

// leave: the output ends inside last, whose rest goes on as a ref of its own.
func (sw *Swap) leave(run *Run, total, last *Ref) error {
	c := sw.Committed
	if c.Rows == 0 || c.Rows >= total.Rows {
		return Conflict("CommitRewrite", "rows", fmt.Sprintf("1 to %d", total.Rows-1), c.Rows)
	}
	rem := *last
	rem.First, rem.PrevLast = run.New.Last+1, run.New.LastPos()
	rem.Rows, rem.RowSum, rem.Bytes = total.Rows, total.RowSum, total.Bytes
	subSums(&rem, c)
	sw.Remainder = &rem
	return nil
}

func sumsOf(refs []Ref) (total Ref) {
	for i := range refs {
		addSums(&total, &refs[i])
	}
	return total
}

func addSums(to, r *Ref) { to.Rows += r.Rows; to.RowSum += r.RowSum; to.Bytes += r.Bytes }

// subSums: RowSum is a sum modulo 2^64, so that it subtracts. Bytes of frames that
// were encoded again at a cut are an estimate and never fall below zero.
func subSums(from, r *Ref) {
	from.Rows -= r.Rows
	from.RowSum -= r.RowSum
	from.Bytes = max(0, from.Bytes-r.Bytes)
}

// ValidateRewrite checks what does not depend on what stands.
func ValidateRewrite(r *Rewrite) error {
	const verb = "CommitRewrite"
	if r.Key == "" || r.Nonce == "" || len(r.Runs) == 0 {
		return Invalid(verb, "key %q, nonce %q, %d runs", r.Key, r.Nonce, len(r.Runs))
	}
	if r.Next.TailTarget < 0 || r.Next.PackFan < 0 {
		return Invalid(verb, "tail target %d, pack fan %d", r.Next.TailTarget, r.Next.PackFan)
	}
	seen := map[runStart]bool{}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.New.Key != r.Key {
			return Invalid(verb, "run %d is served by %q, the rewrite by %q", i, run.New.Key, r.Key)
		}
		if err := ValidateRun(run); err != nil {
			return err
		}
		for j := range run.Expect {
			at := runStart{run.Expect[j].StreamID, run.Expect[j].FirstPos()}
			if seen[at] {
				return Invalid(verb, "%s is expected twice", run.Expect[j].describe())
			}
			seen[at] = true
		}
	}
	return nil
}

type runStart struct {
	stream int64
	pos    segment.Pos
}

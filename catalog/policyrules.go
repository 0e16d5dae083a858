package catalog

import (
	"fmt"
)

// TailFillDue says whether next, just committed, is to be folded into the stream
// object right before it: below the target that one, and next a quarter of it at
// least, so that a byte is rewritten O(log n) times on its way to the target.
func TailFillDue(prev, next *Ref, target int64) bool {
	const least = 4
	return prev.Kind == RefStream && next.Kind == RefStream && prev.Key != next.Key &&
		prev.StreamID == next.StreamID && prev.Chain == next.Chain && next.PrevLast == prev.LastPos() &&
		prev.Stored < target && next.Stored*least >= prev.Stored
}

// LoseRef is what a ref becomes when its span is given up as lost: it serves no
// byte, names no object, and no mover touches it. What it says of its rows stays.
func LoseRef(r Ref) Ref {
	return Ref{
		StreamID: r.StreamID, Stream: r.Stream, Chain: r.Chain, First: r.First, Last: r.Last, PrevLast: r.PrevLast,
		Kind: RefLost, Rows: r.Rows, RowSum: r.RowSum, Bytes: r.Bytes, MinTime: r.MinTime, MaxTime: r.MaxTime,
	}
}

// AuditLoss is the audit table's kind of what an operator gave up.
const AuditLoss = "loss"

// DescribeLoss says in the audit table what refs of one stream were given up.
func DescribeLoss(lost []Ref) string {
	var rows uint64
	for i := range lost {
		rows += lost[i].Rows
	}
	first, last := &lost[0], &lost[len(lost)-1]
	return fmt.Sprintf("stream %s: %d rows in %d refs, %s to %s, are given up", first.Stream, rows, len(lost), first.FirstPos(), last.LastPos())
}

// NothingToLose is AcceptLoss's answer where neither a ref nor a void slot's marker
// stands: nothing to give up, or a second call after a lost answer.
func NothingToLose(key, stream string) error {
	if stream == "" {
		return fmt.Errorf("%w: %s is no void slot that waits for a word; name the stream whose rows are lost", ErrNotFound, key)
	}
	return fmt.Errorf("%w: no ref of stream %q names %s: trimmed, rewritten, or given up before; `strandline explain` says which", ErrNotFound, stream, key)
}

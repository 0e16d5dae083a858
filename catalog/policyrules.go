package catalog

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
// byte, and no mover touches it. What it says of its rows stays.
func LoseRef(r Ref) Ref {
	lost := Ref{
		StreamID: r.StreamID, Stream: r.Stream, Chain: r.Chain, First: r.First, Last: r.Last, PrevLast: r.PrevLast,
		Kind: RefLost, Revision: r.Revision, Rows: r.Rows, RowSum: r.RowSum, Bytes: r.Bytes, MinTime: r.MinTime, MaxTime: r.MaxTime,
	}
	return lost
}

package catalog

import (
	"fmt"

	"github.com/strandline/strandline/segment"
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

// TailsDue are the tail-fills of the stream objects right before refs that were just
// committed; tails are the refs that end there or before, whatever they are.
func TailsDue(committed []Ref, tails []LiveRef, target int64) (ms []Armed) {
	type end struct {
		stream int64
		last   segment.Pos
	}
	after := make(map[end]*Ref, len(committed))
	for i := range committed {
		after[end{committed[i].StreamID, committed[i].PrevLast}] = &committed[i]
	}
	for i := range tails {
		l := &tails[i]
		if r := after[end{l.StreamID, l.LastPos()}]; r != nil && !l.Dead(l.LiveFrom) && TailFillDue(&l.Ref, r, target) {
			ms = append(ms, Armed{l.Key, l.Class})
		}
	}
	return ms
}

// LoseRef is what a ref becomes when its span is given up as lost: it serves no
// byte, names no object, and no mover touches it. What it says of its rows stays.
func LoseRef(r Ref) Ref {
	return Ref{
		StreamID: r.StreamID, Stream: r.Stream, Chain: r.Chain, First: r.First, Last: r.Last, PrevLast: r.PrevLast,
		Kind: RefLost, Rows: r.Rows, RowSum: r.RowSum, Bytes: r.Bytes, MinTime: r.MinTime, MaxTime: r.MaxTime,
	}
}

// LoseRefs is what a stream's refs to an object become, all of them, when they are given up.
func LoseRefs(key, stream string, were []Ref) ([]Ref, error) {
	if len(were) == 0 {
		return nil, NothingToLose(key, stream)
	}
	lost := make([]Ref, len(were))
	for i := range were {
		lost[i] = LoseRef(were[i])
	}
	return lost, nil
}

// VoidSlot is the slot of a key that is to be given up without naming a stream.
func VoidSlot(key string) (segment.Key, error) {
	k, err := segment.ParseKey(key)
	if err != nil || k.Kind != segment.KeySlot {
		return segment.Key{}, NothingToLose(key, "")
	}
	return k, nil
}

// DescribeVoidLoss says in the audit table which void slot was given up.
func DescribeVoidLoss(k segment.Key) string {
	return fmt.Sprintf("void slot %d of chain %s: the rows in it are given up", k.ID, k.Chain)
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

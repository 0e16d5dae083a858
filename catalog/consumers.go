package catalog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/strandline/strandline/segment"
)

// SlowestCursor is the lowest cursor.
func SlowestCursor(cs []segment.Consumer) (c Slowest) {
	for _, k := range cs {
		if !c.OK || k.Cursor < c.Seq {
			c = Slowest{Seq: k.Cursor, OK: true}
		}
	}
	return c
}

// Slowest is the cursor of the slowest consumer, if there is any.
type Slowest struct {
	Seq segment.Seq
	OK  bool
}

// MergeConsumers is the set that a slot brings, by name. A slot's set is complete:
// who is missing in it was removed. A cursor that stands is never lowered (I6): a
// consumer of that name that was removed and made again in between starts no lower.
// One that comes for the first time starts at the watermark: what lies below is given
// up, and must not hold back what comes after.
func MergeConsumers(have, brought []segment.Consumer, watermark segment.Seq) []segment.Consumer {
	stood := make(map[string]segment.Seq, len(have))
	for _, h := range have {
		stood[h.Name] = h.Cursor
	}
	out := slices.Clone(brought)
	for i := range out {
		out[i].Cursor = max(out[i].Cursor, stood[out[i].Name], watermark)
	}
	slices.SortFunc(out, func(a, b segment.Consumer) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// AckCursor moves a consumer's cursor on a closed chain, whose row is the truth. It
// answers the row's consumers, and whether the slowest moved.
func AckCursor(row *ChainRow, name string, seq segment.Seq) (cs []segment.Consumer, slowest bool, err error) {
	const verb = "AckClosed"
	if !row.Closed {
		return nil, false, Conflict(verb, "chain closed", "a closed chain", "open: acknowledge at its owner")
	}
	i := slices.IndexFunc(row.Consumers, func(c segment.Consumer) bool { return c.Name == name })
	if i < 0 {
		return nil, false, fmt.Errorf("%w: consumer %q of chain %s", ErrNotFound, name, row.Chain)
	}
	if seq >= row.NextSeq {
		return nil, false, Invalid(verb, "seq %d of chain %s, its last row is %d", seq, row.Chain, row.NextSeq-1)
	}
	cs = slices.Clone(row.Consumers)
	cs[i].Cursor = max(cs[i].Cursor, seq)
	return cs, SlowestCursor(cs) != SlowestCursor(row.Consumers), nil
}

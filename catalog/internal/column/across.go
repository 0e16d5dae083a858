package column

import (
	"cmp"
	"math"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Lengths (last - first) of refs: below 4096, in the index and the queries, they are
// short. LongDigits is its number of hex digits, MaxDigits that of the longest.
const (
	LongDigits = 4
	MaxDigits  = 16
)

// Cut is a place between two rows of a chain: behind seq At.
type Cut struct {
	segment.Chain
	At      segment.Seq
	Settled bool // only refs to settled objects
}

// Behind is where a page of the refs across begins: behind the one that was seen last,
// (last, stream), or behind the cut.
func (c Cut) Behind(after *catalog.Ref) (last, stream int64) {
	if after != nil && after.Last > c.At {
		return Seq(after.Last), after.StreamID
	}
	return Seq(c.At), 1 << 62 // ids of streams are far below
}

// PageAcross brings the refs of all lengths into order, and cuts the one more that was
// asked for.
func PageAcross(live []catalog.LiveRef, n int) (refs []catalog.Ref, more bool) {
	slices.SortFunc(live, func(a, b catalog.LiveRef) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.StreamID, b.StreamID))
	})
	return catalog.PageOf(live, n)
}

// Reach is the last seq at which a ref of so many digits may end that lies across the cut.
func (c Cut) Reach(digits int) int64 {
	if digits >= MaxDigits {
		return math.MaxInt64
	}
	reach := int64(1) << (4 * digits)
	if Seq(c.At) > math.MaxInt64-reach {
		return math.MaxInt64
	}
	return Seq(c.At) + reach
}

// Seq is a seq to compare columns with, which may be any.
func Seq(s segment.Seq) int64 { return int64(min(s, math.MaxInt64)) }

package postgres

import (
	"cmp"
	"math"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// cut is a place between two rows of a chain: behind seq at.
type cut struct {
	segment.Chain
	at      segment.Seq
	settled bool // only refs to settled objects
}

// Lengths (last - first) of refs: below 4096, in the index and the queries, they are
// short. longDigits is its number of hex digits, maxDigits that of the longest.
const (
	longDigits = 4
	maxDigits  = 16
)

// across are refs with First <= at < Last, by (last, stream), after the one given. A ref
// of d hex digits of length that lies across a cut ends within 16^d rows behind it, and
// there each stream has few refs of that length, so every class of lengths is one short
// range of an index: what it costs follows the refs across, not those behind. Short ones
// end within 4,096 rows, and no two refs of a chain end at one row. All classes are one
// round trip.
func (t *tx) across(c cut, after *catalog.Ref, n int) (refs []catalog.Ref, more bool, err error) {
	const (
		inner = ` AND (x.last, x.stream) > ($3::int8, $4::int8) AND x.last <= $5 AND x.first <= $6
 AND (NOT $7 OR EXISTS (SELECT 1 FROM object k WHERE k.id = x.object AND k.kind IN ('stream', 'pack')))
 ORDER BY x.last, x.stream LIMIT $8) r` + refJoins
		short = "SELECT " + refCols + " FROM (SELECT x.* FROM ref x WHERE x.epoch = $1::int8 AND x.shard = $2::int8 AND x.last - x.first < 4096" + inner
		long  = "SELECT " + refCols + " FROM (SELECT x.* FROM ref x WHERE x.epoch = $1::int8 AND x.shard = $2::int8 AND x.last - x.first >= 4096 AND length(to_hex(x.last - x.first)) = $9" + inner
	)
	from, stream := c.at, int64(1)<<62 // ids of streams are far below
	if after != nil && after.Last > from {
		from, stream = after.Last, after.StreamID
	}
	var live []catalog.LiveRef
	for digits := longDigits - 1; digits <= maxDigits; digits++ {
		args := []any{int64(c.Epoch), int64(c.Shard), seqArg(from), stream, behind(c.at, digits), seqArg(c.at), c.settled, int64(n + 1)}
		if digits < longDigits {
			t.askRefs(&live, short, args...)
		} else {
			t.askRefs(&live, long, append(args, int32(digits))...)
		}
	}
	if err := t.flush(); err != nil {
		return nil, false, err
	}
	slices.SortFunc(live, func(a, b catalog.LiveRef) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.StreamID, b.StreamID))
	})
	refs, more = pageOf(live, n)
	return refs, more, nil
}

// behind is the last seq at which a ref of so many digits may end that lies across at.
func behind(at segment.Seq, digits int) int64 {
	if digits >= maxDigits {
		return math.MaxInt64
	}
	reach := int64(1) << (4 * digits)
	if seqArg(at) > math.MaxInt64-reach {
		return math.MaxInt64
	}
	return int64(at) + reach
}

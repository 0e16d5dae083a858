package postgres

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// across are refs with First <= at < Last, by (last, stream), after the one given. A ref
// of d hex digits of length that lies across a cut ends within 16^d rows behind it, and
// there each stream has few refs of that length, so every class of lengths is one short
// range of an index: what it costs follows the refs across, not those behind. Short ones
// end within 4,096 rows, and no two refs of a chain end at one row. All classes are one
// round trip.
func (t *tx) across(c column.Cut, after *catalog.Ref, n int) (refs []catalog.Ref, more bool, err error) {
	const (
		inner = ` AND (x.last, x.stream) > ($3::int8, $4::int8) AND x.last <= $5 AND x.first <= $6
 AND (NOT $7 OR EXISTS (SELECT 1 FROM object k WHERE k.id = x.object AND k.kind IN ('stream', 'pack')))
 ORDER BY x.last, x.stream LIMIT $8) r` + refJoins
		short = "SELECT " + refCols + " FROM (SELECT x.* FROM ref x WHERE x.epoch = $1::int8 AND x.shard = $2::int8 AND x.last - x.first < 4096" + inner
		long  = "SELECT " + refCols + " FROM (SELECT x.* FROM ref x WHERE x.epoch = $1::int8 AND x.shard = $2::int8 AND x.last - x.first >= 4096 AND length(to_hex(x.last - x.first)) = $9" + inner
	)
	from, stream := c.Behind(after)
	var live []catalog.LiveRef
	for digits := column.LongDigits - 1; digits <= column.MaxDigits; digits++ {
		args := []any{int64(c.Epoch), int64(c.Shard), from, stream, c.Reach(digits), column.Seq(c.At), c.Settled, int64(n + 1)}
		if digits < column.LongDigits {
			t.askRefs(&live, short, args...)
		} else {
			t.askRefs(&live, long, append(args, int32(digits))...)
		}
	}
	if err := t.flush(); err != nil {
		return nil, false, err
	}
	refs, more = column.PageAcross(live, n)
	return refs, more, nil
}

package sqlite

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// across are refs with First <= at < Last, by (last, stream), after the one given. A ref
// of d hex digits of length that lies across a cut ends within 16^d rows behind it, and
// there each stream has few refs of that length, so every class of lengths is one short
// range of an index: what it costs follows the refs across, not those behind. Short ones
// end within 4,096 rows, and no two refs of a chain end at one row.
func (t *tx) across(c column.Cut, after *catalog.Ref, n int) (refs []catalog.Ref, more bool, err error) {
	const inner = ` AND (x.last, x.stream) > (?3, ?4) AND x.last <= ?5 AND x.first <= ?6
 AND (?7 = 0 OR EXISTS (SELECT 1 FROM ref y JOIN object k ON k.id = y.object WHERE y.stream = x.stream AND y.epoch = x.epoch AND y.first = x.first AND k.kind IN ('stream', 'pack')))
 ORDER BY x.last, x.stream LIMIT ?8) z
 CROSS JOIN ref r ON r.stream = z.stream AND r.epoch = z.epoch AND r.first = z.first` + refJoins
	const (
		short = "SELECT " + refCols + " FROM (SELECT x.stream, x.epoch, x.first FROM ref x WHERE x.epoch = ?1 AND x.shard = ?2 AND x.last - x.first < 4096" + inner
		long  = "SELECT " + refCols + " FROM (SELECT x.stream, x.epoch, x.first FROM ref x WHERE x.epoch = ?1 AND x.shard = ?2 AND x.last - x.first >= 4096 AND length(printf('%x', x.last - x.first)) = ?9" + inner
	)
	from, stream := c.Behind(after)
	args := []any{c.Epoch, c.Shard, from, stream, 0, column.Seq(c.At), c.Settled, n + 1}
	var live []catalog.LiveRef
	for digits := column.LongDigits - 1; digits <= column.MaxDigits; digits++ {
		q, args := long, append(args, digits)
		if digits < column.LongDigits {
			q, args = short, args[:len(args)-1]
		}
		args[4] = c.Reach(digits)
		some, err := t.refs(q, args...)
		if err != nil {
			return nil, false, err
		}
		live = append(live, some...)
	}
	refs, more = column.PageAcross(live, n)
	return refs, more, nil
}

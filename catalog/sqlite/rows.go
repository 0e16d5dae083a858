package sqlite

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// A ref is read with left joins: one that names a missing row is corruption, and
// must not look like no ref at all.
const (
	refCols = `r.stream, COALESCE(s.name, ''), r.epoch, r.shard, r.first, r.last, r.prev_epoch, r.prev_seq,
 COALESCE(o.key, ''), COALESCE(o.kind, ''), COALESCE(o.class, ''), COALESCE(o.revision, 0), COALESCE(o.generation, 0),
 r.chunks, r.offset, r.stored, r.raw, r.codec, r.crc, r.sum, r.rows, r.row_sum, r.bytes, r.min_time, r.max_time,
 COALESCE(s.live_epoch, -1), COALESCE(s.live_seq, 0), COALESCE(c.watermark_seq, -1)`
	refJoins = ` LEFT JOIN object o ON o.id = r.object LEFT JOIN stream s ON s.id = r.stream
 LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard `
	selectRefs = "SELECT " + refCols + " FROM ref r" + refJoins
)

// scanRef reads refCols, and more columns after them.
func scanRef(scan column.Scan, more ...any) (catalog.LiveRef, error) {
	var name string
	l, err := column.Ref(scan, &name, more...)
	l.Stream = name
	return l, err
}

// refs collects refs of a query over selectRefs.
func (t *tx) refs(q string, args ...any) ([]catalog.LiveRef, error) {
	var out []catalog.LiveRef
	err := t.query(q, func(scan column.Scan) error {
		l, err := scanRef(scan)
		out = append(out, l)
		return err
	}, args...)
	return out, err
}

func (t *tx) chain(c segment.Chain) (catalog.ChainRow, error) {
	var row catalog.ChainRow
	found := false
	err := t.query("SELECT "+column.Chains+" FROM chain WHERE epoch = ? AND shard = ?", func(scan column.Scan) (err error) {
		found = true
		row, err = column.Chain(scan)
		return err
	}, int64(c.Epoch), int64(c.Shard))
	if err == nil && !found {
		err = fmt.Errorf("%w: chain %s; its topology makes it", catalog.ErrNotFound, c)
	}
	return row, err
}

// putChain writes all of a row but its key. Only one writer runs at a time, so a
// row that was read in this transaction is still what stands.
func (t *tx) putChain(r *catalog.ChainRow) error {
	if err := catalog.CheckCursors(r); err != nil {
		return err
	}
	consumers, err := column.Consumers(r.Consumers)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE chain SET owner = ?, address = ?, term = ?, lease_end = ?, closed = ?, absorbed_end = ?, last_uuid = ?, last_term = ?, next_seq = ?,
 rewritten = ?, condemned = ?, condemned_at = ?, trimmed = ?, watermark_seq = ?, watermark_segment = ?, consumers = ?, transit_bytes = ?, transit_since = ?, trim_journal = ?
 WHERE epoch = ? AND shard = ?`,
		r.Owner[:], r.Address, r.Term, column.Nanos(r.LeaseEnd), r.Closed, r.AbsorbedEnd, r.LastUUID[:], r.LastTerm, r.NextSeq,
		r.Rewritten, r.Condemned, column.Nanos(r.CondemnedAt), r.Trimmed, r.WatermarkSeq, r.WatermarkSegment, consumers, r.TransitBytes, column.Nanos(r.TransitSince), r.TrimJournal,
		r.Epoch, r.Shard)
}

func (t *tx) slots(q string, args ...any) ([]catalog.SlotRow, error) {
	var out []catalog.SlotRow
	err := t.query(q, func(scan column.Scan) error {
		r, err := column.Slot(scan)
		out = append(out, r)
		return err
	}, args...)
	return out, err
}

func scanStream(scan column.Scan, more ...any) (catalog.Stream, error) {
	var name string
	s, err := column.Stream(scan, &name, more...)
	s.Name = name
	return s, err
}

// streamBy reads one stream by a condition, and the effective live_from that its
// newest chain gives it.
func (t *tx) streamBy(where string, arg any) (s catalog.Stream, live segment.Pos, err error) {
	found := false
	err = t.query("SELECT "+column.Streams+`, s.last_shard,
 COALESCE((SELECT c.watermark_seq FROM chain c WHERE c.epoch = s.last_epoch AND c.shard = s.last_shard), 0) FROM stream s WHERE `+where,
		func(scan column.Scan) (err error) {
			found = true
			var shard, watermark int64
			s, err = scanStream(scan, &shard, &watermark)
			live = catalog.EffectiveLiveFrom(s.LiveFrom, segment.Chain{Epoch: s.Last.Epoch, Shard: segment.Shard(shard)}, segment.Seq(watermark))
			return err
		}, arg)
	if err == nil && !found {
		err = fmt.Errorf("%w: stream %v", catalog.ErrNotFound, arg)
	}
	return s, live, err
}

func (t *tx) audit(kind, subject, detail string) error {
	if err := t.exec("INSERT INTO audit (time, kind, subject, detail) VALUES (?, ?, ?, ?)", column.Nanos(t.now), kind, subject, detail); err != nil {
		return err
	}
	return t.exec("DELETE FROM audit WHERE seq <= (SELECT MAX(seq) FROM audit) - ?", catalog.AuditKept)
}

// grace is how long whoever deletes has to wait, read in this transaction.
func (t *tx) grace() (int64, error) {
	s, err := t.settings()
	return int64(s.ReadGrace.Deleting(t.now, catalog.DefaultReadGrace)), err
}

// checkKinds stops a deleting verb if any ref's object has a kind that this build
// does not know (K16).
func (t *tx) checkKinds(verb string) error {
	var kind, key string
	odd, err := t.one("SELECT kind, key FROM object WHERE kind <> 'slot' AND kind <> 'stream' AND kind <> 'pack' AND kind <> 'lost' LIMIT 1", nil, &kind, &key)
	if err != nil {
		return err
	}
	if odd {
		return catalog.ErrUnknownKind(verb, catalog.RefKind(kind), key)
	}
	return nil
}

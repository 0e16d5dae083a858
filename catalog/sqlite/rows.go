package sqlite

import (
	"encoding/json"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

type scanFunc = func(...any) error

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

// scanRef reads refCols: the ref and the effective live_from of its stream in its
// chain.
func scanRef(scan scanFunc) (catalog.LiveRef, error) {
	var v [21]int64
	var liveEpoch, liveSeq, watermark int64
	var l catalog.LiveRef
	r := &l.Ref
	if err := scan(&v[0], &r.Stream, &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
		&r.Key, (*string)(&r.Kind), (*string)(&r.Class), &v[7], &v[8],
		&v[9], &v[10], &v[11], &v[12], &v[13], &v[14], &v[15], &v[16], &v[17], &v[18], &v[19], &v[20],
		&liveEpoch, &liveSeq, &watermark); err != nil {
		return l, err
	}
	r.StreamID = v[0]
	r.Chain = segment.Chain{Epoch: segment.Epoch(v[1]), Shard: segment.Shard(v[2])}
	r.First, r.Last = segment.Seq(v[3]), segment.Seq(v[4])
	r.PrevLast = segment.Pos{Epoch: segment.Epoch(v[5]), Seq: segment.Seq(v[6])}
	r.Revision, r.Generation = int32(v[7]), uint32(v[8])
	r.Chunks, r.Offset, r.Stored, r.Raw = uint32(v[9]), v[10], v[11], v[12]
	r.Codec, r.CRC, r.Sum = segment.Codec(v[13]), uint32(v[14]), uint64(v[15])
	r.Rows, r.RowSum, r.Bytes = uint64(v[16]), uint64(v[17]), v[18]
	r.MinTime, r.MaxTime = v[19], v[20]
	if r.Kind == "" || liveEpoch < 0 || watermark < 0 {
		return l, fmt.Errorf("%w: ref %s of stream %d names no object, stream or chain that stands; run fsck", catalog.ErrCorrupt, r.FirstPos(), r.StreamID)
	}
	l.LiveFrom = catalog.EffectiveLiveFrom(segment.Pos{Epoch: segment.Epoch(liveEpoch), Seq: segment.Seq(liveSeq)}, r.Chain, segment.Seq(watermark))
	return l, nil
}

// refs collects refs of a query over selectRefs.
func (t *tx) refs(q string, args ...any) ([]catalog.LiveRef, error) {
	var out []catalog.LiveRef
	err := t.query(q, func(scan scanFunc) error {
		l, err := scanRef(scan)
		out = append(out, l)
		return err
	}, args...)
	return out, err
}

const chainCols = `epoch, shard, owner, address, term, lease_end, closed, absorbed_end, last_uuid, last_term, next_seq,
 rewritten, condemned, condemned_at, trimmed, watermark_seq, watermark_segment, consumers, transit_bytes, transit_since, trim_journal`

func scanChain(scan scanFunc) (catalog.ChainRow, error) {
	var r catalog.ChainRow
	var lease, condemned, transit int64
	var consumers string
	if err := scan(&r.Epoch, &r.Shard, &r.Owner, &r.Address, &r.Term, &lease, &r.Closed, &r.AbsorbedEnd, &r.LastUUID, &r.LastTerm, &r.NextSeq,
		&r.Rewritten, &r.Condemned, &condemned, &r.Trimmed, &r.WatermarkSeq, &r.WatermarkSegment, &consumers, &r.TransitBytes, &transit, &r.TrimJournal); err != nil {
		return r, err
	}
	r.LeaseEnd, r.CondemnedAt, r.TransitSince = at(lease), at(condemned), at(transit)
	if err := fromJSON("consumers of chain "+r.Chain.String(), consumers, &r.Consumers); err != nil {
		return r, err
	}
	return r, catalog.CheckCursors(&r)
}

func (t *tx) chain(c segment.Chain) (catalog.ChainRow, error) {
	var row catalog.ChainRow
	found := false
	err := t.query("SELECT "+chainCols+" FROM chain WHERE epoch = ? AND shard = ?", func(scan scanFunc) (err error) {
		found = true
		row, err = scanChain(scan)
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
	if r.Consumers == nil {
		r.Consumers = []segment.Consumer{}
	}
	consumers, err := json.Marshal(r.Consumers)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE chain SET owner = ?, address = ?, term = ?, lease_end = ?, closed = ?, absorbed_end = ?, last_uuid = ?, last_term = ?, next_seq = ?,
 rewritten = ?, condemned = ?, condemned_at = ?, trimmed = ?, watermark_seq = ?, watermark_segment = ?, consumers = ?, transit_bytes = ?, transit_since = ?, trim_journal = ?
 WHERE epoch = ? AND shard = ?`,
		r.Owner[:], r.Address, r.Term, nanos(r.LeaseEnd), r.Closed, r.AbsorbedEnd, r.LastUUID[:], r.LastTerm, r.NextSeq,
		r.Rewritten, r.Condemned, nanos(r.CondemnedAt), r.Trimmed, r.WatermarkSeq, r.WatermarkSegment, string(consumers), r.TransitBytes, nanos(r.TransitSince), r.TrimJournal,
		r.Epoch, r.Shard)
}

const slotCols = `s.epoch, s.shard, s.id, s.first, s.next, s.bytes, s.uuid, s.prev, s.digest, s.term, s.sealed, s.closed, s.void`

// scanSlot reads slotCols and more columns after them.
func scanSlot(scan scanFunc, more ...any) (catalog.SlotRow, error) {
	var r catalog.SlotRow
	var digest, sealed int64
	err := scan(append([]any{
		&r.Epoch, &r.Shard, &r.ID, &r.First, &r.Next, &r.Bytes, &r.UUID, &r.Prev, &digest, &r.Term, &sealed, &r.Closed, &r.Void,
	}, more...)...)
	r.Digest, r.Sealed = uint64(digest), at(sealed)
	return r, err
}

func (t *tx) slots(q string, args ...any) ([]catalog.SlotRow, error) {
	var out []catalog.SlotRow
	err := t.query(q, func(scan scanFunc) error {
		r, err := scanSlot(scan)
		out = append(out, r)
		return err
	}, args...)
	return out, err
}

const streamCols = `s.id, s.name, s.live_epoch, s.live_seq, s.last_epoch, s.last_seq, s.deleted, s.created`

func scanStream(scan scanFunc, more ...any) (catalog.Stream, error) {
	var s catalog.Stream
	var created int64
	err := scan(append([]any{&s.ID, &s.Name, &s.LiveFrom.Epoch, &s.LiveFrom.Seq, &s.Last.Epoch, &s.Last.Seq, &s.Deleted, &created}, more...)...)
	s.Created = at(created)
	return s, err
}

// streamBy reads one stream by a condition, and the effective live_from that its
// newest chain gives it.
func (t *tx) streamBy(where string, arg any) (s catalog.Stream, live segment.Pos, err error) {
	found := false
	err = t.query("SELECT "+streamCols+`, s.last_shard,
 COALESCE((SELECT c.watermark_seq FROM chain c WHERE c.epoch = s.last_epoch AND c.shard = s.last_shard), 0) FROM stream s WHERE `+where,
		func(scan scanFunc) (err error) {
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
	if err := t.exec("INSERT INTO audit (time, kind, subject, detail) VALUES (?, ?, ?, ?)", nanos(t.now), kind, subject, detail); err != nil {
		return err
	}
	return t.exec("DELETE FROM audit WHERE seq <= (SELECT MAX(seq) FROM audit) - ?", auditKept)
}

// auditKept is how many audit rows stay; at a few hundred bytes each they stay
// small beside the refs.
const auditKept = 100_000

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

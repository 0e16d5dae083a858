package postgres

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// Epochs and shards are int in the tables and int8 in the statements: an epoch that no
// table can hold is compared, and found nowhere.

// maybeChain is what a query for one chain finds.
type maybeChain struct {
	row   catalog.ChainRow
	found bool
}

func (m *maybeChain) get(c segment.Chain) (catalog.ChainRow, error) {
	if !m.found {
		return m.row, fmt.Errorf("%w: chain %s; its topology makes it", catalog.ErrNotFound, c)
	}
	return m.row, nil
}

func (t *tx) askChain(c segment.Chain, how string) *maybeChain {
	m := &maybeChain{}
	t.ask("SELECT "+column.Chains+" FROM chain WHERE epoch = $1::int8 AND shard = $2::int8"+how, func(scan column.Scan) (err error) {
		m.found = true
		m.row, err = column.Chain(scan)
		return err
	}, int64(c.Epoch), int64(c.Shard))
	return m
}

// chain reads a row as it stands now.
func (t *tx) chain(c segment.Chain) (catalog.ChainRow, error) {
	m := t.askChain(c, "")
	if err := t.flush(); err != nil {
		return m.row, err
	}
	return m.get(c)
}

// lockChain reads a row and keeps it: whatever else moves a cursor, the owner or the
// watermark of this chain waits until this verb has ended, and then sees what it did. So
// the guards of acquire, absorb, renew, the trim-check and retention need no more than
// their row: of two the second judges by what the first left.
func (t *tx) lockChain(c segment.Chain) (catalog.ChainRow, error) {
	m := t.askChain(c, " FOR UPDATE")
	if err := t.flush(); err != nil {
		return m.row, err
	}
	return m.get(c)
}

// putChain writes all of a locked row but its key.
func (t *tx) putChain(r *catalog.ChainRow) error {
	if err := catalog.CheckCursors(r); err != nil {
		return err
	}
	consumers, err := column.Consumers(r.Consumers)
	if err != nil {
		return err
	}
	t.exec(`UPDATE chain SET owner = $1, address = $2, term = $3, lease_end = $4, closed = $5, absorbed_end = $6, last_uuid = $7, last_term = $8, next_seq = $9,
 rewritten = $10, condemned = $11, condemned_at = $12, trimmed = $13, watermark_seq = $14, watermark_segment = $15, consumers = $16, transit_bytes = $17, transit_since = $18, trim_journal = $19
 WHERE epoch = $20::int8 AND shard = $21::int8`,
		r.Owner[:], plain(r.Address), int64(r.Term), column.Nanos(r.LeaseEnd), r.Closed, int64(r.AbsorbedEnd), r.LastUUID[:], int64(r.LastTerm), int64(r.NextSeq),
		int64(r.Rewritten), int64(r.Condemned), column.Nanos(r.CondemnedAt), int64(r.Trimmed), int64(r.WatermarkSeq), int64(r.WatermarkSegment),
		consumers, r.TransitBytes, column.Nanos(r.TransitSince), int64(r.TrimJournal), int64(r.Epoch), int64(r.Shard))
	return nil
}

// ofChain begins the condition of every query over one chain's slots.
const ofChain = "SELECT " + column.Slots + " FROM slot s WHERE s.epoch = $1::int8 AND s.shard = $2::int8 AND "

func (t *tx) askSlots(out *[]catalog.SlotRow, where string, c segment.Chain, args ...any) {
	t.ask(ofChain+where, func(scan column.Scan) error {
		r, err := column.Slot(scan)
		*out = append(*out, r)
		return err
	}, append([]any{int64(c.Epoch), int64(c.Shard)}, args...)...)
}

func scanStream(scan column.Scan, more ...any) (catalog.Stream, error) {
	var name []byte
	s, err := column.Stream(scan, &name, more...)
	s.Name = string(name)
	return s, err
}

// maybeStream is one stream, and the effective live_from that its newest chain gives it.
type maybeStream struct {
	catalog.Stream
	live  segment.Pos
	found bool
	by    any
}

func (t *tx) askStream(where string, arg any, how string) *maybeStream {
	m := &maybeStream{by: arg}
	t.ask("SELECT "+column.Streams+`, s.last_shard,
 COALESCE((SELECT c.watermark_seq FROM chain c WHERE c.epoch = s.last_epoch AND c.shard = s.last_shard), 0) FROM stream s WHERE `+where+how,
		func(scan column.Scan) (err error) {
			m.found = true
			var shard, watermark int64
			m.Stream, err = scanStream(scan, &shard, &watermark)
			m.live = catalog.EffectiveLiveFrom(m.LiveFrom, segment.Chain{Epoch: m.Last.Epoch, Shard: segment.Shard(shard)}, segment.Seq(watermark))
			return err
		}, arg)
	return m
}

func (m *maybeStream) check() error {
	if m.found {
		return nil
	}
	if name, ok := m.by.([]byte); ok {
		return fmt.Errorf("%w: stream %s", catalog.ErrNotFound, name)
	}
	return fmt.Errorf("%w: stream %v", catalog.ErrNotFound, m.by)
}

// audit appends a row. Numbers come from a sequence, so two that are written at once may
// come to be seen in the other order.
func (t *tx) audit(kind, subject, detail string) {
	t.exec("INSERT INTO audit (at, kind, subject, detail) VALUES ($1, $2, $3, $4)", column.Nanos(t.now), plain(kind), plain(subject), plain(detail))
	t.exec("DELETE FROM audit WHERE seq <= (SELECT max(seq) FROM audit) - $1::int8", catalog.AuditKept)
}

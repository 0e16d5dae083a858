package postgres

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// AbsorbSlot takes a published slot into the history (03 §2 step 3): at most six round
// trips, whatever the number of refs.
//
// Against an acquire, another absorb, the trim-check and retention it holds the chain's
// row; against a trim of one of its streams the stream's, from before it decides which
// chunks are dead.
func (d *DB) AbsorbSlot(ctx context.Context, a catalog.Absorb) (out catalog.Absorbed, err error) {
	if err := catalog.ValidateAbsorb(&a); err != nil {
		return out, err
	}
	err = d.write(ctx, "AbsorbSlot", func(t *tx) (err error) {
		out, err = t.absorb(&a)
		return err
	})
	return out, err
}

// absorbing is what an absorb reads in its first round trip.
type absorbing struct {
	chain    *maybeChain
	stood    []catalog.SlotRow
	term     *catalog.TermRow
	settles  *bool // nil: no topology
	settings *catalog.Settings
	object   int64 // a number for the slot's object
}

func (t *tx) absorb(a *catalog.Absorb) (out catalog.Absorbed, err error) {
	in := t.askAbsorb(a)
	if err := t.flush(); err != nil {
		return out, err
	}
	row, err := in.chain.get(a.Slot.Chain)
	if err != nil {
		return out, err
	}
	look := catalog.Absorbing{Term: in.term}
	if len(in.stood) == 1 && a.Slot.ID < row.AbsorbedEnd {
		look.Stood = &in.stood[0]
	}
	already, err := catalog.CheckAbsorb(&row, a, look, t.now)
	if err != nil || already {
		return catalog.Absorbed{Chain: row, Already: already && err == nil}, err
	}
	if a.Void {
		err = t.absorbVoid(a, &row)
		return catalog.Absorbed{Chain: row}, err
	}
	if in.settles == nil {
		return out, catalog.NoTopology(row.Epoch)
	}
	if out.Inserted, out.Dead, err = t.absorbRefs(a, &row, in); err != nil {
		return out, err
	}
	t.insertSlot(&a.Slot, a.Key, *in.settles)
	if *in.settles {
		row.AddTransit(&a.Slot)
		t.arm(catalog.DutySettle, catalog.SettleID(row.Chain, a.Slot.ID), a.Class, 0)
	}
	err = t.advanceChain(a, &row, in)
	out.Chain = row
	return out, err
}

// askAbsorb locks the chain and then reads: each of the queries behind the lock sees what
// the lock's last holder left.
func (t *tx) askAbsorb(a *catalog.Absorb) *absorbing {
	s := &a.Slot
	epoch, shard := int64(s.Epoch), int64(s.Shard)
	in := &absorbing{chain: t.askChain(s.Chain, " FOR UPDATE")}
	t.askSlots(&in.stood, "s.id = $3", s.Chain, int64(s.ID))
	t.ask("SELECT "+column.Terms+" FROM term WHERE epoch = $1::int8 AND shard = $2::int8 AND term = $3", func(scan column.Scan) error {
		r, err := column.Term(scan)
		in.term = &r
		return err
	}, epoch, shard, int64(s.Term))
	if a.Void {
		return in
	}
	t.ask("SELECT settle FROM topology WHERE epoch = $1::int8", func(scan column.Scan) error {
		in.settles = new(bool)
		return scan(in.settles)
	}, epoch)
	in.settings = t.askSettings("")
	if len(a.Refs) > 0 {
		t.askOne("SELECT nextval(pg_get_serial_sequence('object', 'id'))", nil, nil, &in.object)
	}
	return in
}

func bytesOf(names []string) [][]byte {
	out := make([][]byte, len(names))
	for i, n := range names {
		out[i] = []byte(n)
	}
	return out
}

// absorbVoid: only absorbed_end moves. A slot that may hold rows keeps a parked
// marker, which nothing passes, until a person accepts the loss.
func (t *tx) absorbVoid(a *catalog.Absorb, row *catalog.ChainRow) error {
	s := a.Slot
	s.Void = true
	t.insertSlot(&s, a.Key, false)
	if a.HoldsRows() {
		id := catalog.SettleID(s.Chain, s.ID)
		t.arm(catalog.DutySettle, id, a.Class, catalog.Parked.Sub(t.now))
		t.exec("UPDATE marker SET last_error = $1 WHERE duty = $2 AND id = $3", plain("void: "+a.Reason), string(catalog.DutySettle), id)
	}
	row.AbsorbedEnd++
	t.audit("void", s.Chain.String(), catalog.DescribeVoid(a))
	return t.putChain(row)
}

func (t *tx) insertSlot(s *catalog.SlotRow, key string, owed bool) {
	t.exec(`INSERT INTO slot (epoch, shard, id, first, next, bytes, uuid, prev, digest, term, sealed, closed, void, owed, key)
 VALUES ($1::int8, $2::int8, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		int64(s.Epoch), int64(s.Shard), int64(s.ID), int64(s.First), int64(s.Next), s.Bytes, s.UUID[:], s.Prev[:], int64(s.Digest), int64(s.Term),
		column.Nanos(s.Sealed), s.Closed, s.Void, owed, key)
}

// advanceChain moves the chain's cursors, consumers and term over the slot.
func (t *tx) advanceChain(a *catalog.Absorb, row *catalog.ChainRow, in *absorbing) error {
	term, slowest := catalog.AdvanceChain(row, a, in.term)
	if slowest {
		t.armTrim(row.Chain, in.settings)
	}
	t.exec(`INSERT INTO term VALUES ($1::int8, $2::int8, $3, $4, $5, $6, $7)
 ON CONFLICT (epoch, shard, term) DO UPDATE SET first = excluded.first, last = excluded.last, last_seq = excluded.last_seq`,
		int64(term.Epoch), int64(term.Shard), int64(term.Term), term.Owner[:], int64(term.First), int64(term.Last), int64(term.LastSeq))
	return t.putChain(row)
}

// absorbRefs inserts one ref per chunk that is not wholly dead, and moves the streams'
// tips.
func (t *tx) absorbRefs(a *catalog.Absorb, row *catalog.ChainRow, in *absorbing) (inserted, dead int, err error) {
	if len(a.Refs) == 0 {
		return 0, 0, nil
	}
	streams, err := t.moveTips(a, row)
	if err != nil {
		return 0, 0, err
	}
	fresh := make([]*catalog.Stream, 0, len(streams))
	for _, n := range a.StreamNames() {
		if streams[n] == nil {
			streams[n] = &catalog.Stream{Name: n}
			fresh = append(fresh, streams[n])
		}
	}
	live, dead, err := catalog.PlaceRefs(a, row, streams)
	if err != nil {
		return 0, 0, err
	}
	if err := t.createStreams(fresh, row.Shard); err != nil || len(live) == 0 {
		return 0, dead, err
	}
	for i := range live {
		live[i].StreamID = streams[live[i].Stream].ID
	}
	catalog.SortRefs(live) // the order of the table: fewer page visits
	r := &live[0]
	t.exec("INSERT INTO object (id, key, kind, class, revision, generation) VALUES ($1, $2, $3, $4, $5, $6)",
		in.object, r.Key, string(r.Kind), string(r.Class), int64(r.Revision), int64(r.Generation))
	return len(live), dead, t.insertRefs(live, func(*catalog.Ref) int64 { return in.object })
}

// moveTips moves the tips of the streams that stand to the slot's last rows of them, in one
// statement and in the order of their names, and returns them as they stood before. What
// it moved in vain, because a guard fails, goes with the transaction.
func (t *tx) moveTips(a *catalog.Absorb, row *catalog.ChainRow) (map[string]*catalog.Stream, error) {
	names := a.StreamNames()
	lasts := make([]int64, 0, len(names))
	for i := range a.Refs {
		if i > 0 && a.Refs[i].Stream == a.Refs[i-1].Stream {
			lasts[len(lasts)-1] = int64(a.Refs[i].Last)
			continue
		}
		lasts = append(lasts, int64(a.Refs[i].Last))
	}
	out := make(map[string]*catalog.Stream, len(names))
	// A stream stays deleted if all that comes is dead: below its live_from or the watermark.
	err := t.query(`UPDATE stream s SET before_epoch = s.last_epoch, before_seq = s.last_seq, last_epoch = $3::int8, last_seq = n.last, last_shard = $4::int8,
  deleted = s.deleted AND (($3::int8, n.last) < (s.live_epoch, s.live_seq) OR n.last <= $5::int8)
 FROM unnest($1::bytea[], $2::int8[]) n(name, last) WHERE s.name = n.name RETURNING s.id, s.name, s.live_epoch, s.live_seq, s.before_epoch, s.before_seq`, func(scan column.Scan) error {
		var s catalog.Stream
		var name []byte
		err := scan(&s.ID, &name, &s.LiveFrom.Epoch, &s.LiveFrom.Seq, &s.Last.Epoch, &s.Last.Seq)
		s.Name = string(name)
		out[s.Name] = &s
		return err
	}, bytesOf(names), lasts, int64(row.Epoch), int64(row.Shard), int64(row.WatermarkSeq))
	return out, err
}

// createStreams makes the rows of streams that come for the first time, with the tips that
// the slot leaves; one name has one id for ever. A name that another verb made meanwhile
// has its id: the absorb is run again, and finds it.
func (t *tx) createStreams(fresh []*catalog.Stream, shard segment.Shard) error {
	if len(fresh) == 0 {
		return nil
	}
	n := len(fresh)
	names, hashes, epochs, seqs := make([]string, n), make([]string, n), make([]int64, n), make([]int64, n)
	of := make(map[string]*catalog.Stream, n)
	for i, s := range fresh {
		hash, err := catalog.StreamHash(s.Name)
		if err != nil {
			return err
		}
		names[i], hashes[i], epochs[i], seqs[i] = s.Name, hash, int64(s.Last.Epoch), int64(s.Last.Seq)
		of[s.Name] = s
	}
	made := 0
	if err := t.query(`INSERT INTO stream (name, hash, last_epoch, last_seq, last_shard, live_epoch, live_seq, before_epoch, before_seq, deleted, created)
 SELECT j.name, j.hash, j.epoch, j.seq, $5::int8, 0, 0, 0, 0, false, $6 FROM unnest($1::bytea[], $2::text[], $3::int8[], $4::int8[]) j(name, hash, epoch, seq)
 ON CONFLICT (name) DO NOTHING RETURNING id, name`, func(scan column.Scan) error {
		var id int64
		var name []byte
		err := scan(&id, &name)
		made++
		of[string(name)].ID = id
		return err
	}, bytesOf(names), hashes, epochs, seqs, int64(shard), column.Nanos(t.now)); err != nil {
		return err
	}
	if made != n {
		return fmt.Errorf("%w: %d of %d streams", errMoved, made, n)
	}
	return nil
}

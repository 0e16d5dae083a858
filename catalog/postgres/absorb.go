package postgres

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// AbsorbSlot takes a published slot into the history (03 §2 step 3). Three round trips and
// a commit, whatever the number of refs; one more where streams come for the first time.
//
// Against an acquire, another absorb, the trim-check and retention it holds the chain's
// row. Against a trim of one of its streams it holds nothing while it decides which chunks
// are dead: it moves the streams' rows only if they are as it read them, and is run again
// if one is not.
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
	streams  map[string]*standingStream
	object   int64 // a number for the slot's object
}

// standingStream is a stream's row as it was read, and as the slot leaves it.
type standingStream struct{ was, is catalog.Stream }

func (t *tx) absorb(a *catalog.Absorb) (out catalog.Absorbed, err error) {
	in := t.askAbsorb(a)
	if err := t.flush(); err != nil {
		return out, err
	}
	row, err := in.chain.get(a.Slot.Chain)
	if err != nil {
		return out, err
	}
	var stood *catalog.SlotRow
	if len(in.stood) == 1 && a.Slot.ID < row.AbsorbedEnd {
		stood = &in.stood[0]
	}
	already, err := catalog.CheckAbsorb(&row, a, stood, in.term, t.now)
	if err != nil || already {
		return catalog.Absorbed{Chain: row, Already: already && err == nil}, err
	}
	if a.Void {
		err = t.absorbVoid(a, &row)
		return catalog.Absorbed{Chain: row}, err
	}
	if in.settles == nil {
		return out, noTopology(row.Epoch)
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
	in := &absorbing{chain: t.askChain(s.Chain, " FOR UPDATE"), streams: map[string]*standingStream{}}
	t.askSlots(&in.stood, "s.id = $3", s.Chain, int64(s.ID))
	t.ask("SELECT "+termCols+" FROM term WHERE epoch = $1::int8 AND shard = $2::int8 AND term = $3", func(scan scanFunc) error {
		r, err := scanTerm(scan)
		in.term = &r
		return err
	}, epoch, shard, int64(s.Term))
	if a.Void {
		return in
	}
	t.ask("SELECT settle FROM topology WHERE epoch = $1::int8", func(scan scanFunc) error {
		in.settles = new(bool)
		return scan(in.settles)
	}, epoch)
	in.settings = t.askSettings("")
	if len(a.Refs) > 0 {
		t.askStreams(a.StreamNames(), in.streams)
		t.askOne("SELECT nextval(pg_get_serial_sequence('object', 'id'))", nil, nil, &in.object)
	}
	return in
}

func (t *tx) askStreams(names []string, out map[string]*standingStream) {
	t.ask("SELECT "+streamCols+" FROM unnest($1::bytea[]) j(name) JOIN stream s ON s.name = j.name", func(scan scanFunc) error {
		s, err := scanStream(scan)
		out[s.Name] = &standingStream{s, s}
		return err
	}, bytesOf(names))
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
		nanos(s.Sealed), s.Closed, s.Void, owed, key)
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
	names := a.StreamNames()
	streams := make(map[string]*catalog.Stream, len(names))
	var fresh, stood []*standingStream
	for _, n := range names {
		s := in.streams[n]
		if s == nil {
			s = &standingStream{is: catalog.Stream{Name: n}}
			fresh = append(fresh, s)
		} else {
			stood = append(stood, s)
		}
		streams[n] = &s.is
	}
	live, dead, err := catalog.PlaceRefs(a, row, streams)
	if err != nil {
		return 0, 0, err
	}
	if err := t.createStreams(fresh, row.Shard); err != nil {
		return 0, 0, err
	}
	t.moveTips(stood, row.Shard)
	if len(live) == 0 {
		return 0, dead, nil
	}
	for i := range live {
		live[i].StreamID = streams[live[i].Stream].ID
	}
	sortRefs(live) // the order of the table: fewer page visits
	r := &live[0]
	t.exec("INSERT INTO object (id, key, kind, class, revision, generation) VALUES ($1, $2, $3, $4, $5, $6)",
		in.object, r.Key, string(r.Kind), string(r.Class), int64(r.Revision), int64(r.Generation))
	t.insertRefs(live, func(*catalog.Ref) int64 { return in.object })
	return len(live), dead, nil
}

// createStreams makes the rows of streams that come for the first time, with the tips that
// the slot leaves; one name has one id for ever. A name that another verb made meanwhile
// has its id: the absorb is run again, and finds it.
func (t *tx) createStreams(fresh []*standingStream, shard segment.Shard) error {
	if len(fresh) == 0 {
		return nil
	}
	n := len(fresh)
	names, hashes, epochs, seqs := make([]string, n), make([]string, n), make([]int64, n), make([]int64, n)
	of := make(map[string]*standingStream, n)
	for i, s := range fresh {
		hash, err := catalog.StreamHash(s.is.Name)
		if err != nil {
			return err
		}
		names[i], hashes[i], epochs[i], seqs[i] = s.is.Name, hash, int64(s.is.Last.Epoch), int64(s.is.Last.Seq)
		of[s.is.Name] = s
	}
	made := 0
	if err := t.query(`INSERT INTO stream (name, hash, last_epoch, last_seq, last_shard, live_epoch, live_seq, deleted, created)
 SELECT j.name, j.hash, j.epoch, j.seq, $5::int8, 0, 0, false, $6 FROM unnest($1::bytea[], $2::text[], $3::int8[], $4::int8[]) j(name, hash, epoch, seq)
 ON CONFLICT (name) DO NOTHING RETURNING id, name`, func(scan scanFunc) error {
		var id int64
		var name []byte
		err := scan(&id, &name)
		made++
		of[string(name)].is.ID = id
		return err
	}, bytesOf(names), hashes, epochs, seqs, int64(shard), nanos(t.now)); err != nil {
		return err
	}
	if made != n {
		return fmt.Errorf("%w: %d of %d streams", errMoved, made, n)
	}
	return nil
}

// moveTips queues the streams' last positions, in one statement: of those that are as they
// were read.
func (t *tx) moveTips(stood []*standingStream, shard segment.Shard) {
	if len(stood) == 0 {
		return
	}
	var c [7][]int64
	for i := range c {
		c[i] = make([]int64, len(stood))
	}
	deleted, was := make([]bool, len(stood)), make([]bool, len(stood))
	for i, s := range stood {
		for j, v := range [7]int64{
			s.is.ID, int64(s.is.Last.Epoch), int64(s.is.Last.Seq),
			int64(s.was.Last.Epoch), int64(s.was.Last.Seq), int64(s.was.LiveFrom.Epoch), int64(s.was.LiveFrom.Seq),
		} {
			c[j][i] = v
		}
		deleted[i], was[i] = s.is.Deleted, s.was.Deleted
	}
	t.execAll(len(stood), `UPDATE stream SET last_epoch = n.epoch, last_seq = n.seq, last_shard = $10::int8, deleted = n.deleted
 FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::bool[], $9::bool[])
  n(id, epoch, seq, was_epoch, was_seq, live_epoch, live_seq, deleted, was_deleted)
 WHERE stream.id = n.id AND stream.last_epoch = n.was_epoch AND stream.last_seq = n.was_seq
  AND stream.live_epoch = n.live_epoch AND stream.live_seq = n.live_seq AND stream.deleted = n.was_deleted`,
		c[0], c[1], c[2], c[3], c[4], c[5], c[6], deleted, was, int64(shard))
}

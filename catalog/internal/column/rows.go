package column

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// The columns of the tables, as the functions of the same names read them.
const (
	Chains = `epoch, shard, owner, address, term, lease_end, closed, absorbed_end, last_uuid, last_term, next_seq,
 rewritten, condemned, condemned_at, trimmed, watermark_seq, watermark_segment, consumers, transit_bytes, transit_since, trim_journal`
	Terms      = "epoch, shard, term, owner, first, last, last_seq"
	Slots      = `s.epoch, s.shard, s.id, s.first, s.next, s.bytes, s.uuid, s.prev, s.digest, s.term, s.sealed, s.closed, s.void`
	Streams    = `s.id, s.name, s.live_epoch, s.live_seq, s.last_epoch, s.last_seq, s.deleted, s.created`
	Topologies = "epoch, shards, class, buckets, settle, state, retention"
)

// Chain reads Chains.
func Chain(scan Scan) (catalog.ChainRow, error) {
	var r catalog.ChainRow
	var lease, condemned, transit int64
	var consumers string
	if err := scan(&r.Epoch, &r.Shard, &r.Owner, &r.Address, &r.Term, &lease, &r.Closed, &r.AbsorbedEnd, &r.LastUUID, &r.LastTerm, &r.NextSeq,
		&r.Rewritten, &r.Condemned, &condemned, &r.Trimmed, &r.WatermarkSeq, &r.WatermarkSegment, &consumers, &r.TransitBytes, &transit, &r.TrimJournal); err != nil {
		return r, err
	}
	r.LeaseEnd, r.CondemnedAt, r.TransitSince = At(lease), At(condemned), At(transit)
	if err := FromJSON("consumers of chain "+r.Chain.String(), consumers, &r.Consumers); err != nil {
		return r, err
	}
	return r, catalog.CheckCursors(&r)
}

// Consumers is the column of a chain's consumers.
func Consumers(cs []segment.Consumer) (string, error) {
	if cs == nil {
		cs = []segment.Consumer{}
	}
	return JSON(cs)
}

// Term reads Terms.
func Term(scan Scan) (r catalog.TermRow, err error) {
	err = scan(&r.Epoch, &r.Shard, &r.Term, &r.Owner, &r.First, &r.Last, &r.LastSeq)
	return r, err
}

// Slot reads Slots and more columns after them.
func Slot(scan Scan, more ...any) (catalog.SlotRow, error) {
	var r catalog.SlotRow
	var digest, sealed int64
	err := scan(append([]any{
		&r.Epoch, &r.Shard, &r.ID, &r.First, &r.Next, &r.Bytes, &r.UUID, &r.Prev, &digest, &r.Term, &sealed, &r.Closed, &r.Void,
	}, more...)...)
	r.Digest, r.Sealed = uint64(digest), At(sealed)
	return r, err
}

// StandingSlots are Slots and the columns of their settle markers, m.
const StandingSlots = Slots + ", m.version, m.due, m.class, m.lease_owner, m.lease_end, m.attempts, m.last_error"

// StandingSlot reads StandingSlots.
func StandingSlot(scan Scan) (catalog.StandingSlot, error) {
	var m catalog.Marker
	var due, lease int64
	s, err := Slot(scan, &m.Version, &due, (*string)(&m.Class), &m.LeaseOwner, &lease, &m.Attempts, &m.LastError)
	m.Duty, m.ID, m.Due, m.LeaseEnd = catalog.DutySettle, catalog.SettleID(s.Chain, s.ID), At(due), At(lease)
	return catalog.StandingSlot{SlotRow: s, Marker: m}, err
}

// Stream reads Streams but the name, which goes to name, and more columns after them.
func Stream(scan Scan, name any, more ...any) (catalog.Stream, error) {
	var s catalog.Stream
	var created int64
	err := scan(append([]any{&s.ID, name, &s.LiveFrom.Epoch, &s.LiveFrom.Seq, &s.Last.Epoch, &s.Last.Seq, &s.Deleted, &created}, more...)...)
	s.Created = At(created)
	return s, err
}

// Topology reads Topologies.
func Topology(scan Scan) (r catalog.Topology, err error) {
	var buckets, retention string
	if err := scan(&r.Epoch, &r.Shards, (*string)(&r.Class), &buckets, &r.Settle, (*string)(&r.State), &retention); err != nil {
		return r, err
	}
	if r.Retention, err = catalog.DecodeRetention(retention); err != nil {
		return r, fmt.Errorf("epoch %d: %w", r.Epoch, err)
	}
	return r, FromJSON(fmt.Sprintf("buckets of epoch %d", r.Epoch), buckets, &r.Buckets)
}

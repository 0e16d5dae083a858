package soak

import (
	"math"

	"github.com/strandline/strandline/segment"
)

// loss is a moment at which rows that a shard acknowledged as local may have left the
// history: its owner's disk was deleted, or another writer took the shard from it.
type loss struct {
	term segment.Term // of the owner that was ended; its predecessors are older
	next segment.Seq  // rows below were absorbed by then
	disk string
}

// losing enters a loss, before the taker begins. Until released, the shard may have two
// processes that believe they own it.
func (l *ledger) losing(shard segment.Shard, x loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.losses[shard] = append(l.losses[shard], x)
	l.ghosts[shard]++
}

// released says that the former owner of a shard runs no more.
func (l *ledger) released(shard segment.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ghosts[shard]--
}

// diskGone says that nothing of a disk can come back.
func (l *ledger) diskGone(disk string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[disk] = true
}

// excusable says whether a row may be missing from the history: local, and its term was
// ended by a loss while the row was not absorbed. Under mu.
func (l *ledger) excusable(shard segment.Shard, e *entry) bool {
	if e.shared {
		return false
	}
	for _, x := range l.losses[shard] {
		if x.term >= e.term && e.seq >= x.next {
			return true
		}
	}
	return false
}

// demand is what a read that begins now must show: rows that are absorbed for sure.
type demand struct {
	l      *ledger
	stream string
	from   segment.Seq
	count  int // of the stream's acknowledged rows, as they stood
	upTo   map[segment.Term]segment.Seq
}

func (l *ledger) demands(stream string, from segment.Seq) demand {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[stream]
	d := demand{l: l, stream: stream, from: from, count: len(s.acked), upTo: map[segment.Term]segment.Seq{}}
	for k, seq := range l.durable {
		if k.shard == s.shard {
			d.upTo[k.term] = seq
		}
	}
	return d
}

// sighting is a row that was read.
type sighting struct {
	seq segment.Seq
	n   uint64
}

// met holds what a complete read showed, in its order, against what it had to show. last
// bounds a read that was told to end.
func (d demand) met(who string, seen []sighting, last segment.Seq) bool {
	d.l.mu.Lock()
	defer d.l.mu.Unlock()
	s := d.l.streams[d.stream]
	// As it stands now: what was given up while the read ran may be missing from it.
	floor := max(d.from, s.asked, d.l.slowest[s.shard]+1)
	if last == 0 {
		last = math.MaxUint64
	}
	i := 0
	for k := range s.acked[:d.count] {
		e := &s.acked[k]
		if e.seq < floor || e.seq > last || e.seq > d.upTo[e.term] {
			continue
		}
		for i < len(seen) && seen[i].seq < e.seq {
			i++
		}
		if i == len(seen) || seen[i].seq != e.seq || seen[i].n != e.n {
			d.l.complain("I7, loss: %s of %s from %d ended as complete with %d rows, without %s", who, d.stream, d.from, len(seen), e)
			return false
		}
	}
	return true
}

// salvaging says that from here on rows may come in again.
func (l *ledger) salvaging(s segment.Shard, from segment.Seq) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.salvaged[s]; !ok {
		l.salvaged[s] = from
	}
}

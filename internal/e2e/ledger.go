package e2e

import (
	"fmt"
	"sync"

	"github.com/strandline/strandline/segment"
)

// batch is an acknowledged append.
type batch struct {
	n      uint64 // number of its first row in the stream
	rows   int
	seq    segment.Seq // of its first row
	term   segment.Term
	shared bool
}

// streamLog is what is known of one stream. It has one producer.
type streamLog struct {
	name  string
	shard segment.Shard
	acked []batch // in the order of their numbers
}

type shardTerm struct {
	shard segment.Shard
	term  segment.Term
}

// ledger is what was acknowledged. It is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	streams map[string]*streamLog
	rows    map[segment.Shard]int
	// durable: rows of this term up to here are absorbed, since one there was acknowledged
	// as shared.
	durable map[shardTerm]segment.Seq
	// lost are the terms whose owner's disk was deleted: the only excuse for a missing row.
	lost map[segment.Shard]segment.Term
	// local counts rows that were acknowledged by a lost disk only, as far as is known.
	local, shared int

	complaints []string
}

func newLedger() *ledger {
	return &ledger{
		streams: map[string]*streamLog{}, rows: map[segment.Shard]int{},
		durable: map[shardTerm]segment.Seq{}, lost: map[segment.Shard]segment.Term{},
	}
}

// complain notes what must not be. It goes on, so that one run says all it found.
func (l *ledger) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complaints = append(l.complaints, fmt.Sprintf(format, args...))
}

func (l *ledger) add(name string, shard segment.Shard) {
	l.streams[name] = &streamLog{name: name, shard: shard}
}

// ack enters an append's answer.
func (l *ledger) ack(stream string, b batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[stream]
	s.acked = append(s.acked, b)
	l.rows[s.shard] += b.rows
	if b.shared {
		k := shardTerm{s.shard, b.term}
		l.durable[k] = max(l.durable[k], b.seq+segment.Seq(b.rows)-1)
		l.shared += b.rows
	} else {
		l.local += b.rows
	}
}

// counts are the rows acknowledged so far, by shard.
func (l *ledger) counts() map[segment.Shard]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[segment.Shard]int, len(l.rows))
	for s, n := range l.rows {
		out[s] = n
	}
	return out
}

// tip is the last acknowledged batch of a shard's streams, of the highest seq.
func (l *ledger) tip(shard segment.Shard) (stream string, last segment.Seq) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.streams {
		if k := len(s.acked); s.shard == shard && k > 0 {
			if b := s.acked[k-1]; b.seq+segment.Seq(b.rows)-1 > last {
				stream, last = s.name, b.seq+segment.Seq(b.rows)-1
			}
		}
	}
	return stream, last
}

// losing says that the disk of the shards' owner goes; its terms are those of the last rows
// that it acknowledged, and rows that it had not published may be missing from now on.
func (l *ledger) losing(shards []segment.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.streams {
		for _, shard := range shards {
			if s.shard == shard && len(s.acked) > 0 {
				l.lost[shard] = max(l.lost[shard], s.acked[len(s.acked)-1].term)
			}
		}
	}
}

// excused says whether a row may be missing: acknowledged by a term whose disk was deleted,
// and not durable beyond it, as rows are that were acknowledged as shared. Under mu.
func (l *ledger) excused(s *streamLog, b batch, seq segment.Seq) bool {
	return b.term <= l.lost[s.shard] && seq > l.durable[shardTerm{s.shard, b.term}]
}

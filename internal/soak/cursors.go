package soak

import (
	"math"

	"github.com/strandline/strandline/segment"
)

// pullDemands are what a pull of a shard must show, stream by stream.
func (l *ledger) pullDemands(s segment.Shard) map[string]demand {
	out := map[string]demand{}
	for _, name := range l.names() {
		if segment.ShardOf(name, shards) == s {
			out[name] = l.demands(name, 0)
		}
	}
	return out
}

// era counts the owners that a shard lost; -1 while two may believe they own it.
func (l *ledger) era(s segment.Shard) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ghosts[s] > 0 {
		return -1
	}
	return len(l.losses[s])
}

// wentBack says whether a pull that began at first forgot an acknowledgement, with nothing to
// excuse it.
func (l *ledger) wentBack(c *consumerLog, first segment.Seq) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return first <= c.acked && l.ghosts[c.shard] == 0 && c.era == len(l.losses[c.shard])
}

// acking enters an acknowledgement before it is sent: it may let rows go.
func (l *ledger) acking(c *consumerLog, seq segment.Seq) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.asked = max(c.asked, seq)
	l.letGo(c.shard)
}

// letGo raises what interest may let go. What is gone stays gone, whoever comes later. Under mu.
func (l *ledger) letGo(s segment.Shard) {
	slowest := segment.Seq(math.MaxUint64)
	for _, k := range l.consumers {
		if k.shard == s && k.held {
			slowest = min(slowest, k.asked)
		}
	}
	if slowest != math.MaxUint64 {
		l.slowest[s] = max(l.slowest[s], slowest)
	}
}

// ackedTo enters an answer. One from a time of two owners binds nobody.
func (l *ledger) ackedTo(c *consumerLog, seq segment.Seq, era int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ghosts[c.shard] > 0 || era != len(l.losses[c.shard]) {
		return
	}
	if era != c.era {
		c.acked = 0
	}
	c.acked, c.era = max(c.acked, seq), era
}

func (l *ledger) askedBy(c *consumerLog) segment.Seq {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.asked
}

// leaving enters that a consumer is about to be removed: it holds back nothing any more.
func (l *ledger) leaving(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.consumers[key]; c != nil {
		delete(l.consumers, key)
		l.letGo(c.shard) // as soon as its owner hears of it
	}
}

// holds says that a consumer stands in the catalog: from now on retention waits for it.
func (l *ledger) holds(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.consumers[key]; c != nil {
		c.held = true
	}
}

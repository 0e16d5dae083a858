package soak

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/strandline/strandline/segment"
)

// entry is an acknowledged row.
type entry struct {
	n      uint64 // its number in the stream
	seq    segment.Seq
	term   segment.Term
	shared bool
	// straddled: an earlier attempt went unanswered on a shard that was taken in this
	// run: that attempt may have put the row elsewhere, too.
	straddled bool
	url       string // of the process that answered
}

// streamLog is what is known of one stream.
type streamLog struct {
	name  string
	shard segment.Shard
	acked []entry // by number
	sent  uint64  // rows with lower numbers may be there
	// asked: rows below may be gone, by a trim or delete that was begun. given: they are,
	// by one that is over, since givenAt.
	asked, given segment.Seq
	givenAt      time.Time
}

type shardTerm struct {
	shard segment.Shard
	term  segment.Term
}

// ledger is what was acknowledged. It lives in the memory of the process that breaks the
// others, and is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	streams map[string]*streamLog
	// durable: rows of this term up to here are absorbed, since a later one of the
	// same owner was acknowledged as shared.
	durable   map[shardTerm]segment.Seq
	losses    map[segment.Shard][]loss
	ghosts    map[segment.Shard]int
	deleted   map[string]bool // disks
	consumers map[string]*consumerLog
	slowest   map[segment.Shard]segment.Seq // up to here interest lets rows go
	salvaged  map[segment.Shard]segment.Seq // from here on rows may be there again
	rows      int64

	complain func(format string, args ...any)
}

func newLedger(names []string, complain func(string, ...any)) *ledger {
	l := &ledger{
		streams: map[string]*streamLog{}, durable: map[shardTerm]segment.Seq{}, losses: map[segment.Shard][]loss{},
		ghosts: map[segment.Shard]int{}, deleted: map[string]bool{}, consumers: map[string]*consumerLog{},
		slowest: map[segment.Shard]segment.Seq{}, salvaged: map[segment.Shard]segment.Seq{}, complain: complain,
	}
	for _, name := range names {
		l.streams[name] = &streamLog{name: name, shard: segment.ShardOf(name, shards)}
	}
	return l
}

func (l *ledger) names() (out []string) {
	for name := range l.streams {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// sending says that rows up to a number are on their way from now on.
func (l *ledger) sending(stream string, end uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[stream]
	s.sent = max(s.sent, end)
}

// receipt is the answer to one batch.
type receipt struct {
	stream    string
	n         uint64 // of its first row
	rows      int
	first     segment.Seq
	term      segment.Term
	shared    bool
	ambiguous bool // an earlier attempt went unanswered
	url       string
	begun     time.Time // of the attempt that was answered
}

// ack enters a batch.
func (l *ledger) ack(r receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[r.stream]
	if k := len(s.acked); k > 0 {
		last := s.acked[k-1]
		if last.seq >= r.first && (last.shared || last.term >= r.term) && !last.straddled {
			l.complain("disorder: %s row %d got seq %d of term %d, behind it row %d got seq %d of term %d", r.stream, last.n, last.seq, last.term, r.n, r.first, r.term)
		}
	}
	if r.first < s.given && r.begun.After(s.givenAt) && !r.ambiguous {
		l.complain("disorder: %s row %d was appended at seq %d, below live_from %d", r.stream, r.n, r.first, s.given)
	}
	straddled := r.ambiguous && len(l.losses[s.shard]) > 0
	for i := range r.rows {
		s.acked = append(s.acked, entry{
			n: r.n + uint64(i), seq: r.first + segment.Seq(i), term: r.term,
			shared: r.shared, straddled: straddled, url: r.url,
		})
	}
	l.rows += int64(r.rows)
	if k := (shardTerm{s.shard, r.term}); r.shared {
		l.durable[k] = max(l.durable[k], r.first+segment.Seq(r.rows)-1)
	}
}

// entryOf finds a row by number; nil: not acknowledged. Under mu.
func (s *streamLog) entryOf(n uint64) *entry {
	i := sort.Search(len(s.acked), func(i int) bool { return s.acked[i].n >= n })
	if i < len(s.acked) && s.acked[i].n == n {
		return &s.acked[i]
	}
	return nil
}

// saw holds one row that somebody read against the ledger.
func (l *ledger) saw(who, stream string, seq segment.Seq, p string) (n uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[stream]
	if s == nil {
		l.complain("leak: %s read a stream %q that nobody appends to", who, stream)
		return 0, false
	}
	n, ok = rowsSent().Number(stream, p)
	switch {
	case !ok:
		l.complain("damage: %s read bytes at seq %d of %s that nobody sent: %.80q", who, seq, stream, p)
		return 0, false
	case n >= s.sent:
		l.complain("damage: %s read row %d of %s before it was sent", who, n, stream)
		return 0, false
	}
	from, again := l.salvaged[s.shard]
	if e := s.entryOf(n); e != nil && e.seq != seq && !e.straddled && (!again || seq < from) {
		l.complain("disorder: %s read row %d of %s at seq %d, it was acknowledged at seq %d of term %d", who, n, stream, seq, e.seq, e.term)
		return n, false
	}
	return n, true
}

// asks says that rows of a stream below a position may go from now on.
func (l *ledger) asks(stream string, below segment.Seq) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[stream]
	s.asked = max(s.asked, below)
}

// gave says where a stream begins now that a trim or delete is over.
func (l *ledger) gave(stream string, liveFrom segment.Seq) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[stream]
	if liveFrom < s.given {
		l.complain("I6: live_from of %s went back from %d to %d", stream, s.given, liveFrom)
	}
	if s.asked != math.MaxUint64 && liveFrom > s.asked {
		l.complain("loss: live_from of %s is %d, nobody asked for more than %d", stream, liveFrom, s.asked)
	}
	s.given, s.asked, s.givenAt = liveFrom, liveFrom, time.Now()
}

// anEntry is a row to point at: the one at a share of what is acknowledged and not given up.
func (l *ledger) anEntry(stream string, share float64) (e entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[stream]
	floor := max(s.given, l.slowest[s.shard]+1)
	live := s.acked
	for len(live) > 0 && live[0].seq < floor {
		live = live[min(len(live), 16):]
	}
	if len(live) == 0 {
		return e, false
	}
	return live[int(share*float64(len(live)-1))], true
}

func (e entry) String() string {
	return fmt.Sprintf("row %d at seq %d of term %d (shared %v, from %s)", e.n, e.seq, e.term, e.shared, e.url)
}

package sim

import (
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// rollback is a catalog that lost its last commits: a standby that lagged was promoted, or a
// backup was restored (03 §0). Where a chain's head in the bucket is ahead of its row the
// tier knows: from then on nothing is deleted, somebody is told, and at the end of the run the
// operator brings the newest copy back. Where no head is, nobody knows; then less than a read
// grace was lost, or nothing went that the older state needs, and the tier goes on from there.
// Sim.applying guards it.
type rollback struct {
	old    *memory.Snapshot
	newest *memory.Snapshot // nil: it did not happen
	at     time.Time
	// unseen: the catalog's session goes on, so that a look at the heads of before is believed.
	unseen bool
	known  []segment.Chain // whose heads are ahead
	// atOnce: heads were ahead from the beginning, and not by a write that came late.
	atOnce bool
	// refused: a writer would not open its directory, since the catalog is older than it.
	refused bool
	// gone are the objects that refs name again and that were deleted before: rows that
	// nobody can read until the newest copy is back.
	gone map[string]bool
	// lost are the rows whose absorb was lost, as they were.
	lost map[segment.Chain]map[segment.Seq]past
	// deletes happened since, and were not under way by then.
	deletes int
	// headAt is when a head was last written.
	headAt time.Time
	// overtaken: a head went on right after it, by a look of before that nothing ended. Neither copy
	// of the catalog fits all heads then: rows can be read, and what is left is a rebuild from the bucket.
	overtaken bool
	// made counts the epochs that it forgot, and that were made anew.
	made int
	// loose are objects that nothing watches by the copy that came back: the sweep's.
	loose map[string]bool
}

// condemned says that a key was, by the newest copy: who condemned it there may go on.
func (b *rollback) condemned(key string) bool {
	if !b.happened() {
		return false
	}
	in := b.newest.View().Intent(key)
	return in != nil && in.State != catalog.IntentStanding
}

// noticed says that reads may find rows lost: the catalog names what went since, or lists it.
func (b *rollback) noticed() bool { return len(b.gone) > 0 || len(b.known) > 0 }

// announced says that a key was, by the newest copy: who announced it there may write it, and the
// older one knows nothing of it.
func (b *rollback) announced(key string) bool {
	return b.happened() && b.newest.View().Intent(key) != nil
}

// since says that the catalog was rolled back during the process's read: what it was given is
// of two histories.
func (b *rollback) since(p *process) bool { return b.happened() && p.reading.Before(b.at) }

func newRollback() rollback {
	return rollback{gone: map[string]bool{}, loose: map[string]bool{}, lost: map[segment.Chain]map[segment.Seq]past{}}
}

// happened says that there was a rollback.
func (b *rollback) happened() bool { return b.newest != nil }

// drawRollback has the catalog go back by less than a read grace, or by far more.
func (s *Sim) drawRollback() {
	lost := s.between(time.Second, s.cfg.ReadGrace)
	if s.rng.IntN(2) == 0 {
		lost = s.between(s.cfg.ReadGrace, s.cfg.Span/3)
	}
	s.back.unseen = s.rng.IntN(4) == 0
	at := s.between(s.cfg.Span/3, s.cfg.Span*55/100)
	s.in(at-lost, func() { s.back.old = s.cat.Snapshot() })
	s.in(at, func() { s.rollBack(lost) })
}

func (s *Sim) rollBack(lost time.Duration) {
	s.note("", "catalog rolled back", lost.String())
	s.applying.Lock()
	defer s.applying.Unlock()
	b := &s.back
	b.newest, b.at = s.cat.Snapshot(), time.Now()
	if b.unseen {
		s.cat.RestoreUnseen(b.old)
		s.cover.hitLocked(s, "rolled back in one session")
	} else {
		s.cat.Restore(b.old)
	}
	// What was sent to the copy that is gone comes to nothing.
	s.mu.Lock()
	keep := s.late[:0]
	for _, c := range s.late {
		if c.store() {
			keep = append(keep, c)
		}
	}
	s.late = keep
	for _, c := range append(s.parked, s.late...) {
		c.before = true
	}
	s.mu.Unlock()
	s.check.rebase()
	b.known = s.ahead()
	b.atOnce = len(b.known) > 0
	if b.atOnce {
		s.cover.hitLocked(s, "rolled back, and known")
	} else {
		s.cover.hitLocked(s, "rolled back, and not known")
	}
}

// ahead are the chains whose heads are ahead of their rows.
func (s *Sim) ahead() (chains []segment.Chain) {
	s.cat.View(func(v memory.View) { chains = s.headsAhead(v) })
	return chains
}

func (s *Sim) headsAhead(v memory.View) (chains []segment.Chain) {
	for row := range v.Chains() {
		body, _, ok := s.mem.body(segment.HeadKey(row.Chain))
		if !ok {
			continue
		}
		if head, err := segment.DecodeHead(body); err == nil && catalog.CheckHead(*head, *row) != nil {
			chains = append(chains, row.Chain)
		}
	}
	return chains
}

// lookTime is how long a delete may go on that was let through before the rollback: a request
// is good for a minute, and where the session did not end, what an auditor saw of the heads is for
// an eighth of the grace.
func (s *Sim) lookTime() time.Duration {
	if s.back.unseen {
		return s.cfg.ReadGrace/8 + time.Minute
	}
	return time.Minute
}

// mayOvertake says that a head may have gone on with the older rows, ahead of the newest copy:
// by a look of before that is still believed. Where the session ended none is; a head that was on its way
// has what the newest copy has.
func (s *Sim) mayOvertake() bool {
	b := &s.back
	return (b.unseen || !b.atOnce) && b.headAt.Sub(b.at) <= s.lookTime()
}

// deleteSince holds a delete to 03 §0: none where a chain's row is behind its head. It says
// whether the other rules apply to it.
func (b *rollback) deleteSince(p *process, f fate, key string) (rules bool) {
	if !b.happened() {
		return true
	}
	if f.before {
		if p.sim.check.named[key] {
			b.gone[key] = true
		}
		return false
	}
	b.deletes++
	if len(b.known) > 0 && (p.immune || f.made.Sub(b.at) > p.sim.lookTime() && p.stalled().Before(b.at)) {
		p.sim.check.violated("03 §0", "%s deletes %s %v after the catalog was rolled back behind the head of chain %s", p.name, key, time.Since(b.at), b.known[0])
	}
	return len(b.known) == 0
}

func (p *process) stalled() time.Time {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	return p.stalledUntil
}

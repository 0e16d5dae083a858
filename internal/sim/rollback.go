package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/powercut"
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
	known  []segment.Chain // whose heads are ahead
	// refused: a writer would not open its directory, since the catalog is older than it.
	refused bool
	// gone are the objects that refs name again and that were deleted before: rows that
	// nobody can read until the newest copy is back.
	gone map[string]bool
	// lost are the rows whose absorb was lost, as they were.
	lost map[segment.Chain]map[segment.Seq]past
	// deletes happened since, and were not under way by then.
	deletes int
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
	s.cat.Restore(b.old)
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
	if len(b.known) > 0 {
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

// rebase takes the catalog as it stands now for what is known of it.
func (k *checker) rebase() {
	k.sim.cat.View(func(v memory.View) {
		rows, live := map[segment.Chain]catalog.ChainRow{}, map[string]segment.Pos{}
		for row := range v.Chains() {
			kept := *row
			kept.Consumers = append([]segment.Consumer(nil), row.Consumers...)
			rows[row.Chain] = kept
		}
		for st := range v.Streams() {
			live[st.Name] = st.LiveFrom
		}
		chains := slices.SortedFunc(maps.Keys(k.model.chains), func(a, b segment.Chain) int { return strings.Compare(a.String(), b.String()) })
		for _, c := range slices.Backward(chains) { // a stream's newest rows are its newest chain's
			k.forget(c, max(1, rows[c].NextSeq))
		}
		for _, c := range chains {
			k.remember(c, max(1, rows[c].NextSeq))
		}
		k.rows, k.live, k.named = rows, live, map[string]bool{}
		for r := range v.Refs() {
			k.named[r.Key] = true
			delete(k.died, r.Key)
			if r.Key != "" && !k.sim.stands(r.Key) && k.lost[r.Key] == nil {
				k.sim.back.gone[r.Key] = true
			}
		}
		for _, key := range k.sim.mem.Keys() {
			if !k.isWatched(v, key) {
				k.sim.back.loose[key] = true
			}
		}
	})
}

// forget takes a chain's rows from a seq on out of the history.
func (k *checker) forget(c segment.Chain, next segment.Seq) {
	h := k.model.chain(c)
	lost := k.sim.back.lost[c]
	if lost == nil {
		lost = map[segment.Seq]past{}
		k.sim.back.lost[c] = lost
	}
	for len(h.rows) >= int(next) {
		seq := segment.Seq(len(h.rows))
		row := h.rows[seq-1]
		lost[seq] = row
		h.rows = h.rows[:seq-1]
		t := k.model.stream(row.stream)
		n := len(t.at) - 1
		t.at, t.chain, t.total = t.at[:n], t.chain[:n], t.total[:n+1]
	}
	k.relate(c, func(rec *record) {
		if rec.inHistory && rec.at >= next {
			rec.inHistory, rec.was = false, true
		}
	})
}

// remember puts rows back that were forgotten: the newest copy knows them.
func (k *checker) remember(c segment.Chain, next segment.Seq) {
	h, lost := k.model.chain(c), k.sim.back.lost[c]
	for seq := segment.Seq(len(h.rows) + 1); seq < next; seq++ {
		row := lost[seq]
		h.rows = append(h.rows, row)
		k.model.stream(row.stream).add(segment.Pos{Epoch: c.Epoch, Seq: seq}, c, row.sum)
	}
	k.relate(c, func(rec *record) { rec.inHistory = rec.inHistory || rec.was && rec.at < next })
}

func (k *checker) relate(c segment.Chain, do func(*record)) {
	for _, rec := range k.model.records {
		if rec.in == c {
			do(rec)
		}
	}
}

// again: a row whose absorb was lost is absorbed again as it was; nothing else takes its place.
func (k *checker) again(c segment.Chain, r slotRow) {
	if k.voided[c] {
		return // its slot waits for a person's word
	}
	if was, ok := k.sim.back.lost[c][r.seq]; ok && was != (past{r.stream, r.sum}) {
		k.violated("I8", "chain %s seq %d: a row of %q stood there before the catalog was rolled back, and now another one of %q does", c, r.seq, was.stream, r.stream)
	}
}

// lookTime is how long a delete may go on that was let through before the rollback: what an
// auditor saw of the heads is good for an eighth of the grace, and a request for a minute.
func (s *Sim) lookTime() time.Duration { return s.cfg.ReadGrace/8 + time.Minute }

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

// mendCatalog is the operator's part of the end: where the tier knows that the catalog is
// older than the bucket, somebody was told, and the newest copy comes back.
func (s *Sim) mendCatalog() error {
	b := &s.back
	if !b.happened() {
		return nil
	}
	if b.known = s.ahead(); len(b.known) > 0 {
		if err := s.toldOf(); err != nil {
			return err
		}
	}
	behind := s.headsAhead(b.newest.View())
	if len(b.known) > 0 && len(behind) > 0 {
		s.check.violated("03 §0", "while the catalog was rolled back behind the head of chain %s, the head of chain %s went on, so that the newest copy is behind it", b.known[0], behind[0])
	}
	switch {
	case len(b.known) > 0, b.refused && b.deletes == 0 && len(behind) == 0:
		s.note("", "the newest catalog comes back", "")
		s.cover.hitLocked(s, "the newest catalog came back")
		s.applying.Lock()
		defer s.applying.Unlock()
		s.cat.Restore(b.newest)
		b.known, b.gone = nil, map[string]bool{}
		s.check.rebase()
	case b.refused: // the older one goes on, without the directory that is newer than it
		for _, name := range sortedKeys(s.machines) {
			s.giveUp(s.machines[name])
		}
	}
	return nil
}

// giveUp has a machine begin with an empty directory: the one that it has is newer than the
// catalog, and is refused.
func (s *Sim) giveUp(m *machine) {
	s.cover.hitLocked(s, "a directory given up after a rollback")
	m.disk = powercut.New()
	m.disk.Quiet()
	m.life++
}

// toldOf has an auditor look at all that there is to delete: it deletes nothing, and says why.
func (s *Sim) toldOf() error {
	p, err := s.endProcess(nil)
	if err != nil {
		return err
	}
	defer p.end()
	a, err := p.newAuditor(true)
	if err != nil {
		return err
	}
	_, _ = a.Once(p.ctx, auditor.OnceOptions{}) // what it says is in the audit table
	told := false
	s.cat.View(func(v memory.View) {
		for row := range v.AuditRows() {
			told = told || row.Kind == "rolled-back"
		}
	})
	if !told {
		s.check.violated("03 §0", "the row of chain %s is behind its head, and nobody was told", s.back.known[0])
	}
	return nil
}

// refusedSince says that a writer may refuse to start, since the catalog was rolled back; for
// good, if it found the catalog older than its directory.
func (s *Sim) refusedSince(forGood bool) bool {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.back.refused = s.back.refused || forGood && s.back.happened()
	return s.back.happened()
}

// acceptVoids gives up what stands in slots that were voided: two owners had one term, since the
// grant of the first was lost, and the history went on with the other's rows.
func (p *process) acceptVoids() error {
	var keys []string
	p.sim.cat.View(func(v memory.View) {
		for row := range v.Chains() {
			for slot := range v.Slots(row.Chain, 0) {
				if slot.Void && v.Marker(catalog.DutySettle, catalog.SettleID(row.Chain, slot.ID)) != nil {
					keys = append(keys, segment.SlotKey(row.Chain, slot.ID))
				}
			}
		}
	})
	for _, key := range keys {
		if _, err := check.ProveVoid(p.ctx, p.catalog, p.classes, key); err != nil {
			return err
		}
		if _, err := p.catalog.AcceptLoss(p.ctx, key, ""); err != nil {
			return err
		}
		p.hit("void slot accepted")
	}
	return nil
}

package sim

import (
	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/segment"
)

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
		if s.mayOvertake() {
			s.cover.hitLocked(s, "a head overtook the newest catalog")
			b.overtaken = true
			return nil
		}
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

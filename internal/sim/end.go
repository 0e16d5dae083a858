package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// settleAll is the end of a run: the faults are over, every process is opened again on
// what it has, what was set aside is salvaged, the duties run dry; then the tier has to be
// clean (I5), and every acknowledged row is read back once, in order, byte-equal (I1).
func (s *Sim) settleAll() {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"mend the catalog", s.mendCatalog},
		{"look at what is watched", func() error { s.check.watched(); return nil }},
		{"finish the topology", s.finishTopology},
		{"reopen", s.reopen},
		{"salvage", s.salvage},
		{"accept losses", s.acceptLosses},
		{"run dry", s.runDry},
		{"fsck", s.fsck},
		{"read back", s.readBack},
		{"follow to the end", s.catchUp},
	} {
		s.note("", "end", step.name)
		if err := s.calmly(step.do); err != nil {
			s.check.violated("end", "%s: %v", step.name, err)
		}
		if s.check.broken() || s.back.overtaken {
			return
		}
	}
	s.check.watched()
	s.check.strays()
	s.check.kept()
	s.check.cost()
}

// endProcess is one that nothing befalls.
func (s *Sim) endProcess(m *machine) (*process, error) {
	p, err := s.newProcess("end")
	if err != nil {
		return nil, err
	}
	p.immune, p.machine = true, m
	return p, nil
}

// finishTopology goes on with a change that was under way.
func (s *Sim) finishTopology() error {
	p, err := s.endProcess(nil)
	if err != nil {
		return err
	}
	defer p.end()
	all, err := p.catalog.Topologies(p.ctx)
	if err != nil {
		return err
	}
	last := all[len(all)-1]
	if last.State == catalog.TopologyOpen {
		return nil
	}
	return p.reshard(p.ctx, last.Shards, last.Settle)
}

// reopen starts every writer on its machine, one after the other, and ends it in order.
func (s *Sim) reopen() error {
	for _, name := range sortedKeys(s.machines) {
		m := s.machines[name]
		m.disk = m.disk.Cut(s.rng.Uint64() | 1)
	}
	for made := -1; made != s.back.made; { // an epoch that is made anew may find a directory that was opened before it
		made = s.back.made
		for _, name := range sortedKeys(s.machines) {
			if err := s.reopenOne(s.machines[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// reopenOne does what a writer's refusal says, after a rollback; each may come once.
func (s *Sim) reopenOne(m *machine) (err error) {
	for range 4 {
		err = s.withWriter(m, func(*process, *localtier.Writer) error { return nil })
		if err == nil || !s.back.happened() {
			return err
		}
		switch {
		case errors.Is(err, localtier.ErrFenced):
			// What it has not published was taken by a term that the catalog forgot: the next
			// start sets it aside.
		case errors.Is(err, localtier.ErrRolledBack), errors.Is(err, localtier.ErrLeftover):
			s.giveUp(m)
		case errors.Is(err, localtier.ErrChainClosed): // the epoch that came after it was forgotten
			if err := s.nextEpoch(); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return err
}

// nextEpoch is made anew by the operator.
func (s *Sim) nextEpoch() error {
	p, err := s.endProcess(nil)
	if err != nil {
		return err
	}
	defer p.end()
	s.cover.hitLocked(s, "a forgotten epoch made anew")
	s.back.made++
	for n := range uint32(4) { // as its record says, if it has one
		if err = p.reshard(p.ctx, 1+n%2, n < 2); !errors.Is(err, check.ErrNotMine) {
			return err
		}
	}
	return err
}

// withWriter opens a writer on a machine, and flushes and closes it.
func (s *Sim) withWriter(m *machine, do func(*process, *localtier.Writer) error) error {
	p, err := s.endProcess(m)
	if err != nil {
		return err
	}
	defer p.end()
	t, ok := p.openTopology(p.ctx)
	if !ok {
		return errors.New("no epoch is open")
	}
	o := p.writerOptions(t)
	o.Steal = true
	w, err := localtier.Open(p.ctx, o)
	if err != nil {
		return err
	}
	time.Sleep(time.Nanosecond) // what a start leaves to the background is done
	err = do(p, w)
	return errors.Join(err, w.Flush(p.ctx), w.Close(p.ctx))
}

// salvage appends again what lies in the quarantines.
func (s *Sim) salvage() error {
	for _, name := range sortedKeys(s.machines) {
		m := s.machines[name]
		all, err := localtier.ListQuarantineOn(context.Background(), m.disk, "/"+m.name)
		if err != nil {
			return err
		}
		for _, q := range all {
			s.cover.hitLocked(s, fmt.Sprintf("quarantine judged %t", q.Judged))
			if q.Damage != "" {
				return fmt.Errorf("%s: quarantine %s: %s", name, q.Dir, q.Damage)
			}
			err := s.withWriter(m, func(p *process, w *localtier.Writer) error {
				n, err := localtier.SalvageOn(p.ctx, m.disk, q, o(w), func(ctx context.Context, pr localtier.Producer, stream string, rows []segment.Row) error {
					_, err := w.AppendAs(ctx, pr, stream, rows, localtier.AckShared)
					return err
				})
				if n > 0 {
					s.cover.hitLocked(s, "salvaged")
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: salvage %s: %w", name, q.Dir, err)
			}
		}
	}
	return nil
}

// o is the number of shards that a writer's epoch has: it serves all of them here.
func o(w *localtier.Writer) uint32 { return uint32(len(w.Status())) }

// dryRounds bound how often the duties run until nothing is owed: every grace, back-off
// and the day of a burned key come by.
const dryRounds = 60

// runDry runs an auditor with time passing until the tier owes nothing but its daily looks.
func (s *Sim) runDry() error {
	p, err := s.endProcess(nil)
	if err != nil {
		return err
	}
	defer p.end()
	a, err := p.newAuditor(true)
	if err != nil {
		return err
	}
	defer func() { s.summed(a.Summary()) }()
	time.Sleep(s.cfg.Lease + s.cfg.OrphanGrace) // of the writers; of the sweep for uploads
	quiet := 0
	for n := range dryRounds {
		_, err = a.Once(p.ctx, auditor.OnceOptions{})
		due, owed, nerr := s.cat.NextDue(p.ctx, owedDuties())
		if nerr != nil {
			return nerr
		}
		if !owed {
			if quiet++; quiet > 2 || err != nil && quiet > 1 {
				return err
			}
			time.Sleep(s.cfg.OrphanGrace + 13*time.Hour) // two of them reach the last looks at burned keys
			continue
		}
		quiet = 0
		// A marker that is due may be leased still: for long, if the database's clock was set back.
		time.Sleep(max(due.Sub(s.databaseNow()), time.Second<<min(n, 12)))
	}
	s.cat.View(func(v memory.View) {
		for m := range v.Markers() {
			err = errors.Join(err, fmt.Errorf("marker %s %s is due %s (%d attempts: %s)", m.Duty, m.ID, m.Due, m.Attempts, m.LastError))
		}
	})
	s.check.violated("I5", "the duties never ran dry: %v", err)
	return nil
}

// owedDuties are those whose markers wait on something: burned keys that can still be
// derived are looked at daily for ever.
func owedDuties() []catalog.Duty {
	return []catalog.Duty{
		catalog.DutySettle, catalog.DutyPackMerge, catalog.DutyGC, catalog.DutyTailFill, catalog.DutyReapCheck, catalog.DutyTrimCheck,
		catalog.DutyReclaim, catalog.DutyTeardown,
	}
}

// fsck is I5: nothing but what refs name and the records.
func (s *Sim) fsck() error {
	p, err := s.endProcess(nil)
	if err != nil {
		return err
	}
	defer p.end()
	// It changes nothing, whichever of two chains it looks at first.
	s.setDirect(true)
	defer s.setDirect(false)
	rep, err := check.Fsck(p.ctx, p.catalog, p.classes, check.Config{Deep: true, Settled: true})
	if err != nil {
		return err
	}
	for _, d := range rep.Damage {
		s.check.violated("I2", "fsck: damage: %+v", d)
	}
	for _, r := range rep.Rotten {
		if s.wasTaken(r.Bucket, r.Key) {
			s.cover.hitLocked(s, "a lost copy told by fsck")
			continue
		}
		s.check.violated("I1", "fsck: rotten: %+v", r)
	}
	for _, g := range rep.Garbage {
		if parsed, err := segment.ParseKey(g.Key); err == nil && parsed.Kind == segment.KeyTopology && s.back.happened() {
			s.cover.hitLocked(s, "a forgotten epoch told by fsck")
			continue
		}
		s.check.violated("I5", "fsck: garbage: %+v", g)
	}
	s.cat.View(func(v memory.View) {
		for in := range v.Intents() {
			if in.State != catalog.IntentBurned {
				s.check.violated("I5", "a %s intent of %s", in.State, in.Key)
			}
		}
	})
	return nil
}

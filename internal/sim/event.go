package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/strandline/strandline/internal/powercut"
)

// event is something that befalls the world at a time.
type event struct {
	at time.Time
	do func()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// at puts an event in its place.
func (s *Sim) at(t time.Time, do func()) {
	i := len(s.events)
	for i > 0 && t.Before(s.events[i-1].at) {
		i--
	}
	s.events = slices.Insert(s.events, i, event{t, do})
}

func (s *Sim) in(d time.Duration, do func()) { s.at(time.Now().Add(d), do) }

// between draws a time.
func (s *Sim) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.rng.Int64N(int64(high-low)))
}

// event lets what is due happen; it says whether something was.
func (s *Sim) event() bool {
	s.powerCuts()
	if len(s.events) == 0 || time.Now().Before(s.events[0].at) {
		return false
	}
	e := s.events[0]
	s.events = s.events[1:]
	e.do()
	return true
}

// powerCuts ends the processes whose disks went off.
func (s *Sim) powerCuts() {
	for _, name := range sortedKeys(s.processes) {
		p := s.processes[name]
		if p.machine != nil && p.alive() && p.machine.powerGone() {
			s.kill(p, "the power went")
		}
		switch {
		case p.over():
			delete(s.processes, name)
		case !p.alive():
			s.restart(p)
		}
	}
}

// restart draws when a dead process comes back, and what its machine has by then.
func (s *Sim) restart(p *process) {
	delete(s.processes, p.name)
	s.in(s.between(500*time.Millisecond, 40*time.Second), func() {
		if m := p.machine; m != nil {
			s.boot(m)
		}
		s.note(p.name, "start", "")
		s.begin(p.name)
	})
}

// boot is what a machine finds after a cut: what was synced, or more, or an empty disk.
func (s *Sim) boot(m *machine) {
	m.dark.Store(false)
	switch n := s.rng.IntN(12); {
	case n == 0:
		m.disk = powercut.New()
		m.disk.Quiet()
		m.life++
		s.note(m.name, "disk lost", "")
		s.cover.hitLocked(s, "event disk lost")
	case n < 5:
		m.disk = m.disk.Cut(0)
	default:
		m.disk = m.disk.Cut(s.rng.Uint64() | 1)
	}
}

func (s *Sim) note(who, what, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace.note(who, what, detail)
}

// eventKind is one that may be drawn, as often as its weight says.
type eventKind struct {
	weight int
	name   string
	do     func()
}

func (s *Sim) eventKinds() []eventKind {
	return []eventKind{
		{12, "crash", s.eventCrash},
		{12, "stall", s.eventStall},
		{5, "restart in order", s.eventTerm},
		{8, "power cut", s.eventPowerCut},
		{4, "fsync fails", s.eventSyncFails},
		{4, "disk full", s.eventDiskFull},
		{5, "catalog away", s.eventCatalogAway},
		{5, "store away", s.eventStoreAway},
		{1, "object lost", s.eventObjectLost},
		{3, "copy lost", s.eventCopyLost},
		{2, "loss claimed", s.eventWrongLoss},
		{5, "database clock steps", s.eventDatabaseClock},
		{4, "process clock steps", s.eventProcessClock},
		{14, "trim", s.operatorTrim},
		{5, "rm", s.operatorRemove},
		{7, "retention", s.operatorRetention},
		{4, "reshard", s.operatorReshard},
	}
}

// drawEvents spreads the events over the run.
func (s *Sim) drawEvents() {
	kinds, total := s.eventKinds(), 0
	for _, k := range kinds {
		total += k.weight
	}
	for range s.cfg.Stalls {
		s.in(s.between(2*time.Second, s.cfg.Span), s.eventStall)
	}
	for range s.cfg.Trims {
		s.in(s.between(2*time.Second, s.cfg.Span), s.operatorTrim)
	}
	if s.cfg.Rollback {
		s.drawRollback()
	}
	for i := range s.cfg.Losses {
		s.in(s.between(2*time.Second, s.cfg.Span), []func(){s.eventObjectLost, s.eventCopyLost, s.eventWrongLoss}[i%3])
	}
	for range s.cfg.Events {
		n := s.rng.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n >= 0 {
				continue
			}
			s.in(s.between(2*time.Second, s.cfg.Span), func() {
				s.cover.hitLocked(s, "event "+k.name)
				k.do()
			})
			break
		}
	}
}

// victim draws a living process.
func (s *Sim) victim(roles string) *process {
	var among []*process
	for _, name := range sortedKeys(s.processes) {
		p := s.processes[name]
		if p.alive() && !p.immune && (roles == "" || name[:1] == roles) {
			among = append(among, p)
		}
	}
	if len(among) == 0 {
		return nil
	}
	return among[s.rng.IntN(len(among))]
}

func (s *Sim) eventCrash() {
	if p := s.victim(""); p != nil {
		s.kill(p, "an event")
	}
}

// eventStall stops a process for longer than any grace or lease, or for less.
func (s *Sim) eventStall() {
	p := s.victim("")
	if p == nil {
		return
	}
	d := s.between(time.Second, 3*s.cfg.OrphanGrace)
	s.note(p.name, "stalls", d.String())
	s.mu.Lock()
	p.stalledUntil = time.Now().Add(d)
	s.mu.Unlock()
}

// eventTerm is SIGTERM, and a start soon after.
func (s *Sim) eventTerm() {
	p := s.victim("w")
	if p == nil {
		return
	}
	s.note(p.name, "terminates", "")
	s.mu.Lock()
	s.terms[p.name] = true
	s.mu.Unlock()
	s.in(s.between(5*time.Second, 30*time.Second), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.terms, p.name)
	})
}

func (s *Sim) eventCatalogAway() {
	d := s.between(time.Second, s.cfg.Rates.AwayCatalogMax)
	s.note("", "catalog away", d.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalogAway = time.Now().Add(d)
}

// eventDatabaseClock steps by less than the auditors tolerate, or by far more.
func (s *Sim) eventDatabaseClock() {
	d := s.between(-s.cfg.ReadGrace/2, s.cfg.ReadGrace/2)
	if s.rng.IntN(2) == 0 {
		d = s.between(-time.Hour, time.Hour)
	}
	s.note("", "database clock steps", d.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepped += d
}

func (s *Sim) eventProcessClock() {
	if p := s.victim(""); p != nil {
		d := s.between(-time.Hour, time.Hour)
		s.note(p.name, "clock steps", d.String())
		s.mu.Lock()
		defer s.mu.Unlock()
		p.stepped += d
	}
}

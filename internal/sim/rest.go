package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ready are the parked calls of processes that are not stalled, in their order.
func (s *Sim) ready() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var out []*call
	for _, c := range s.parked {
		if !now.Before(c.p.stalledUntil) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, (*call).compare)
	return out
}

// twins are the calls that nothing tells from c, c itself among them: what two shards of a
// process ask that names neither ("what time is it?"). They have one fate in one step, or
// which of them came first would matter.
func twins(c *call, among []*call) []*call {
	if c.mutates {
		return []*call{c}
	}
	var out []*call
	for _, o := range among {
		if o.p == c.p && o.what == c.what && o.key == c.key && o.site == c.site {
			out = append(out, o)
		}
	}
	return out
}

// expired is the first call whose caller waits no more.
func (s *Sim) expired(calls []*call) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		if c.expired {
			return c
		}
	}
	return nil
}

// look sees what is parked, now that all is at rest, and lets those calls go that were
// never made.
func (s *Sim) look() (unmade bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked = slices.DeleteFunc(s.parked, func(c *call) bool {
		if c.seen || !c.expired {
			return false
		}
		c.fate <- fate{kind: faultUnmade}
		unmade = true
		return true
	})
	if unmade {
		return true
	}
	for _, c := range s.parked {
		if !c.seen {
			c.seen = true
			c.number()
		}
	}
	return false
}

// stopAt has the process die at a crash point, once all is at rest: what others of its
// goroutines do in this moment is done then, or never. Whoever came by waits for that,
// unless it holds a mutex.
func (s *Sim) stopAt(p *process, point string) {
	_, inline := caller()
	gone := make(chan struct{})
	s.mu.Lock()
	if p.doomed == "" || point < p.doomed {
		p.doomed = point
	}
	s.doomed = append(s.doomed, p)
	if inline || p.dead {
		close(gone)
	} else {
		p.held = append(p.held, gone)
	}
	s.mu.Unlock()
	s.poke()
	<-gone
}

// crashes kills those that came by the crash point they are to die at.
func (s *Sim) crashes() bool {
	s.mu.Lock()
	doomed := s.doomed
	s.doomed = nil
	s.mu.Unlock()
	slices.SortFunc(doomed, func(p, q *process) int { return strings.Compare(p.name, q.name) })
	for _, p := range doomed {
		s.mu.Lock()
		if !p.dead {
			s.cover.hit("crash at " + p.doomed)
		}
		s.mu.Unlock()
		s.kill(p, "at "+p.doomed)
	}
	return len(doomed) > 0
}

// number counts a call among those of its identity. Sim.mu is held.
func (c *call) number() (id string) {
	id = fmt.Sprintf("%s %s %x", c.what, c.key, c.site)
	c.nth = c.p.counts[id]
	c.p.counts[id]++
	return id
}

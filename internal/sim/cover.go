package sim

import (
	"maps"
	"slices"
)

// Coverage counts what a run came by: faults injected, outcomes of duties, crash points.
// Sim.mu guards a run's own.
type Coverage map[string]int

func (c Coverage) hit(what string) { c[what]++ }

func (c Coverage) hitLocked(s *Sim, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.hit(what)
}

// Add takes in another run's.
func (c Coverage) Add(d Coverage) {
	for what, n := range d {
		c[what] += n
	}
}

// Missing are those of the wanted that were never hit.
func (c Coverage) Missing(wanted []string) (out []string) {
	for _, w := range wanted {
		if c[w] == 0 {
			out = append(out, w)
		}
	}
	return out
}

// Names are all that were hit, in order.
func (c Coverage) Names() []string { return slices.Sorted(maps.Keys(c)) }

// count takes in a step's fault. s.mu is held.
func (s *Sim) count(f fate, c *call) {
	if f.kind == FaultNone {
		return
	}
	side := "catalog"
	switch {
	case c.store():
		side = "store"
	case c.what == "disk sync":
		side = "disk"
	}
	s.cover.hit("fault " + side + " " + string(f.kind))
}

// Wanted are what a run of many seeds has to come by.
func Wanted() []string { return nil }

package sim

import (
	"maps"
	"slices"

	"github.com/strandline/strandline/localtier"
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

// Wanted are what a run of some hundred seeds has to come by: every fault, every event,
// every crash point, every outcome of a duty that a healthy tier knows.
func Wanted() (out []string) {
	add := func(prefix string, names ...string) {
		for _, n := range names {
			out = append(out, prefix+n)
		}
	}
	add("fault store ", "refused", "throttled", "answer lost", "late", "applied late", "dropped", "timed out", "409", "short body",
		"truncated", "some keys", "away", "crash before", "crash after")
	add("fault catalog ", "refused", "answer lost", "late", "applied late", "dropped", "timed out", "away", "crash before", "crash after")
	add("fault disk ", "crash before", "crash after")
	add("event ", "crash", "stall", "restart in order", "power cut", "fsync fails", "disk full", "disk lost", "catalog away", "store away", "object lost", "copy lost", "loss claimed",
		"database clock steps", "process clock steps", "trim", "rm", "retention", "reshard")
	for _, step := range crashPoints() {
		add("cut point ", step)
		if step != "let go" {
			add("crash at ", step)
		}
	}
	add("duty absorb-check: ", "absorbed")
	add("duty settle: ", "batch", "outputs", "slots resolved", "members failed")
	add("duty gc: ", "outputs", "rewritten")
	add("duty tail-fill: ", "outputs", "rewritten", "idle")
	add("duty pack-merge: ", "outputs", "rewritten", "idle")
	add("duty reap-check: ", "confirmed", "reaped", "stand", "gc-worthy", "refused", "armed since", "gone")
	add("duty trim-check: ", "condemned", "done", "slots condemned", "slots deleted")
	add("duty orphan: ", "judged", "last look", "still derivable", "named", "found absent", "found intact", "uploads aborted")
	add("duty reclaim: ", "done", "refs retired", "refs straddling", "watermarks raised")
	add("duty teardown: ", "done", "refs retired")
	add("duty sweep: ", "done", "uploads aborted")
	add("kept ", "trim-check: clock", "reap-check: clock", "orphan: clock")
	add("", "read fine", "read trimmed", "read deleted", "scan fine", "scan trimmed", "follow fine", "follow trimmed", "follow deleted", "salvaged", "quarantine judged true",
		"shard fenced", "shard halted", "open held", "append local fine", "append shared fine", "append local lease lost",
		"row lost with its disk", "rolled back, and known", "rolled back, and not known", "the newest catalog came back", "loss accepted", "loss refused", "read on behind a loss", "follow lost", "copy lost in mem:", "copy lost in mem:2", "append again fine", "slot absorbed as void")
	return out
}

// crashPoints are localtier's, by name.
func crashPoints() []string {
	return []string{
		string(localtier.StepAcquired), string(localtier.StepTakenBack), string(localtier.StepLetGo), string(localtier.StepSetAside),
		string(localtier.StepJudged), string(localtier.StepFencePlaced), string(localtier.StepFenced), string(localtier.StepBuilt),
		string(localtier.StepSent), string(localtier.StepPlaced), string(localtier.StepAbsorbed), string(localtier.StepCheckpointed),
		string(localtier.StepFetched), string(localtier.StepHydrated), string(localtier.StepPlanned), string(localtier.StepWatermark),
		string(localtier.StepReclaimed),
	}
}

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog/memory"
)

// Plant is a bug that is put into a run on purpose: the run has to notice it by one of
// the rules named. A simulator that does not is blind there, whatever its seeds say.
type Plant struct {
	Name string
	// Rules are those that may notice it, as findings name them.
	Rules []string
	// plant wires it, with a state of its own for each run.
	plant func(cfg *Config)
	// tune makes what the bug needs frequent; nil: the run is as it is. The run without the
	// bug has it as well.
	tune func(cfg *Config)
}

// Tuned is the run of cfg as the plant wants it, without the bug.
func (p Plant) Tuned(cfg Config) Config {
	if p.tune != nil {
		p.tune(&cfg)
	}
	return cfg
}

// IsTuned says whether Tuned changes anything.
func (p Plant) IsTuned() bool { return p.tune != nil }

// In is the run of cfg with the bug in it.
func (p Plant) In(cfg Config) Config {
	cfg = p.Tuned(cfg)
	p.plant(&cfg)
	return cfg
}

// Caught gives the finding that noticed the bug, by a rule that should have.
func (p Plant) Caught(r *Result) (finding string, ok bool) {
	for _, f := range r.Findings {
		if rule, _, _ := strings.Cut(f, ": "); slices.Contains(p.Rules, rule) {
			return f, true
		}
	}
	return "", false
}

// Plants are all of them: bugs of the catalog's guards, of processes that misread the
// catalog, of processes that misread the bucket or a set of two, of auditors under a catalog that was rolled back, and of writers and their disks.
func Plants() []Plant {
	return slices.Concat(guardPlants(), catalogPlants(), storePlants(), lossPlants(), rollbackPlants(), diskPlants())
}

// guardPlants are guards that the catalog does not ask; memory.Guard says what goes wrong.
func guardPlants() []Plant {
	skip := func(name string, rules []string, guards ...memory.Guard) Plant {
		return Plant{Name: name, Rules: rules, plant: func(cfg *Config) { cfg.skip(guards...) }}
	}
	return []Plant{
		skip("delete without grace", []string{"I4"}, memory.ReadGrace),
		skip("judge without condemn", []string{"03 §8"}, memory.Condemned),
		skip("commit whatever became of its intent", []string{"I2"}, memory.CommitIntent).in(impatience),
		skip("commit over refs that changed", []string{"I1", "I2"}, memory.CommitRefs).in(crowd),
		skip("key re-used after burning", []string{"I2", "referee"}, memory.BurnedKey).in(impatience),
		skip("commit without watchers", []string{"I3", "I5"}, memory.Watch),
		skip("walk by first seq", []string{"I1"}, memory.FirstSeq),
		skip("trim lowers live_from", []string{"I6"}, memory.LiveFrom),
	}
}

func (p Plant) in(tune func(*Config)) Plant {
	p.tune = tune
	return p
}

// impatience has intents judged soon, while their jobs are held up.
func impatience(cfg *Config) {
	cfg.OrphanGrace, cfg.Stalls = 6*time.Second, 20
	cfg.Rates.Delayed, cfg.Rates.Crash = 80, 4
}

// crowd has markers armed again, and refs swapped, while another auditor is at them.
func crowd(cfg *Config) { cfg.Auditors, cfg.Stalls, cfg.Pace = 4, 20, 2*time.Second }

// cuts has streams trimmed all the time while they are followed.
func cuts(cfg *Config) { cfg.Followers, cfg.Trims = 5, 25 }

// skip has the catalog not ask guards.
func (cfg *Config) skip(guards ...memory.Guard) {
	cfg.Hooks.Skip = map[memory.Guard]bool{}
	for _, g := range guards {
		cfg.Hooks.Skip[g] = true
	}
}

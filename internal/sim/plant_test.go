package sim_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/strandline/strandline/internal/sim"
)

var (
	plantSeeds = flag.Int("plantseeds", 120, "how many seeds a planted fault may take")
	plantName  = flag.String("plant", "", "try the plants alone whose names contain this")
)

// cleanRuns are runs without any plant, each made once.
type cleanRuns struct {
	mu   sync.Mutex
	runs map[uint64]*cleanRun
}

type cleanRun struct {
	once sync.Once
	err  error
}

// err is what a seed's run finds with nothing planted in it.
func (c *cleanRuns) err(t *testing.T, p sim.Plant, seed uint64) error {
	if p.IsTuned() {
		got := run(t, p.Tuned(sim.Default(seed)))
		return got.Err()
	}
	c.mu.Lock()
	r := c.runs[seed]
	if r == nil {
		r = &cleanRun{}
		c.runs[seed] = r
	}
	c.mu.Unlock()
	r.once.Do(func() {
		got := run(t, sim.Default(seed))
		r.err = got.Err()
	})
	return r.err
}

// caught is how a plant was found out.
type caught struct {
	seeds int
	steps int
	by    string
}

// TestPlants: every planted bug is noticed within a bounded number of seeds, by a rule
// that is there for it; the same seeds without it are green.
func TestPlants(t *testing.T) {
	clean := &cleanRuns{runs: map[uint64]*cleanRun{}}
	plants := sim.Plants()
	if len(plants) < 15 {
		t.Fatalf("only %d plants", len(plants))
	}
	found := make([]caught, len(plants))
	t.Run("each", func(t *testing.T) {
		for i, p := range plants {
			if !strings.Contains(p.Name, *plantName) {
				continue
			}
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				found[i] = catch(t, p, clean)
			})
		}
	})
	var table strings.Builder
	for i, p := range plants {
		if f := found[i]; f.seeds > 0 {
			fmt.Fprintf(&table, "\n%-52s %3d seeds %5d steps  %.110s", p.Name, f.seeds, f.steps, f.by)
		}
	}
	fmt.Printf("planted, and caught after:%s\n", table.String())
}

func catch(t *testing.T, p sim.Plant, clean *cleanRuns) caught {
	var other []string
	for seed := uint64(1); seed <= uint64(*plantSeeds); seed++ {
		r := run(t, p.In(sim.Default(seed)))
		if finding, ok := p.Caught(&r); ok {
			if err := clean.err(t, p, seed); err != nil {
				t.Errorf("seed %d is not green without it: %v", seed, err)
			}
			return caught{int(seed), r.Steps, finding}
		}
		for _, f := range r.Findings {
			other = append(other, fmt.Sprintf("seed %d: %s", seed, f))
		}
	}
	t.Errorf("not caught by %v within %d seeds; what was found instead: %d\n%.4000s", p.Rules, *plantSeeds, len(other), strings.Join(other, "\n"))
	return caught{}
}

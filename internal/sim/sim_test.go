package sim_test

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/internal/sim"
)

var (
	seeds = flag.Int("seeds", 24, "how many seeds to run; 0: until stopped")
	from  = flag.Uint64("from", 1, "the first of them; 0: drawn at random")
	one   = flag.Uint64("seed", 0, "run this seed alone")
	show  = flag.Bool("show", false, "print every step")
	logs  = flag.Bool("logs", false, "print what the processes log")
)

func TestMain(m *testing.M) {
	sim.Prepare()
	m.Run()
}

func run(t *testing.T, cfg sim.Config) (r sim.Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = sim.Run(cfg) })
	return r
}

// round is how many seeds a soak runs between two words.
const round = 200

// TestSim runs seeds, and every rule after every step of each.
func TestSim(t *testing.T) {
	first, n := *from, *seeds
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	if *one != 0 {
		first, n = *one, 1
	}
	var sum totals
	for n == 0 && !t.Failed() { // a soak
		sum.run(t, first, round)
		sum.print()
		first += round
	}
	if n > 0 {
		sum.run(t, first, n)
	}
	sum.print()
	sum.enough(t)
}

// totals are of all seeds so far.
type totals struct {
	mu       sync.Mutex // below
	seeds    int
	steps    int
	rows     int
	virtual  time.Duration
	coverage sim.Coverage
	began    time.Time
	rolled   int      // seeds whose catalog went back
	unhealed []string // of these, what was left behind
}

func (s *totals) run(t *testing.T, first uint64, n int) {
	t.Helper()
	if s.coverage == nil {
		s.coverage, s.began = sim.Coverage{}, time.Now()
	}
	t.Run(fmt.Sprint("from", first), func(t *testing.T) {
		for i := range uint64(n) {
			t.Run(fmt.Sprint(first+i), func(t *testing.T) {
				t.Parallel()
				s.add(seed(t, first+i))
			})
		}
	})
}

// seed runs one.
func seed(t *testing.T, n uint64) sim.Result {
	t.Helper()
	cfg := sim.Default(n)
	if *show {
		cfg.Trace = os.Stdout
	}
	if *logs {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stdout, nil))
	}
	r := run(t, cfg)
	if err := r.Err(); err != nil && (*one != 0 || !r.Unhealed()) {
		t.Errorf("%v\nagain: go test ./internal/sim -run 'TestSim$' -seed=%d -show", err, n)
	}
	return r
}

func (s *totals) add(r sim.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds++
	s.steps += r.Steps
	s.rows += r.Rows
	s.virtual += r.Virtual
	s.coverage.Add(r.Coverage)
	if r.RolledBack {
		s.rolled++
	}
	if r.Unhealed() {
		s.unhealed = append(s.unhealed, fmt.Sprintf("seed %d: %s", r.Seed, r.Findings[0]))
	}
}

// unhealedShare bounds how many rollbacks may leave something to an operator: one in so many.
// It is no promise but what the simulator finds today, so that it does not become more.
const unhealedShare = 25

// print says what was run, if it was many.
func (s *totals) print() {
	if s.seeds < round {
		return
	}
	took := time.Since(s.began)
	fmt.Printf("%d seeds in %v (%.1f a second): %d steps, %d rows acknowledged, %v of virtual time\n",
		s.seeds, took.Round(time.Second), float64(s.seeds)/took.Seconds(), s.steps, s.rows, s.virtual.Round(time.Hour))
	for _, what := range s.coverage.Names() {
		fmt.Printf("  %9d  %s\n", s.coverage[what], what)
	}
}

// coverSeeds are as many as have to come by everything.
const coverSeeds = 500

// enough: a fault that is never injected, and a step of a duty that is never taken, is not
// tested by many seeds any more than by none.
func (s *totals) enough(t *testing.T) {
	t.Helper()
	for _, u := range s.unhealed {
		t.Logf("left behind by a rolled-back catalog: %s", u)
	}
	if most := max(1, s.rolled/unhealedShare); len(s.unhealed) > most {
		t.Errorf("%d of %d rolled-back catalogs left something behind, at most %d did before", len(s.unhealed), s.rolled, most)
	}
	if s.seeds < coverSeeds {
		return
	}
	for _, what := range s.coverage.Missing(sim.Wanted()) {
		t.Errorf("%d seeds never came by: %s", s.seeds, what)
	}
}

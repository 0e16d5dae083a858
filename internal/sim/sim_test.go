package sim_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"

	"github.com/strandline/strandline/internal/sim"
)

var (
	seeds = flag.Int("seeds", 24, "how many seeds to run")
	from  = flag.Uint64("from", 1, "the first of them")
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

// TestSim runs seeds, and every rule after every step of each.
func TestSim(t *testing.T) {
	first, n := *from, *seeds
	if *one != 0 {
		first, n = *one, 1
	}
	for i := range uint64(n) {
		t.Run(fmt.Sprint(first+i), func(t *testing.T) {
			t.Parallel()
			cfg := sim.Default(first + i)
			if *show {
				cfg.Trace = os.Stdout
			}
			if *logs {
				cfg.Log = slog.New(slog.NewTextHandler(os.Stdout, nil))
			}
			r := run(t, cfg)
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d steps, %v, %d rows", r.Steps, r.Virtual, r.Rows)
		})
	}
}

//go:build unix

package soak

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The knobs of `make soak-real`.
var (
	duration = flag.Duration("soak.duration", time.Minute, "how long processes are broken")
	seed     = flag.Uint64("soak.seed", 0, "seed of the faults; 0: a new one")
	binary   = flag.String("soak.binary", "", "the built command; empty: it is built")
	keep     = flag.String("soak.dir", "", "where the run lives; it stays if the run finds anything")
)

// TestSoak breaks real processes on a real server, and loses nothing.
func TestSoak(t *testing.T) {
	o := options(t)
	o.Duration = *duration
	report, err := Run(t.Context(), o)
	t.Logf("\n%s", report)
	if err != nil {
		t.Fatal(err)
	}
	if report.Kills() == 0 || report.Counts["stall"] == 0 {
		t.Errorf("the faults did not strike:\n%s", report)
	}
	if report.Rows < 500 || report.Read == 0 || report.Judged == 0 || report.Settled == 0 || report.Reaped == 0 || report.Counts["takeover"] == 0 {
		t.Errorf("the run did too little to prove anything:\n%s", report)
	}
}

func options(t *testing.T) Options {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d", s)
	dir := *keep
	if dir == "" {
		var err error
		// Not t.TempDir: the logs of a run that fails stay.
		if dir, err = os.MkdirTemp("", "strandline-soak-"); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Seed: s, Dir: dir, Binary: *binary, Logf: t.Logf}
}

package sim_test

import (
	"testing"

	"github.com/strandline/strandline/internal/sim"
)

// TestI9 counts what seeds cost in which nothing goes wrong.
func TestI9(t *testing.T) {
	sum := sim.Coverage{}
	for n := range uint64(max(8, *seeds/50)) {
		r := run(t, sim.Calm(*from+n))
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		sum.Add(r.Coverage)
	}
	for _, what := range []string{"cost outputs", "cost reaped", "duty pack-merge: outputs", "duty tail-fill: outputs", "duty gc: outputs"} {
		t.Logf("%s: %d", what, sum[what])
		if sum[what] == 0 {
			t.Errorf("no seed came by: %s", what)
		}
	}
}

package sim_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"testing"

	"github.com/strandline/strandline/internal/sim"
)

var replays = flag.Int("replays", 0, "how many seeds TestOneSeedOneRun runs twice, from -from on; 0: those that parted once")

// replayed are seeds that parted while the simulator left to the Go scheduler: which footers
// a reader drops (4), a call against the end of its ctx (23), a death at a crash point (32,
// 73), turns at hydrating (37), the end of a run (42), and which reason to seal comes first
// (1086).
func replayed() (seeds []uint64) {
	if *replays == 0 {
		return []uint64{4, 23, 32, 37, 42, 73, 1086}
	}
	for n := range uint64(*replays) {
		seeds = append(seeds, *from+n)
	}
	return seeds
}

// TestOneSeedOneRun: the same seed twice gives the same trace and comes by the same things,
// and another seed gives another one.
func TestOneSeedOneRun(t *testing.T) {
	hashes := map[uint64]uint64{}
	for _, seed := range replayed() {
		var traces [2]bytes.Buffer
		var results [2]sim.Result
		for i := range results {
			cfg := sim.Default(seed)
			cfg.Trace = &traces[i]
			results[i] = run(t, cfg)
		}
		a, b := results[0], results[1]
		if a.Hash != b.Hash || a.Steps != b.Steps || !maps.Equal(a.Coverage, b.Coverage) {
			t.Errorf("seed %d: %d steps with hash %x, then %d with %x; they part at\n%s%s", seed, a.Steps, a.Hash, b.Steps, b.Hash, parting(&traces[0], &traces[1]), counted(a.Coverage, b.Coverage))
		}
		if of, there := hashes[a.Hash]; there {
			t.Errorf("seeds %d and %d run alike", of, seed)
		}
		hashes[a.Hash] = seed
	}
}

// parting is the first line in which two traces differ.
func parting(a, b *bytes.Buffer) string {
	for {
		x, errA := a.ReadString('\n')
		y, errB := b.ReadString('\n')
		if x != y {
			return x + y
		}
		if errA != nil || errB != nil {
			return "no step: what differs is not in the trace\n"
		}
	}
}

// counted are the counts that differ.
func counted(a, b sim.Coverage) (out string) {
	both := sim.Coverage{}
	both.Add(a)
	both.Add(b)
	for _, what := range both.Names() {
		if a[what] != b[what] {
			out += fmt.Sprintf("%s: %d and %d\n", what, a[what], b[what])
		}
	}
	return out
}

package sim_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/sim"
)

// TestOneSeedOneRun: the same seed twice gives the same trace, and another seed another one.
// With one shard: see BUG in doc.go.
func TestOneSeedOneRun(t *testing.T) {
	hashes := map[uint64]uint64{}
	for seed := range uint64(4) {
		var traces [2]bytes.Buffer
		var results [2]sim.Result
		for i := range results {
			cfg := sim.Default(seed + 1)
			cfg.Shards = 1
			cfg.Trace = &traces[i]
			results[i] = run(t, cfg)
		}
		a, b := results[0], results[1]
		if a.Hash != b.Hash || a.Steps != b.Steps {
			t.Errorf("seed %d: %d steps with hash %x, then %d with %x; they part at\n%s%s", seed+1, a.Steps, a.Hash, b.Steps, b.Hash, parting(&traces[0], &traces[1]), counted(a.Coverage, b.Coverage))
		}
		if of, there := hashes[a.Hash]; there {
			t.Errorf("seeds %d and %d run alike", of, seed+1)
		}
		hashes[a.Hash] = seed + 1
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
	for _, what := range a.Names() {
		if a[what] != b[what] {
			out += fmt.Sprintf("%s: %d and %d\n", what, a[what], b[what])
		}
	}
	return out
}

// TestEveryVerbIsAStep: a verb that was added to the catalog and has no method in verbs.go
// would go by the scheduler unseen.
func TestEveryVerbIsAStep(t *testing.T) {
	verbs := reflect.TypeFor[catalog.Catalog]()
	own := sim.StepVerbs()
	for i := range verbs.NumMethod() {
		if name := verbs.Method(i).Name; !own[name] {
			t.Errorf("verb %s is no step: add it to verbs.go", name)
		}
	}
}

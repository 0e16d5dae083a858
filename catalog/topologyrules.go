package catalog

import (
	"fmt"
	"slices"

	"github.com/strandline/strandline/segment"
)

// MaxShards bounds the chains of an epoch: all their rows are read at once.
const MaxShards = 65536

// ValidateTopology checks an epoch on its own.
func ValidateTopology(t *Topology) error {
	switch {
	case t.Epoch == 0:
		return Invalid("EnsureTopology", "epochs begin at 1")
	case t.Shards == 0 || t.Shards > MaxShards:
		return Invalid("EnsureTopology", "%d shards, 1 to %d may be", t.Shards, MaxShards)
	case t.Class == segment.Class("") || len(t.Buckets) == 0:
		return Invalid("EnsureTopology", "class %q, %d buckets", t.Class, len(t.Buckets))
	case t.State != TopologyOpening && t.State != TopologyOpen && t.State != TopologyClosed:
		return Invalid("EnsureTopology", "state %q", string(t.State))
	}
	return nil
}

// CheckTopology holds an epoch against what stands: its constants never change. The
// state is not one of them.
func CheckTopology(want, have *Topology) error {
	if want.Shards != have.Shards || want.Class != have.Class || want.Settle != have.Settle || !slices.Equal(want.Buckets, have.Buckets) {
		return Conflict("EnsureTopology", fmt.Sprintf("constants of epoch %d", want.Epoch), describeTopology(want), describeTopology(have))
	}
	return nil
}

func describeTopology(t *Topology) string {
	return fmt.Sprintf("%d shards, class %s, buckets %q, settle %v", t.Shards, t.Class, t.Buckets, t.Settle)
}

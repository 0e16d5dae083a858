package catalog

import (
	"fmt"
	"slices"

	"github.com/strandline/strandline/segment"
)

// MaxShards bounds the chains of an epoch: all their rows are read at once.
const MaxShards = 65536

// EpochIn is an epoch's row among all of them; nil if it has none.
func EpochIn(all []Topology, e segment.Epoch) *Topology {
	for i := range all {
		if all[i].Epoch == e {
			return &all[i]
		}
	}
	return nil
}

// ValidateTopology checks an epoch on its own.
func ValidateTopology(t *Topology) error {
	switch {
	case t.Epoch == 0:
		return Invalid("EnsureTopology", "epochs begin at 1")
	case t.Shards == 0 || t.Shards > MaxShards:
		return Invalid("EnsureTopology", "%d shards, 1 to %d may be", t.Shards, MaxShards)
	case t.Class == segment.Class("") || len(t.Buckets) == 0:
		return Invalid("EnsureTopology", "class %q, %d buckets", t.Class, len(t.Buckets))
	case !t.State.known():
		return Invalid("EnsureTopology", "state %q", string(t.State))
	}
	return ValidateRetention("EnsureTopology", &t.Retention)
}

func (s TopologyState) known() bool {
	switch s {
	case TopologyOpening, TopologyOpen, TopologyClosing, TopologyClosed:
		return true
	}
	return false
}

// CheckTopology holds an epoch against what stands: its constants never change. State
// and retention are none of them.
func CheckTopology(want, have *Topology) error {
	if want.Shards != have.Shards || want.Class != have.Class || want.Settle != have.Settle || !slices.Equal(want.Buckets, have.Buckets) {
		return Conflict("EnsureTopology", fmt.Sprintf("constants of epoch %d", want.Epoch), describeTopology(want), describeTopology(have))
	}
	return nil
}

func describeTopology(t *Topology) string {
	return fmt.Sprintf("%d shards, class %s, buckets %q, settle %v", t.Shards, t.Class, t.Buckets, t.Settle)
}

// checkOpened: no chain of an epoch has an owner while lower epochs may still take rows,
// for a stream's rows go on in the next epoch only after its last ones in this.
func checkOpened(verb string, t *Topology) error {
	if t.State == TopologyOpening {
		return Conflict(verb, "epoch opened", "an epoch that is open", fmt.Sprintf("epoch %d is opening: lower epochs are being closed, try again", t.Epoch))
	}
	return nil
}

// CheckTopologyStep holds a step of an epoch's life against what stands. have is the
// epoch; chains are all rows, of every epoch.
func CheckTopologyStep(have *Topology, from, to TopologyState, chains []ChainRow) error {
	const verb = "SetTopologyState"
	var open, closed []segment.Chain // of this epoch
	var lower []segment.Chain        // not closed, of lower epochs
	for i := range chains {
		switch c := &chains[i]; {
		case c.Epoch < have.Epoch && !c.Closed:
			lower = append(lower, c.Chain)
		case c.Epoch == have.Epoch && c.Closed:
			closed = append(closed, c.Chain)
		case c.Epoch == have.Epoch:
			open = append(open, c.Chain)
		}
	}
	if have.State != from {
		return Conflict(verb, "state", from, have.State)
	}
	switch [2]TopologyState{from, to} {
	case [2]TopologyState{TopologyOpening, TopologyOpen}:
		return noneOf(verb, "lower epochs closed", "every chain of every lower epoch closed", lower)
	case [2]TopologyState{TopologyOpen, TopologyClosing}:
		return nil
	case [2]TopologyState{TopologyClosing, TopologyOpen}:
		return noneOf(verb, "nothing closed", "no chain closed yet", closed)
	case [2]TopologyState{TopologyClosing, TopologyClosed}:
		return noneOf(verb, "chains closed", "every chain closed", open)
	}
	return Invalid(verb, "no step leads from %q to %q", string(from), string(to))
}

func noneOf(verb, guard, want string, chains []segment.Chain) error {
	if len(chains) == 0 {
		return nil
	}
	return Conflict(verb, guard, want, fmt.Sprintf("%d that are not, as chain %s", len(chains), chains[0]))
}

// Feeding lists the shards of an epoch with from shards whose streams may belong to
// shard s of an epoch with to shards. Both shards are one hash modulo a number, so they
// agree modulo the numbers' greatest common divisor, and every such pair occurs.
func Feeding(from, to uint32, s segment.Shard) []segment.Shard {
	if from == 0 || to == 0 || uint32(s) >= to {
		return nil
	}
	g := commonDivisor(from, to)
	var out []segment.Shard
	for i := uint64(uint32(s) % g); i < uint64(from); i += uint64(g) {
		out = append(out, segment.Shard(i))
	}
	return out
}

func commonDivisor(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Opens says whether a step opens an epoch: its chains are about to get owners, and begin
// with what InheritConsumers says.
func Opens(from, to TopologyState) bool { return from == TopologyOpening && to == TopologyOpen }

// InheritConsumers are the rows of an epoch that opens which begin with consumers of the
// epoch before, nil if there is none, and what the audit table is told. The chains of that
// one are all closed: nobody moves them, and nobody owns the new ones yet.
func InheritConsumers(before, next *Topology, chains []ChainRow) (begin []ChainRow, said []AuditRow) {
	if before == nil {
		return nil, nil
	}
	of, cut := inheritedConsumers(before, next, chains)
	for _, c := range chains {
		if c.Epoch == next.Epoch && len(of[c.Shard]) > 0 {
			c.Consumers = slices.Clone(of[c.Shard])
			begin = append(begin, c)
		}
	}
	for _, s := range cut {
		said = append(said, AuditRow{
			Kind: "consumers", Subject: segment.Chain{Epoch: next.Epoch, Shard: s}.String(),
			Detail: fmt.Sprintf("more than %d consumers of epoch %d: the others hold nothing back here", segment.MaxConsumers, before.Epoch),
		})
	}
	return begin, said
}

// inheritedConsumers is what the chains of an epoch begin with: the durable consumers of
// the shards of the epoch before whose streams may go on there, each before the first row.
// Without them retention would give up rows that they have yet to come to. chains are all
// rows; a chain without consumers is left out. cut names the chains that would get more
// than a chain may have, and get the first of them by name.
func inheritedConsumers(before, next *Topology, chains []ChainRow) (of map[segment.Shard][]segment.Consumer, cut []segment.Shard) {
	g := commonDivisor(before.Shards, next.Shards)
	names := make(map[uint32][]string) // by what the shards of both epochs agree on
	for i := range chains {
		if c := &chains[i]; c.Epoch == before.Epoch {
			for _, k := range c.Consumers {
				names[uint32(c.Shard)%g] = append(names[uint32(c.Shard)%g], k.Name)
			}
		}
	}
	of = make(map[segment.Shard][]segment.Consumer)
	for rest, list := range names {
		slices.Sort(list)
		list = slices.Compact(list)
		over := len(list) > segment.MaxConsumers
		list = list[:min(len(list), segment.MaxConsumers)]
		consumers := make([]segment.Consumer, len(list))
		for i, name := range list {
			consumers[i].Name = name
		}
		for s := uint64(rest); s < uint64(next.Shards); s += uint64(g) {
			of[segment.Shard(s)] = consumers
			if over {
				cut = append(cut, segment.Shard(s))
			}
		}
	}
	slices.Sort(cut)
	return of, cut
}

package memory

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Topologies lists all epochs, oldest first.
func (c *Catalog) Topologies(ctx context.Context) (out []catalog.Topology, err error) {
	err = c.read(ctx, "Topologies", func(t *tx) error {
		for _, r := range t.topology.all() {
			out = append(out, copyTopology(r))
		}
		return nil
	})
	return out, err
}

// EnsureTopology creates an epoch and its chains, or returns what stands.
func (c *Catalog) EnsureTopology(ctx context.Context, want catalog.Topology) (out catalog.Topology, err error) {
	if err := catalog.ValidateTopology(&want); err != nil {
		return out, err
	}
	err = c.write(ctx, "EnsureTopology", func(t *tx) error {
		if have, ok := t.topology.get(want.Epoch); ok {
			out = copyTopology(have)
			return catalog.CheckTopology(&want, &out)
		}
		r := copyTopology(&want)
		t.topology.set(want.Epoch, &r)
		for s := range want.Shards {
			chain := segment.Chain{Epoch: want.Epoch, Shard: segment.Shard(s)}
			t.chain.set(chain, &catalog.ChainRow{
				Chain: chain, AbsorbedEnd: 1, NextSeq: 1, Rewritten: 1, Condemned: 1, Trimmed: 1, TrimJournal: 1,
			})
		}
		out = copyTopology(&r)
		return nil
	})
	return out, err
}

// epoch reads one; an epoch that has none is ErrNotFound.
func (t *tx) epoch(e segment.Epoch) (*catalog.Topology, error) {
	r, ok := t.topology.get(e)
	if !ok {
		return nil, fmt.Errorf("%w: topology of epoch %d", catalog.ErrNotFound, e)
	}
	return r, nil
}

// ofChains reads the epoch of chains that stand.
func (t *tx) ofChains(e segment.Epoch) (*catalog.Topology, error) {
	r, ok := t.topology.get(e)
	if !ok {
		return nil, catalog.NoTopology(e)
	}
	return r, nil
}

func (t *tx) settles(e segment.Epoch) (bool, error) {
	r, err := t.ofChains(e)
	return err == nil && r.Settle, err
}

// SetTopologyState moves an epoch's life one step.
func (c *Catalog) SetTopologyState(ctx context.Context, e segment.Epoch, from, to catalog.TopologyState) (out catalog.Topology, err error) {
	err = c.write(ctx, "SetTopologyState", func(t *tx) error {
		have, err := t.epoch(e)
		if err != nil {
			return err
		}
		out = copyTopology(have)
		chains := t.chains()
		if err := catalog.CheckTopologyStep(have, from, to, chains); err != nil {
			return err
		}
		if catalog.Opens(from, to) {
			if err := t.inheritConsumers(have, chains); err != nil {
				return err
			}
		}
		out.State = to
		r := copyTopology(&out)
		t.topology.set(e, &r)
		return nil
	})
	return out, err
}

// inheritConsumers gives the chains of an epoch that opens the consumers of the epoch
// before.
func (t *tx) inheritConsumers(next *catalog.Topology, chains []catalog.ChainRow) error {
	var before *catalog.Topology
	for _, r := range t.topology.below(next.Epoch) {
		before = r
		break
	}
	begin, said := catalog.InheritConsumers(before, next, chains)
	for i := range begin {
		if err := t.putChain(&begin[i]); err != nil {
			return err
		}
	}
	for _, a := range said {
		t.record(a.Kind, a.Subject, a.Detail)
	}
	return nil
}

// SetRetention replaces what the chains of an epoch give up.
func (c *Catalog) SetRetention(ctx context.Context, e segment.Epoch, r catalog.Retention) (out catalog.Topology, err error) {
	if err := catalog.ValidateRetention("SetRetention", &r); err != nil {
		return out, err
	}
	err = c.write(ctx, "SetRetention", func(t *tx) error {
		have, err := t.epoch(e)
		if err != nil {
			return err
		}
		row := copyTopology(have)
		row.Retention = r
		t.topology.set(e, &row)
		out = copyTopology(&row)
		return nil
	})
	return out, err
}

package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

func (t *tx) askTopologies(out *[]catalog.Topology, where string, args ...any) {
	t.ask("SELECT "+column.Topologies+" FROM topology "+where, func(scan column.Scan) error {
		r, err := column.Topology(scan)
		*out = append(*out, r)
		return err
	}, args...)
}

// Topologies lists all epochs, oldest first.
func (d *DB) Topologies(ctx context.Context) (out []catalog.Topology, err error) {
	err = d.read(ctx, "Topologies", func(t *tx) error {
		out = nil
		t.askTopologies(&out, "ORDER BY epoch")
		return nil
	})
	return out, err
}

// EnsureTopology creates an epoch and its chains, or returns what stands. Of two that
// create it at once the second fails on the key, and is run again.
func (d *DB) EnsureTopology(ctx context.Context, want catalog.Topology) (out catalog.Topology, err error) {
	if err := catalog.ValidateTopology(&want); err != nil {
		return out, err
	}
	if want.Epoch > math.MaxInt32 {
		return out, catalog.Invalid("EnsureTopology", "epoch %d, at most %d may be", want.Epoch, math.MaxInt32)
	}
	err = d.write(ctx, "EnsureTopology", func(t *tx) error {
		var have []catalog.Topology
		t.askTopologies(&have, "WHERE epoch = $1::int8", int64(want.Epoch))
		if err := t.flush(); err != nil {
			return err
		}
		if len(have) == 1 {
			out = have[0]
			return catalog.CheckTopology(&want, &out)
		}
		out = want
		out.Buckets = slices.Clone(want.Buckets)
		return t.createTopology(&out)
	})
	return out, err
}

func (t *tx) createTopology(r *catalog.Topology) error {
	buckets, err := column.JSON(r.Buckets)
	if err != nil {
		return err
	}
	retention, err := catalog.EncodeRetention(r.Retention)
	if err != nil {
		return err
	}
	t.exec("INSERT INTO topology ("+column.Topologies+") VALUES ($1::int8, $2, $3, $4, $5, $6, $7)",
		int64(r.Epoch), int64(r.Shards), string(r.Class), buckets, r.Settle, string(r.State), retention)
	nobody := segment.UUID{}
	t.exec(`INSERT INTO chain SELECT $1::int8, i, $3::bytea, '', 0, 0, false, 1, $3::bytea, 0, 1, 1, 1, 0, 1, 0, 0, '[]', 0, 0, 1
 FROM generate_series(0, $2::int8 - 1) i`, int64(r.Epoch), int64(r.Shards), nobody[:])
	return nil
}

// topologyOf is the one that was asked for.
func topologyOf(have []catalog.Topology, e segment.Epoch) (catalog.Topology, error) {
	if len(have) == 0 {
		return catalog.Topology{}, fmt.Errorf("%w: topology of epoch %d", catalog.ErrNotFound, e)
	}
	return have[0], nil
}

// SetTopologyState moves an epoch's life one step. It keeps the epoch's row against
// another step, and all chains against an absorb that closes one: whether one is closed is
// what the steps are about.
func (d *DB) SetTopologyState(ctx context.Context, e segment.Epoch, from, to catalog.TopologyState) (out catalog.Topology, err error) {
	err = d.write(ctx, "SetTopologyState", func(t *tx) (err error) {
		var have []catalog.Topology
		var chains []catalog.ChainRow
		t.askTopologies(&have, "WHERE epoch = $1::int8 FOR UPDATE", int64(e))
		t.askChains(&chains, " FOR UPDATE")
		if err := t.flush(); err != nil {
			return err
		}
		if out, err = topologyOf(have, e); err != nil {
			return err
		}
		if err := catalog.CheckTopologyStep(&out, from, to, chains); err != nil {
			return err
		}
		if catalog.Opens(from, to) {
			if err := t.inheritConsumers(&out, chains); err != nil {
				return err
			}
		}
		out.State = to
		t.exec("UPDATE topology SET state = $1 WHERE epoch = $2::int8", string(to), int64(e))
		return nil
	})
	return out, err
}

// inheritConsumers gives the chains of an epoch that opens the consumers of the epoch
// before.
func (t *tx) inheritConsumers(next *catalog.Topology, chains []catalog.ChainRow) error {
	var before []catalog.Topology
	t.askTopologies(&before, "WHERE epoch < $1::int8 ORDER BY epoch DESC LIMIT 1", int64(next.Epoch))
	if err := t.flush(); err != nil {
		return err
	}
	begin, said := catalog.InheritConsumers(column.One(before), next, chains)
	for i := range begin {
		if err := t.putChain(&begin[i]); err != nil {
			return err
		}
	}
	for _, a := range said {
		t.audit(a.Kind, a.Subject, a.Detail)
	}
	return nil
}

// SetRetention replaces what the chains of an epoch give up.
func (d *DB) SetRetention(ctx context.Context, e segment.Epoch, r catalog.Retention) (out catalog.Topology, err error) {
	if err := catalog.ValidateRetention("SetRetention", &r); err != nil {
		return out, err
	}
	retention, err := catalog.EncodeRetention(r)
	if err != nil {
		return out, err
	}
	err = d.write(ctx, "SetRetention", func(t *tx) (err error) {
		var have []catalog.Topology
		t.askTopologies(&have, "WHERE epoch = $1::int8 FOR UPDATE", int64(e))
		if err := t.flush(); err != nil {
			return err
		}
		if out, err = topologyOf(have, e); err != nil {
			return err
		}
		out.Retention = r
		t.exec("UPDATE topology SET retention = $1 WHERE epoch = $2::int8", retention, int64(e))
		return nil
	})
	return out, err
}

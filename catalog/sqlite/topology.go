package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

func (t *tx) topologies(where string, args ...any) ([]catalog.Topology, error) {
	var out []catalog.Topology
	err := t.query("SELECT "+column.Topologies+" FROM topology "+where+" ORDER BY epoch", func(scan column.Scan) error {
		r, err := column.Topology(scan)
		out = append(out, r)
		return err
	}, args...)
	return out, err
}

// Topologies lists all epochs, oldest first.
func (d *DB) Topologies(ctx context.Context) (out []catalog.Topology, err error) {
	err = d.read(ctx, "Topologies", func(t *tx) (err error) {
		out, err = t.topologies("")
		return err
	})
	return out, err
}

// EnsureTopology creates an epoch and its chains, or returns what stands.
func (d *DB) EnsureTopology(ctx context.Context, want catalog.Topology) (out catalog.Topology, err error) {
	if err := catalog.ValidateTopology(&want); err != nil {
		return out, err
	}
	err = d.write(ctx, "EnsureTopology", func(t *tx) error {
		have, err := t.topologies("WHERE epoch = ?", want.Epoch)
		if err != nil {
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
	if err := t.exec("INSERT INTO topology ("+column.Topologies+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		r.Epoch, r.Shards, string(r.Class), buckets, r.Settle, string(r.State), retention); err != nil {
		return err
	}
	nobody := segment.UUID{}
	return t.exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
INSERT INTO chain SELECT ?1, i, ?3, '', 0, 0, 0, 1, ?3, 0, 1, 1, 1, 0, 1, 0, 0, '[]', 0, 0, 1 FROM n`, r.Epoch, r.Shards, nobody[:])
}

// topology reads one; an epoch that has none is ErrNotFound.
func (t *tx) topology(e segment.Epoch) (catalog.Topology, error) {
	have, err := t.topologies("WHERE epoch = ?", e)
	if err == nil && len(have) == 0 {
		err = fmt.Errorf("%w: topology of epoch %d", catalog.ErrNotFound, e)
	}
	if err != nil {
		return catalog.Topology{}, err
	}
	return have[0], nil
}

// SetTopologyState moves an epoch's life one step.
func (d *DB) SetTopologyState(ctx context.Context, e segment.Epoch, from, to catalog.TopologyState) (out catalog.Topology, err error) {
	err = d.write(ctx, "SetTopologyState", func(t *tx) (err error) {
		if out, err = t.topology(e); err != nil {
			return err
		}
		chains, err := t.chains()
		if err != nil {
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
		return t.exec("UPDATE topology SET state = ? WHERE epoch = ?", string(to), e)
	})
	return out, err
}

// inheritConsumers gives the chains of an epoch that opens the consumers of the epoch
// before.
func (t *tx) inheritConsumers(next *catalog.Topology, chains []catalog.ChainRow) error {
	before, err := t.topologies("WHERE epoch < ?", next.Epoch)
	if err != nil {
		return err
	}
	slices.Reverse(before)
	begin, said := catalog.InheritConsumers(column.One(before), next, chains)
	for i := range begin {
		if err := t.putChain(&begin[i]); err != nil {
			return err
		}
	}
	for _, a := range said {
		if err := t.audit(a.Kind, a.Subject, a.Detail); err != nil {
			return err
		}
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
		if out, err = t.topology(e); err != nil {
			return err
		}
		out.Retention = r
		return t.exec("UPDATE topology SET retention = ? WHERE epoch = ?", retention, e)
	})
	return out, err
}

package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// EnsureEpoch creates an epoch in the catalog and its record in every bucket of
// its class, or verifies what stands.
func EnsureEpoch(ctx context.Context, cat catalog.Deployment, classes objstore.Classes, t catalog.Topology) (catalog.Topology, error) {
	set, err := classes.Set(string(t.Class))
	if err != nil {
		return t, err
	}
	if err := notForgotten(ctx, cat, set, &t); err != nil {
		return t, err
	}
	t, err = cat.EnsureTopology(ctx, t)
	if err != nil {
		return t, err
	}
	record := recordOf(&t)
	body, err := segment.EncodeTopology(&record)
	if err != nil {
		return t, err
	}
	for _, store := range set {
		// crash here: the next start writes the records that are missing
		if err := ensureRecord(ctx, store, &record, body); err != nil {
			return t, fmt.Errorf("the record of epoch %d in %s: %w", t.Epoch, store.Name(), err)
		}
	}
	return t, nil
}

func recordOf(t *catalog.Topology) segment.TopologyRecord {
	return segment.TopologyRecord{
		Epoch: t.Epoch, Shards: t.Shards, Class: t.Class, Buckets: t.Buckets, Settle: t.Settle, State: string(t.State),
	}
}

// notForgotten refuses an epoch that is new to the catalog, but of which a record with other
// constants stands: a catalog that was rolled back forgot it, and an epoch's row, once it is made,
// never changes any more.
func notForgotten(ctx context.Context, cat catalog.Deployment, set objstore.Set, t *catalog.Topology) error {
	all, err := cat.Topologies(ctx)
	if err != nil {
		return err
	}
	if catalog.EpochIn(all, t.Epoch) != nil {
		return nil
	}
	record := recordOf(t)
	for _, store := range set {
		err := sameEpoch(ctx, store, &record)
		if errors.Is(err, ErrNotMine) {
			return fmt.Errorf("the record of epoch %d in %s, which the catalog does not have: was the catalog rolled back? Bring its newest copy back, or make the epoch as the record says: %w",
				t.Epoch, store.Name(), err)
		}
		if err != nil && !errors.Is(err, objstore.ErrNotFound) {
			return err
		}
	}
	return nil
}

// ensureRecord looks before it writes: a deployment that stands starts again beside a store
// that takes no writes, because it is full or throttles.
func ensureRecord(ctx context.Context, store *objstore.Store, record *segment.TopologyRecord, body []byte) error {
	err := sameEpoch(ctx, store, record)
	if !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	_, err = store.PutOnce(ctx, segment.TopologyKey(record.Epoch), body, nil)
	if errors.Is(err, objstore.ErrExists) { // of another process of ours
		err = sameEpoch(ctx, store, record)
	}
	return err
}

// sameEpoch holds a record that stands against the catalog's epoch. Its state is as
// of the time it was written.
func sameEpoch(ctx context.Context, store *objstore.Store, want *segment.TopologyRecord) error {
	var have *segment.TopologyRecord
	_, err := readRecord(ctx, store, segment.TopologyKey(want.Epoch), func(body []byte) (err error) {
		have, err = segment.DecodeTopology(body)
		return err
	})
	if err != nil {
		return err
	}
	if have.Shards != want.Shards || have.Class != want.Class || have.Settle != want.Settle || !slices.Equal(have.Buckets, want.Buckets) {
		return fmt.Errorf("%w: it says %d shards, class %s, buckets %q, settle %t; the catalog %d, %s, %q, %t; check --store and --catalog", ErrNotMine,
			have.Shards, have.Class, have.Buckets, have.Settle, want.Shards, want.Class, want.Buckets, want.Settle)
	}
	return nil
}

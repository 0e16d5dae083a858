package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// The refusals of a start.
var (
	// ErrNotMine: this bucket and this catalog do not belong together.
	ErrNotMine = errors.New("bucket and catalog do not belong together")
	// ErrNoDeployment: nothing was ever started here.
	ErrNoDeployment = errors.New("no deployment here")
)

// StampCatalog is what a start asks of the catalog.
type StampCatalog interface {
	Settings(ctx context.Context) (catalog.Settings, error)
	Init(ctx context.Context, deployment segment.UUID) (catalog.Settings, error)
}

// maxRecord bounds the small records of the bucket.
const maxRecord = 1 << 20

// Verify proves that every bucket belongs to this catalog and changes nothing.
func Verify(ctx context.Context, cat StampCatalog, classes objstore.Classes) error {
	settings, err := cat.Settings(ctx)
	if errors.Is(err, catalog.ErrNotFound) {
		return fmt.Errorf("%w: the catalog is empty; start one with strandline up", ErrNoDeployment)
	}
	if err != nil {
		return err
	}
	return eachBucket(classes, func(class string, store *objstore.Store) error {
		stamp, found, err := readStamp(ctx, store)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: %s has no stamp; is this the right --store?", ErrNotMine, store.Name())
		}
		return compare(settings.Deployment, class, stamp, store.Name())
	})
}

// Ensure is Verify for whoever may found a deployment: on a first start the
// catalog's row comes first, then the stamps, so a crash in between leaves a
// catalog whose id the stamps then take.
func Ensure(ctx context.Context, cat StampCatalog, classes objstore.Classes) (segment.UUID, error) {
	settings, err := cat.Settings(ctx)
	if errors.Is(err, catalog.ErrNotFound) {
		if err := refuseUsed(ctx, classes, "the catalog is empty, but the bucket is in use"); err != nil {
			return segment.UUID{}, err
		}
		settings, err = cat.Init(ctx, uuid.New())
		// crash here: the row stands, the next start stamps the buckets
	}
	if err != nil {
		return segment.UUID{}, err
	}
	err = eachBucket(classes, func(class string, store *objstore.Store) error {
		return ensureStamp(ctx, store, segment.Stamp{Deployment: settings.Deployment, Class: segment.Class(class)})
	})
	return settings.Deployment, err
}

func ensureStamp(ctx context.Context, store *objstore.Store, want segment.Stamp) error {
	have, found, err := readStamp(ctx, store)
	if err != nil {
		return err
	}
	if !found {
		if err := refuseUsed(ctx, objstore.Classes{string(want.Class): {store}}, "it has no stamp, but holds objects"); err != nil {
			return err
		}
		body, err := segment.EncodeStamp(want)
		if err != nil {
			return err
		}
		_, err = store.PutOnce(ctx, segment.StampKey(), body, nil)
		if err == nil || !errors.Is(err, objstore.ErrExists) {
			return err
		}
		if have, _, err = readStamp(ctx, store); err != nil { // another process of ours, or another deployment
			return err
		}
	}
	return compare(want.Deployment, string(want.Class), have, store.Name())
}

func readStamp(ctx context.Context, store *objstore.Store) (segment.Stamp, bool, error) {
	body, _, err := store.ReadAll(ctx, segment.StampKey(), maxRecord)
	if errors.Is(err, objstore.ErrNotFound) {
		return segment.Stamp{}, false, nil
	}
	if err != nil {
		return segment.Stamp{}, false, fmt.Errorf("read the stamp of %s: %w", store.Name(), err)
	}
	stamp, err := segment.DecodeStamp(body)
	if err != nil {
		return segment.Stamp{}, false, fmt.Errorf("the stamp of %s: %w", store.Name(), err)
	}
	return stamp, true, nil
}

// compare is the pure half: does a stamp fit the catalog and the class?
func compare(deployment segment.UUID, class string, stamp segment.Stamp, where string) error {
	switch {
	case stamp.Deployment != deployment:
		return fmt.Errorf("%w: %s is stamped by deployment %s, the catalog is of %s; "+
			"check --store and --catalog", ErrNotMine, where, stamp.Deployment, deployment)
	case string(stamp.Class) != class:
		return fmt.Errorf("%w: %s serves class %q, but is given as %q; check --store", ErrNotMine, where, stamp.Class, class)
	}
	return nil
}

// refuseUsed fails if any bucket holds a key already.
func refuseUsed(ctx context.Context, classes objstore.Classes, why string) error {
	return eachBucket(classes, func(_ string, store *objstore.Store) error {
		for info, err := range store.List(ctx, "", "") {
			if err != nil {
				return fmt.Errorf("list %s: %w", store.Name(), err)
			}
			return fmt.Errorf("%w: %s: %s (first key %s); use the catalog that belongs to it, or an empty prefix", ErrNotMine, store.Name(), why, info.Key)
		}
		return nil
	})
}

func eachBucket(classes objstore.Classes, do func(class string, store *objstore.Store) error) error {
	names := make([]string, 0, len(classes))
	for class := range classes {
		names = append(names, class)
	}
	slices.Sort(names)
	for _, class := range names {
		for _, store := range classes[class] {
			if err := do(class, store); err != nil {
				return err
			}
		}
	}
	return nil
}

// EnsureEpoch creates an epoch in the catalog and its record in every bucket of
// the standard class, or verifies what stands.
func EnsureEpoch(ctx context.Context, cat catalog.Deployment, classes objstore.Classes, t catalog.Topology) (catalog.Topology, error) {
	t, err := cat.EnsureTopology(ctx, t)
	if err != nil {
		return t, err
	}
	body, err := segment.EncodeTopology(&segment.TopologyRecord{
		Epoch: t.Epoch, Shards: t.Shards, Class: t.Class, Buckets: t.Buckets, Settle: t.Settle,
		State: string(t.State),
	})
	if err != nil {
		return t, err
	}
	set, err := classes.Set(string(t.Class))
	if err != nil {
		return t, err
	}
	for _, store := range set {
		// crash here: the next start writes the records that are missing
		_, err := store.PutOnce(ctx, segment.TopologyKey(t.Epoch), body, nil)
		if err != nil && !errors.Is(err, objstore.ErrExists) {
			return t, fmt.Errorf("write the record of epoch %d: %w", t.Epoch, err)
		}
	}
	return t, nil
}

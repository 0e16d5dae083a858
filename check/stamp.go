package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// UnstampedError is ErrNotMine of a bucket without a stamp: the wrong one, or one whose
// founder is between its two steps (the catalog's row comes first, 03 §0).
type UnstampedError struct{ Store string }

func (e *UnstampedError) Error() string {
	return fmt.Sprintf("%v: %s has no stamp; is this the right --store?", ErrNotMine, e.Store)
}

func (e *UnstampedError) Unwrap() error { return ErrNotMine }

// StampCatalog is what a start asks of the catalog.
type StampCatalog interface {
	Settings(ctx context.Context) (catalog.Settings, error)
	Init(ctx context.Context, deployment segment.UUID) (catalog.Settings, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	Chains(ctx context.Context) ([]catalog.ChainRow, error)
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
	err = eachBucket(classes, func(class string, store *objstore.Store) error {
		return verifyStamp(ctx, store, settings.Deployment, class)
	})
	if err != nil {
		return err
	}
	return ordered(ctx, cat, classes)
}

func verifyStamp(ctx context.Context, store *objstore.Store, deployment segment.UUID, class string) error {
	stamp, found, err := readStamp(ctx, store)
	if err != nil {
		return err
	}
	if !found {
		return &UnstampedError{store.Name()}
	}
	return compare(deployment, class, stamp, store.Name())
}

// Ensure is Verify for whoever may found a deployment: on a first start the
// catalog's row comes first, then the stamps, so a crash in between leaves a
// catalog whose id the stamps then take. Two processes may found at once: both go
// by the row and the stamps that stand.
func Ensure(ctx context.Context, cat StampCatalog, classes objstore.Classes) (segment.UUID, error) {
	settings, err := cat.Settings(ctx)
	if errors.Is(err, catalog.ErrNotFound) {
		settings, err = found(ctx, cat, classes)
		// crash here: the row stands, the next start stamps the buckets
	}
	if err != nil {
		return segment.UUID{}, err
	}
	err = eachBucket(classes, func(class string, store *objstore.Store) error {
		return ensureStamp(ctx, cat, store, segment.Stamp{Deployment: settings.Deployment, Class: segment.Class(class)})
	})
	if err == nil {
		err = ordered(ctx, cat, classes)
	}
	return settings.Deployment, err
}

// found makes the catalog's row, unless a bucket is in use already.
func found(ctx context.Context, cat StampCatalog, classes objstore.Classes) (catalog.Settings, error) {
	refused := refuseUsed(ctx, classes, "the catalog is empty, but the bucket is in use")
	if refused == nil {
		return cat.Init(ctx, uuid.New())
	}
	// Another process may have founded the deployment since the look at the catalog,
	// and what was listed may be its stamp.
	settings, err := cat.Settings(ctx)
	if errors.Is(err, catalog.ErrNotFound) {
		return settings, refused
	}
	return settings, err
}

func ensureStamp(ctx context.Context, cat StampCatalog, store *objstore.Store, want segment.Stamp) error {
	have, found, err := readStamp(ctx, store)
	if err != nil {
		return err
	}
	if !found {
		if have, err = stampBucket(ctx, cat, store, want); err != nil {
			return err
		}
	}
	return compare(want.Deployment, string(want.Class), have, store.Name())
}

// stampBucket puts a bucket's stamp and returns the one that stands.
func stampBucket(ctx context.Context, cat StampCatalog, store *objstore.Store, want segment.Stamp) (segment.Stamp, error) {
	refused := refuseUsed(ctx, objstore.Classes{string(want.Class): {store}}, "it has no stamp, but holds objects")
	if refused == nil {
		refused = refuseEmptied(ctx, cat, want.Class, store.Name())
	}
	if refused != nil {
		// Another process of this deployment may have stamped it meanwhile.
		if have, found, err := readStamp(ctx, store); err == nil && found {
			return have, nil
		}
		return segment.Stamp{}, refused
	}
	body, err := segment.EncodeStamp(want)
	if err != nil {
		return segment.Stamp{}, err
	}
	_, err = store.PutOnce(ctx, segment.StampKey(), body, nil)
	if err == nil {
		return want, nil
	}
	if !errors.Is(err, objstore.ErrExists) {
		return segment.Stamp{}, fmt.Errorf("stamp %s: %w", store.Name(), err)
	}
	have, found, err := readStamp(ctx, store) // of another process of ours, or of another deployment
	if err == nil && !found {
		err = fmt.Errorf("%w: the stamp of %s is there and is not; look at the bucket", objstore.ErrConflict, store.Name())
	}
	return have, err
}

// refuseEmptied: a bucket without a stamp cannot be the one that the catalog's rows
// went to. It was emptied, or it is another.
func refuseEmptied(ctx context.Context, cat StampCatalog, class segment.Class, name string) error {
	topologies, err := cat.Topologies(ctx)
	if err != nil {
		return err
	}
	ofClass := map[segment.Epoch]bool{}
	for i := range topologies {
		ofClass[topologies[i].Epoch] = topologies[i].Class == class
	}
	rows, err := cat.Chains(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		// Slots go to their epoch's class, whatever is settled to the standard one.
		if rows[i].AbsorbedEnd > 1 && (ofClass[rows[i].Epoch] || class == segment.ClassStandard) {
			return fmt.Errorf("%w: %s is empty, but the catalog has rows in class %s; is this the right --store?", ErrNotMine, name, class)
		}
	}
	return nil
}

func readStamp(ctx context.Context, store *objstore.Store) (stamp segment.Stamp, found bool, err error) {
	stamp, _, found, err = Stamp(ctx, store)
	return stamp, found, err
}

// Stamp reads a bucket's stamp and, by the store's clock, when it was put. found is false
// if there is none.
func Stamp(ctx context.Context, store *objstore.Store) (stamp segment.Stamp, put time.Time, found bool, err error) {
	info, err := readRecord(ctx, store, segment.StampKey(), func(body []byte) (err error) {
		stamp, err = segment.DecodeStamp(body)
		return err
	})
	if errors.Is(err, objstore.ErrNotFound) {
		return segment.Stamp{}, time.Time{}, false, nil
	}
	if err != nil {
		return segment.Stamp{}, time.Time{}, false, fmt.Errorf("the stamp of %s: %w", store.Name(), err)
	}
	return stamp, info.Modified, true, nil
}

// readRecord reads a small record whole. Bytes that do not decode are read once more: a bit
// that flipped on the way is no verdict about the object.
func readRecord(ctx context.Context, store *objstore.Store, key string, decode func([]byte) error) (objstore.Info, error) {
	for look := 1; ; look++ {
		body, info, err := store.ReadAll(ctx, key, maxRecord)
		if err != nil {
			return info, err
		}
		if err = decode(body); err == nil || look == 2 {
			return info, err
		}
	}
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

// refuseUsed fails if any bucket holds a key already. Those of a doctor are no use: it looks
// at buckets before they are founded, and another start's may be at work.
func refuseUsed(ctx context.Context, classes objstore.Classes, why string) error {
	return eachBucket(classes, func(_ string, store *objstore.Store) error {
		for info, err := range store.List(ctx, "", "") {
			if err != nil {
				return fmt.Errorf("list %s: %w", store.Name(), err)
			}
			if strings.HasPrefix(info.Key, segment.DoctorPrefix) {
				continue
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

package orphan

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Finding is what stands under a condemned key.
type Finding string

// The findings. A read that did not complete is none of them.
const (
	Absent  Finding = "absent"  // no object: nothing to reclaim
	Partial Finding = "partial" // shorter than a trailer, or its tail is none
	Intact  Finding = "intact"  // a whole object that nothing names
)

// TailStore reads an object's end; *objstore.Store is one.
type TailStore interface {
	Head(ctx context.Context, key string) (objstore.Info, error)
	ReadSuffix(ctx context.Context, key string, n int64) ([]byte, objstore.Info, error)
}

// look says what stands under key. Seed 002's keyed limit-1 listing would match
// prefixes (K38); a HEAD cannot. A transient fault is an error: the key stays
// condemned and the marker comes back.
func look(ctx context.Context, store TailStore, key string) (Finding, error) {
	info, err := store.Head(ctx, key)
	switch {
	case errors.Is(err, objstore.ErrCorrupt):
		return Partial, nil // the store's own record of it does not validate
	case err != nil && !errors.Is(err, objstore.ErrNotFound):
		return "", fmt.Errorf("look at %s: %w", key, err)
	case err == nil && info.Size < segment.TrailerBytes:
		return Partial, nil
	}
	// A HEAD's 404 has no code: a missing bucket looks the same. The GET has one.
	err = readTail(ctx, store, key)
	switch {
	case err == nil:
		return Intact, nil
	case errors.Is(err, objstore.ErrNotFound):
		return Absent, nil
	case segment.IsStructural(err):
		return Partial, nil
	}
	return "", fmt.Errorf("look at %s: %w", key, err)
}

// readTail reads and decodes the footer, to tell an object from an upload that
// never completed.
func readTail(ctx context.Context, store TailStore, key string) error {
	_, err := segment.ReadFooter(func(n int64) ([]byte, int64, error) {
		tail, info, err := store.ReadSuffix(ctx, key, n)
		return tail, info.Size, err
	})
	return err
}

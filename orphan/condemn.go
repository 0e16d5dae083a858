package orphan

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Right is the right to delete one settled key. Only a condemn makes one, and
// only the holder of the marker at its version gets a condemn through. It does
// not age (package comment).
type Right struct {
	key   string
	class segment.Class // whose buckets hold it
}

// Key that may be deleted.
func (r Right) Key() string { return r.key }

// KeyCondemner is the reap's verb.
type KeyCondemner interface {
	CondemnKey(ctx context.Context, m catalog.MarkerRef) error
}

// IntentCondemner is the judge's verb.
type IntentCondemner interface {
	CondemnIntent(ctx context.Context, m catalog.MarkerRef) (catalog.Verdict, catalog.Intent, error)
}

// Condemn asks for the right to delete the key of a confirmed reap-check. Its
// catalog.ErrConflict means that the key is named, announced, or was armed since:
// no delete follows (K12).
func Condemn(ctx context.Context, cat KeyCondemner, m catalog.Marker) (Right, error) {
	if err := cat.CondemnKey(ctx, m.MarkerRef); err != nil {
		return Right{}, err
	}
	// Crash here: the key is condemned, its reap-check stands confirmed. The next
	// probe finds all dead (or the object gone), and this act is the same again.
	return Right{key: m.ID, class: m.Class}, nil
}

// CondemnIntent is step 1 of the judge. The Right is good only with the verdict
// catalog.Condemned.
func CondemnIntent(ctx context.Context, cat IntentCondemner, m catalog.MarkerRef) (Right, catalog.Verdict, catalog.Intent, error) {
	verdict, intent, err := cat.CondemnIntent(ctx, m)
	if err != nil || verdict != catalog.Condemned {
		return Right{}, verdict, intent, err
	}
	// Crash here: the intent stays condemned, nobody commits or announces it, its
	// marker stands. The next judge goes on from step 2.
	return Right{key: intent.Key, class: intent.Class}, verdict, intent, nil
}

package catalog

import (
	"context"

	"github.com/strandline/strandline/segment"
)

// LiveRef is a ref that names a key, with its stream's effective live_from.
type LiveRef struct {
	Ref
	LiveFrom segment.Pos
}

// Verdict of CondemnIntent.
type Verdict string

// What CondemnIntent found.
const (
	Condemned Verdict = "condemned" // deletes may go on
	Named     Verdict = "named"     // a ref or a reap-check owns the object: intent resolved
	Gone      Verdict = "gone"      // no such intent any more
	NotYet    Verdict = "not yet"   // younger than the orphan grace, or before its deadline: left due then
)

// Judge: probe, two-phase reap, orphan judge (03 §5, §6, §8). A settled key dies
// only through condemned and burned.
type Judge interface {
	// Liveness returns all refs that name the key, one query.
	Liveness(ctx context.Context, key string) ([]LiveRef, error)
	// Confirm turns a reap-check into a confirmed one, due one read grace from now.
	// ErrConflict if the marker moved on from its version.
	Confirm(ctx context.Context, m MarkerRef) error
	// CondemnKey condemns a settled key on behalf of a confirmed reap-check: no ref
	// names it, no standing intent, the marker stands confirmed at its version; else ErrConflict.
	CondemnKey(ctx context.Context, m MarkerRef) error
	// BurnKey marks condemned keys as deleted, arms their last look (orphan duty) in 24 h, and
	// resolves every marker that watched them (reap-check, gc, tail-fill).
	BurnKey(ctx context.Context, keys []string) error

	Intent(ctx context.Context, key string) (Intent, error)
	// CondemnIntent is step 1 of the judge; m is the orphan marker it took. A condemned or burned intent
	// stays what it is and answers Condemned.
	CondemnIntent(ctx context.Context, m MarkerRef) (Verdict, Intent, error)
	// BurnIntent records that uploads and object are gone: the key is burned, its
	// last look is due in 24 h.
	BurnIntent(ctx context.Context, key string) error
	// RemoveIntent forgets a burned key if it can no longer be derived (03 §8 step 4);
	// otherwise its look is postponed and removed is false.
	RemoveIntent(ctx context.Context, key string) (removed bool, err error)
}

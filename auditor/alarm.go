package auditor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/probe"
	"github.com/strandline/strandline/settle"
)

// maxAlarms bounds the keys that were told of; what is beyond is not told twice either,
// it is not told at all.
const maxAlarms = 10_000

// OutcomeLost counts the objects that were told of as lost.
const OutcomeLost = "lost objects told"

// alarm tells of an object that is missing although a ref names it, whichever duty met
// it: once per key, not once per pass. What it is told is only where it looks; the alarm
// rests on a look at the refs and then at every bucket. K29: gone below live_from is
// what a trim does, gone above it is a loss.
func (a *Auditor) alarm(ctx context.Context, d catalog.Duty, met error) {
	key := missingKey(met)
	if key == "" || ctx.Err() != nil || a.alarmed(key) {
		return
	}
	detail, err := a.lost(ctx, key)
	if err == nil && detail != "" {
		err = a.Catalog.Audit(ctx, "lost", key, detail)
	}
	if err != nil || detail == "" {
		if err != nil && ctx.Err() == nil {
			a.Logger.Warn("a missing object was not told of yet", "key", key, "error", err)
		}
		a.quiet(key) // the next pass that meets it looks anew
		return
	}
	a.Logger.Error("an object is lost", "key", key, "duty", string(d), "detail", detail)
	a.ledger.count(string(d), OutcomeLost, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told[key] = true
}

// maxLostLooks bounds one look at what was lost: some heads of objects, every few seconds.
const maxLostLooks = 32

// lookAtLost looks again at some of the objects that were told of as lost, others each time,
// and calls those off that came back, or whose rows were given up. What could not be looked
// at stays lost.
func (a *Auditor) lookAtLost(ctx context.Context) {
	keys := a.lostKeys()
	if len(keys) == 0 || a.whole(ctx) != nil {
		return
	}
	for _, key := range keys[:min(len(keys), maxLostLooks)] {
		if detail, err := a.lostOf(ctx, key); err == nil && detail == "" {
			a.Logger.Info("an object is lost no more", "key", key)
			a.quiet(key)
		}
	}
}

// lostKeys are those that were told of as lost, in no order.
func (a *Auditor) lostKeys() (keys []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, lost := range a.told {
		if lost {
			keys = append(keys, key)
		}
	}
	return keys
}

// tellRolledBack tells of a catalog that was rolled back, once until it is whole again. It is
// told in that very catalog: the newer copy that takes its place has no need of it.
func (a *Auditor) tellRolledBack(ctx context.Context, met error) {
	if !errors.Is(met, catalog.ErrRolledBack) {
		if met == nil {
			a.quiet(HoldRolledBack) // no key of an object
		}
		return
	}
	if a.alarmed(HoldRolledBack) {
		return
	}
	first, more, _ := strings.Cut(met.Error(), "\n") // a line a chain
	if more != "" {
		first += fmt.Sprintf(" (and %d more)", strings.Count(more, "\n")+1)
	}
	a.Logger.Error("deletes stop: the catalog was rolled back", "error", first)
	if err := a.Catalog.Audit(ctx, "rolled-back", "auditor", "no delete until it is mended: "+first); err != nil {
		a.Logger.Warn("that the catalog was rolled back could not be recorded", "error", err)
		a.quiet(HoldRolledBack)
	}
}

// alarms is alarm for the members that a batch left out.
func (a *Auditor) alarms(ctx context.Context, d catalog.Duty, failures []settle.Failure) {
	for _, f := range failures {
		a.alarm(ctx, d, f.Err)
	}
}

// missingKey is the key of the object that an error says is not there.
func missingKey(err error) string {
	var damage *probe.DamageError
	if errors.As(err, &damage) {
		return damage.Key
	}
	var store *objstore.Error
	if errors.Is(err, objstore.ErrNotFound) && errors.As(err, &store) {
		return store.Key
	}
	return ""
}

// whole: a catalog that was rolled back names what was rewritten since, and a bucket that is
// not ours has nothing of it. Neither loses rows.
func (a *Auditor) whole(ctx context.Context) error {
	if err := a.guard.belongs(ctx); err != nil {
		return err // heads of another's bucket say nothing
	}
	return a.gate.open(ctx)
}

// lost says which rows are lost with key; "" if none is.
func (a *Auditor) lost(ctx context.Context, key string) (string, error) {
	if err := a.whole(ctx); err != nil {
		return "", err
	}
	return a.lostOf(ctx, key)
}

// lostOf is lost, of a catalog and a bucket that were looked at.
func (a *Auditor) lostOf(ctx context.Context, key string) (string, error) {
	refs, err := a.Catalog.Liveness(ctx, key)
	if err != nil {
		return "", err
	}
	live := refs[:0]
	for _, r := range refs {
		if !r.LastPos().Less(r.LiveFrom) {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		return "", nil
	}
	set, err := a.Classes.Set(string(live[0].Class))
	if err != nil {
		return "", err
	}
	for _, store := range set {
		if _, err := store.Head(ctx, key); !errors.Is(err, objstore.ErrNotFound) {
			return "", err // it stands somewhere, or nobody knows
		}
	}
	r := &live[0]
	return fmt.Sprintf("no bucket of class %s has this object, but %d live refs name it, the first of stream %q, rows %v to %v: reads of them end in ErrLost. "+
		"Restore the object, or give the rows up: strandline accept-loss '%s' '%s'", r.Class, len(live), r.Stream, r.FirstPos(), r.LastPos(), key, r.Stream), nil
}

// alarmed says whether key was told of, and notes it.
func (a *Auditor) alarmed(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.told[key]; known || len(a.told) >= maxAlarms {
		return true
	}
	a.told[key] = false // a loss is looked at first
	return false
}

func (a *Auditor) quiet(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.told, key)
}

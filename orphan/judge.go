package orphan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Outcome of one run for one intent.
type Outcome string

// The outcomes. Only the first two delete.
const (
	Judged     Outcome = "judged"          // condemned, uploads and object gone, burned
	LookedAt   Outcome = "last look"       // of a burned key; its row is gone
	StillSeen  Outcome = "still derivable" // last look done; the row stays to keep the key burned
	IsNamed    Outcome = "named"           // a ref or a reap-check owns the object
	NoIntent   Outcome = "no intent"
	TooYoung   Outcome = "too young"   // left due when its age and deadline allow
	ArmedSince Outcome = "armed since" // announced again during the run; left due as that says
	WouldJudge Outcome = "would judge" // dry run
)

// Kept says whether the outcome leaves an object where it is.
func (o Outcome) Kept() bool {
	return o == IsNamed || o == TooYoung || o == ArmedSince || o == WouldJudge
}

// Catalog is what the judge needs of the catalog.
type Catalog interface {
	IntentCondemner
	IntentBurner
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Intent(ctx context.Context, key string) (catalog.Intent, error)
	Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error)
	RemoveIntent(ctx context.Context, key string) (bool, error)
	Resolve(ctx context.Context, m catalog.MarkerRef) error
	Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error
	Audit(ctx context.Context, kind, subject, detail string) error
}

// Judge is the judge of intents.
type Judge struct {
	cat     Catalog
	classes objstore.Classes
	del     *Deleter
}

// NewJudge wires a judge; del is the only hand that deletes.
func NewJudge(cat Catalog, classes objstore.Classes, del *Deleter) *Judge {
	return &Judge{cat: cat, classes: classes, del: del}
}

// Report is one run of the judge.
type Report struct {
	Outcome Outcome
	Finding Finding
	Aborts  Aborts
}

// RunOnce judges the intent of one due orphan marker that the caller holds. Every
// error leaves the intent as far as it got and the marker standing: running it
// again goes on from there. The caller postpones.
func (j *Judge) RunOnce(ctx context.Context, m catalog.Marker) (Report, error) {
	intent, err := j.cat.Intent(ctx, m.ID)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return Report{Outcome: NoIntent}, j.cat.Resolve(ctx, m.MarkerRef)
	case err != nil:
		return Report{}, fmt.Errorf("judge %s: %w", m.ID, err)
	case j.del.Dry():
		return j.dryRun(ctx, m, intent)
	case intent.State == catalog.IntentBurned:
		return j.lastLook(ctx, m, intent)
	}
	right, verdict, intent, err := CondemnIntent(ctx, j.cat, m.MarkerRef)
	if errors.Is(err, catalog.ErrConflict) {
		// A retry of its job was sooner: nothing is wrong, and it has an age of its own.
		return Report{Outcome: ArmedSince}, j.cat.Postpone(ctx, m.MarkerRef, 0, "") // ends our lease on it
	}
	if err != nil {
		return Report{}, fmt.Errorf("condemn %s: %w", m.ID, err)
	}
	switch verdict {
	case catalog.Condemned:
		return j.kill(ctx, right, intent)
	case catalog.Named:
		// Its job is past its deadline and the key is taken: what it uploads cannot
		// land any more. Crash here: the sweep finds the uploads.
		a, err := j.abortAll(ctx, m.ID, intent)
		return Report{Outcome: IsNamed, Aborts: a}, err
	case catalog.NotYet:
		return Report{Outcome: TooYoung}, nil
	case catalog.Gone:
		return Report{Outcome: NoIntent}, nil
	}
	return Report{}, fmt.Errorf("%w: verdict %q on %s: does a newer version run on this catalog?", catalog.ErrCorrupt, verdict, m.ID)
}

// kill is steps 2 to 4 for a condemned intent.
func (j *Judge) kill(ctx context.Context, right Right, intent catalog.Intent) (Report, error) {
	r := Report{Outcome: Judged}
	var dead Dead
	var err error
	if r.Aborts, err = j.abortAll(ctx, right.key, intent); err != nil {
		return r, err
	}
	// Crash here: no upload is left; the next run finds none and goes on.
	if r.Finding, dead, err = j.remove(ctx, right); err != nil {
		return r, err
	}
	if r.Finding != Absent {
		if err := j.cat.Audit(ctx, "orphan", right.key, string(r.Finding)+" object deleted: its job never committed it"); err != nil {
			return r, err
		}
	}
	return r, BurnIntent(ctx, j.cat, dead)
}

// abortAll is step 2 in every bucket of the class.
func (j *Judge) abortAll(ctx context.Context, key string, intent catalog.Intent) (Aborts, error) {
	set, err := j.classes.Set(string(intent.Class))
	if err != nil {
		return Aborts{}, err
	}
	var sum Aborts
	for _, store := range set {
		a, err := abortUploads(ctx, store, key, intent.Uploads)
		sum.add(a)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// remove is step 3: look, then delete what stands.
func (j *Judge) remove(ctx context.Context, right Right) (Finding, Dead, error) {
	set, err := j.classes.Set(string(right.class))
	if err != nil {
		return "", Dead{}, err
	}
	finding, err := look(ctx, set.First(), right.key)
	if err != nil {
		return "", Dead{}, err
	}
	if finding == Absent && len(set) == 1 {
		return finding, Dead{right.key}, nil
	}
	dead, failed := Delete(ctx, j.del, []Right{right})
	if len(failed) > 0 {
		return finding, Dead{}, fmt.Errorf("delete %s: %w", right.key, failed[0].Err)
	}
	return finding, dead[0], nil
}

// lastLook is the end of step 4: a request sent before the delete may have landed
// since. The row itself goes once the key can no longer be derived.
func (j *Judge) lastLook(ctx context.Context, m catalog.Marker, intent catalog.Intent) (Report, error) {
	now, err := j.cat.Now(ctx)
	if err != nil {
		return Report{}, err
	}
	if wait := lookDue(now, intent); wait > 0 {
		return Report{Outcome: TooYoung}, j.cat.Postpone(ctx, m.MarkerRef, wait, "")
	}
	r := Report{Outcome: LookedAt}
	if r.Aborts, err = j.abortAll(ctx, intent.Key, intent); err != nil {
		return r, err
	}
	if r.Finding, _, err = j.remove(ctx, burnedRight(intent)); err != nil {
		return r, err
	}
	removed, err := j.cat.RemoveIntent(ctx, intent.Key)
	if err == nil && !removed {
		r.Outcome = StillSeen
	}
	return r, err
}

// burnedRight is the right that a burned row is: no commit names its key again.
func burnedRight(intent catalog.Intent) Right { return Right{key: intent.Key, class: intent.Class} }

// dryRun tells what RunOnce would do; it changes nothing.
func (j *Judge) dryRun(ctx context.Context, m catalog.Marker, intent catalog.Intent) (Report, error) {
	now, err := j.cat.Now(ctx)
	if err != nil {
		return Report{}, err
	}
	settings, err := j.cat.Settings(ctx)
	if err != nil {
		return Report{}, err
	}
	refs, err := j.cat.Liveness(ctx, m.ID)
	if err != nil {
		return Report{}, err
	}
	outcome, reason := plan(now, settings, intent, len(refs))
	if outcome == WouldJudge {
		j.del.WouldGo(intent.Class, intent.Key, reason)
	} else {
		j.del.Stays(intent.Class, intent.Key, reason)
	}
	return Report{Outcome: outcome}, nil
}

// plan is the judge's decision on what was seen. It is pure; in a wet run the
// catalog takes the same decision within the condemning transaction.
func plan(now time.Time, s catalog.Settings, intent catalog.Intent, refs int) (Outcome, string) {
	grace := s.OrphanGrace.Deleting(now, catalog.DefaultOrphanGrace)
	switch {
	case intent.State == catalog.IntentBurned && lookDue(now, intent) > 0:
		return TooYoung, "burned; its last look is not due"
	case intent.State != catalog.IntentStanding:
		return WouldJudge, "its intent is " + string(intent.State)
	case refs > 0:
		return IsNamed, "a ref names it"
	case now.Before(intent.Announced.Add(grace)):
		return TooYoung, "its intent is younger than the orphan grace"
	case now.Before(intent.Deadline):
		return TooYoung, "its job's deadline has not passed"
	}
	return WouldJudge, "nothing names it and its job is over"
}

// settled says whether key is one that this package may let die.
func settled(key string) bool {
	k, err := segment.ParseKey(key)
	return err == nil && (k.Kind == segment.KeyStream || k.Kind == segment.KeyPack)
}

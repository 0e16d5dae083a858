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

// SweepCatalog is what the sweep needs of the catalog.
type SweepCatalog interface {
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Chains(ctx context.Context) ([]catalog.ChainRow, error)
	Intent(ctx context.Context, key string) (catalog.Intent, error)
	Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error)
	Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error)
	Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error
}

// Sweeper looks for what nothing watches. With Reclaim, unwatched settled objects
// get a reap-check and die by the two phases like any other; without, they are
// reported. Keys of unknown shape are reported and never touched.
type Sweeper struct {
	cat     SweepCatalog
	classes objstore.Classes
	del     *Deleter
	reclaim bool
}

// NewSweeper wires a sweeper; del only says whether this is a dry run.
func NewSweeper(cat SweepCatalog, classes objstore.Classes, del *Deleter, reclaim bool) *Sweeper {
	return &Sweeper{cat: cat, classes: classes, del: del, reclaim: reclaim}
}

// Found is a key of which the sweep has something to say.
type Found struct {
	Store  string
	Key    string
	Size   int64
	Reason string
}

// maxFound bounds the keys that a report names; the counts go on.
const maxFound = 1000

// SweepReport is what one sweep saw.
type SweepReport struct {
	Objects   int // listed
	Uploads   int // unfinished, listed
	Aborts    Aborts
	Skipped   int     // uploads left: watched or young
	Unwatched int     // settled keys, records and slots of chains that nobody knows
	Unknown   int     // keys of unknown shape
	Armed     int     // reap-checks (Reclaim)
	Found     []Found // of Unwatched and Unknown, the first 1,000
}

func (r *SweepReport) found(f Found) {
	if len(r.Found) < maxFound {
		r.Found = append(r.Found, f)
	}
}

// RunOnce sweeps every bucket once. It looks first and acts after: any error in
// listing or in reading what watches ends it without one abort (K16).
func (s *Sweeper) RunOnce(ctx context.Context) (SweepReport, error) {
	var r SweepReport
	now, err := s.cat.Now(ctx)
	if err != nil {
		return r, err
	}
	settings, err := s.cat.Settings(ctx)
	if err != nil {
		return r, err
	}
	old := now.Add(-settings.OrphanGrace.Deleting(now, catalog.DefaultOrphanGrace))
	chains, err := s.chains(ctx)
	if err != nil {
		return r, err
	}
	seen := view{now: now, old: old, chains: chains}
	var aborts []strayUpload
	var orphans []strayKey
	for class, set := range s.classes {
		for _, store := range set {
			a, err := s.seeUploads(ctx, store, seen, &r)
			if err != nil {
				return r, err
			}
			o, err := s.seeKeys(ctx, store, segment.Class(class), seen, &r)
			if err != nil {
				return r, err
			}
			aborts, orphans = append(aborts, a...), append(orphans, o...)
		}
	}
	return r, s.act(ctx, aborts, orphans, &r)
}

// view is what a sweep holds the buckets against. The chains are read before the
// buckets are listed.
type view struct {
	now, old time.Time // what is younger than old is not judged
	chains   map[segment.Chain]catalog.ChainRow
}

// publishing says whether a living owner may be at work on the slot at k.
func (v view) publishing(k segment.Key) bool {
	row, ok := v.chains[k.Chain]
	return ok && k.Kind == segment.KeySlot && k.ID >= row.AbsorbedEnd && v.now.Before(row.LeaseEnd)
}

type strayUpload struct {
	store *objstore.Store
	objstore.Upload
}

type strayKey struct {
	key   string
	class segment.Class
}

// seeUploads lists without a prefix and filters: MinIO lists nothing for a partial one.
func (s *Sweeper) seeUploads(ctx context.Context, store *objstore.Store, seen view, r *SweepReport) ([]strayUpload, error) {
	ups, err := store.ListUploads(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("sweep uploads of %s: %w", store.Name(), err)
	}
	var out []strayUpload
	for _, u := range ups {
		r.Uploads++
		k, err := segment.ParseKey(u.Key)
		if err != nil {
			r.Unknown++
			r.found(Found{store.Name(), u.Key, 0, "an unfinished upload to a key of unknown shape"})
			continue
		}
		_, err = s.cat.Intent(ctx, u.Key)
		switch {
		case err == nil || u.Initiated.After(seen.old) || seen.publishing(k):
			r.Skipped++ // the judge's, too young to tell, or its owner's
		case errors.Is(err, catalog.ErrNotFound):
			out = append(out, strayUpload{store, u})
		default:
			return nil, fmt.Errorf("sweep upload to %s: %w", u.Key, err)
		}
	}
	return out, nil
}

// act aborts and arms what the look found. One failure holds up no other.
func (s *Sweeper) act(ctx context.Context, aborts []strayUpload, orphans []strayKey, r *SweepReport) error {
	var errs []error
	for _, u := range aborts {
		if s.del.Dry() {
			s.del.WouldGo("", u.Key, "an unfinished upload older than the orphan grace that nothing names")
			continue
		}
		errs = append(errs, abortOne(ctx, u.store, u.Key, u.ID, &r.Aborts))
	}
	for _, o := range orphans {
		if s.del.Dry() || !s.reclaim {
			s.del.Stays(o.class, o.key, "nothing watches it: pass --sweep to reclaim it")
			continue
		}
		// Crash here: the rest is found by the next sweep.
		if err := s.cat.Arm(ctx, catalog.DutyReapCheck, o.key, o.class, 0); err != nil {
			errs = append(errs, fmt.Errorf("arm %s: %w", o.key, err))
			continue
		}
		r.Armed++
	}
	return errors.Join(errs...)
}

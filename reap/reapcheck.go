package reap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/probe"
	"github.com/strandline/strandline/segment"
)

// Outcome of one reap-check.
type Outcome string

// The outcomes. Only Reaped means that this run deleted the object.
const (
	Stands     Outcome = "stand"       // live; resolved
	ArmedGC    Outcome = "gc-worthy"   // live with much dead; gc owes it a rewrite; resolved
	Confirmed  Outcome = "confirmed"   // all dead; looked at again one grace from now
	Reaped     Outcome = "reaped"      // deleted and burned
	GoneBefore Outcome = "gone"        // an earlier delete of ours; burned and resolved
	GoneAlone  Outcome = "unexplained" // gone, and no delete of ours explains it; recorded, resolved
	ArmedSince Outcome = "armed since" // an arm during the run; stays due
	Refused    Outcome = "refused"     // the condemn found it named or announced; looked at again
	Dropped    Outcome = "dropped"     // named between condemn and delete: recorded, kept (K4)
	WouldReap  Outcome = "would reap"  // dry run
	Kept       Outcome = "kept"        // dry run, with its reason
)

// Catalog is what the two-phase reap needs of the catalog.
type Catalog interface {
	probe.Catalog
	orphan.KeyCondemner
	orphan.KeyBurner
	Intent(ctx context.Context, key string) (catalog.Intent, error)
	Confirm(ctx context.Context, m catalog.MarkerRef) error
	Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error
	Resolve(ctx context.Context, m catalog.MarkerRef) error
	Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error
	Audit(ctx context.Context, kind, subject, detail string) error
}

// Result is what became of one marker. With an Err, the marker stands and the
// caller postpones it.
type Result struct {
	Marker  catalog.Marker
	Verdict probe.Verdict
	Tally   probe.Tally
	Outcome Outcome
	Err     error
}

const (
	// probesAhead bounds the probes in flight of one pass.
	probesAhead = 16
	// actsAtOnce are the catalog's transactions in flight of one pass.
	actsAtOnce = 64
)

// Reaper runs reap-checks.
type Reaper struct {
	cat     Catalog
	classes objstore.Classes
	del     *orphan.Deleter
	gcLeast int64 // dead bytes that make an object gc-worthy
}

// New wires a reaper; del is the only hand that deletes, and gcLeast dead bytes (and half
// of the object) arm a gc.
func New(cat Catalog, classes objstore.Classes, del *orphan.Deleter, gcLeast int64) *Reaper {
	return &Reaper{cat: cat, classes: classes, del: del, gcLeast: gcLeast}
}

// RunOnce takes due reap-checks that the caller holds through one pass. One
// object's fault fails its own marker only (K11); a fault in reading refs ends
// the pass without one delete (K16), and is then every spooled marker's error.
func (r *Reaper) RunOnce(ctx context.Context, markers []catalog.Marker) []Result {
	results := r.observe(ctx, markers)
	if err := refsFault(results); err != nil {
		for i := range results {
			if results[i].Err == nil {
				results[i].Err = fmt.Errorf("pass ended without a delete: %w", err)
			}
		}
		return results
	}
	var spool spool
	r.actAll(ctx, results, &spool)
	r.flush(ctx, &spool)
	return results
}

// actAll acts on every marker whose probe told a verdict. Side by side, so that a catalog
// which commits in groups syncs once for many of them: one by one, a pass would wait for
// the disk as often as it has markers.
func (r *Reaper) actAll(ctx context.Context, results []Result, spool *spool) {
	var g errgroup.Group
	g.SetLimit(actsAtOnce)
	for i := range results {
		if res := &results[i]; res.Err == nil {
			g.Go(func() error {
				r.act(ctx, res, spool)
				return nil
			})
		}
	}
	_ = g.Wait() // the functions return nil: their errors are in the results
}

// observe probes every object, before anything is done to any.
func (r *Reaper) observe(ctx context.Context, markers []catalog.Marker) []Result {
	results := make([]Result, len(markers))
	var g errgroup.Group
	g.SetLimit(probesAhead)
	for i, m := range markers {
		g.Go(func() error {
			results[i] = r.look(ctx, m)
			return nil
		})
	}
	_ = g.Wait() // the functions return nil: their errors are in the results
	return results
}

// look probes one object.
func (r *Reaper) look(ctx context.Context, m catalog.Marker) Result {
	res := Result{Marker: m}
	set, err := r.classes.Set(string(m.Class))
	if err != nil {
		res.Err = err
		return res
	}
	res.Verdict, res.Tally, res.Err = probe.Probe(ctx, set.First(), r.cat, probe.Object{Key: m.ID, Class: m.Class}, r.gcLeast)
	return res
}

// refsFault is the first fault in reading or understanding refs, if there is one.
func refsFault(results []Result) error {
	for i := range results {
		var fault *probe.RefsError
		if errors.As(results[i].Err, &fault) {
			return fault
		}
	}
	return nil
}

// act executes the plan for one marker; deletes only spool.
func (r *Reaper) act(ctx context.Context, res *Result, sp *spool) {
	a, reason := planReap(res.Verdict, res.Marker.Confirmed)
	if r.del.Dry() {
		r.tell(res, a, reason)
		return
	}
	m := res.Marker
	switch a {
	case doResolve:
		res.Outcome, res.Err = Stands, r.cat.Resolve(ctx, m.MarkerRef)
	case doGC:
		res.Outcome, res.Err = ArmedGC, r.armGC(ctx, m)
	case doConfirm:
		res.Outcome, res.Err = r.confirm(ctx, m)
	case doBury:
		res.Outcome, res.Err = r.bury(ctx, m)
	case doCondemn:
		r.condemn(ctx, res, sp)
	}
}

// armGC arms before it resolves. Crash in between: the reap-check runs again, and
// the second arm collapses onto the first.
func (r *Reaper) armGC(ctx context.Context, m catalog.Marker) error {
	if err := r.cat.Arm(ctx, catalog.DutyGC, m.ID, m.Class, 0); err != nil {
		return err
	}
	return r.cat.Resolve(ctx, m.MarkerRef)
}

// tell is the dry run of act.
func (r *Reaper) tell(res *Result, a action, reason string) {
	if a == doCondemn {
		res.Outcome = WouldReap
		r.del.WouldGo(res.Marker.Class, res.Marker.ID, reason)
		return
	}
	res.Outcome = Kept
	r.del.Stays(res.Marker.Class, res.Marker.ID, reason)
}

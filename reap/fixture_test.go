package reap_test

import (
	"context"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/probe"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

func newTier(t *testing.T) *audittest.Tier { return audittest.New(t, memstore.Options{}) }

// rooms are the duties of this package over one store and catalog.
type rooms struct {
	*audittest.Tier
	cat     catalog.Catalog
	store   *objstore.Store
	reaper  *reap.Reaper
	trimmer *reap.Trimmer
	walker  *reap.Walker
	reclaim *reap.Reclaimer
}

func roomsOn(x *audittest.Tier, store *objstore.Store, cat catalog.Catalog) rooms {
	return gatedRooms(x, store, cat, nil)
}

func gatedRooms(x *audittest.Tier, store *objstore.Store, cat catalog.Catalog, gate catalog.Gate) rooms {
	classes := objstore.Classes{string(segment.ClassStandard): {store}}
	del := orphan.NewDeleter(classes).Asking(gate, nil)
	return rooms{
		Tier: x, cat: cat, store: store,
		reaper:  reap.New(cat, classes, del, probe.DefaultGCLeast),
		trimmer: reap.NewTrimmer(cat, classes, del, 1<<30),
		walker:  reap.NewWalker(cat, classes, del),
		reclaim: reap.NewReclaimer(cat, classes, del),
	}
}

func plain(x *audittest.Tier) rooms { return roomsOn(x, x.Store, x.DB) }

func faulty(x *audittest.Tier, f *audittest.Faults) rooms {
	return roomsOn(x, f.Store(x), f.Catalog(x))
}

// take leases due markers through the rooms' own catalog; a fault gives none.
func (r rooms) take(d catalog.Duty) []catalog.Marker {
	ms, err := r.cat.TakeDue(r.Ctx(), catalog.Take{Duties: []catalog.Duty{d}, Owner: "test", Lease: 1, Limit: 1000})
	if err != nil {
		return nil
	}
	return ms
}

// reapOnce is one pass over what is due.
func (r rooms) reapOnce() []reap.Result {
	return r.reaper.RunOnce(r.Ctx(), r.take(catalog.DutyReapCheck))
}

// trimOnce is one check of each due chain.
func (r rooms) trimOnce() (rep reap.TrimReport, err error) {
	for _, m := range r.take(catalog.DutyTrimCheck) {
		rep, err = r.trimmer.RunOnce(r.Ctx(), m)
	}
	return rep, err
}

func (r rooms) walkOnce() []reap.WalkResult {
	return r.walker.RunOnce(r.Ctx(), r.take(catalog.DutyTeardown))
}

// outcome is the one result's; it fails the test on an error.
func (r rooms) outcome() reap.Outcome {
	r.T.Helper()
	results := r.reapOnce()
	if len(results) != 1 {
		r.T.Fatalf("%d reap-checks were due, want 1", len(results))
	}
	r.Must(results[0].Err)
	return results[0].Outcome
}

// settled makes a tier whose only objects are a stream object of each of names;
// its slots are gone.
func settled(t *testing.T, names ...string) *audittest.Tier {
	t.Helper()
	x := newTier(t)
	var writes []audittest.Write
	for _, n := range names {
		writes = append(writes, audittest.Write{Stream: n, Rows: 20, Size: 400})
	}
	x.Slot(writes...)
	x.RunDry()
	if got := x.Settled(); len(got) != len(names) || len(x.Slots()) != 0 {
		t.Fatalf("settled %v, slots %v, want %d settled and no slot", got, x.Slots(), len(names))
	}
	return x
}

// dead makes all objects of these streams dead, their reap-checks armed and due
// when a grace has passed.
func dead(x *audittest.Tier, names ...string) rooms {
	x.T.Helper()
	for _, n := range names {
		_, err := x.DB.DeleteStream(x.Ctx(), n)
		x.Must(err)
	}
	r := plain(x)
	for _, res := range r.walkOnce() {
		x.Must(res.Err)
	}
	return r
}

// confirmed takes dead objects through the first phase, to where the second is due.
func confirmed(x *audittest.Tier, names ...string) rooms {
	x.T.Helper()
	r := dead(x, names...)
	x.Clock.Advance(audittest.ReadGrace)
	for _, res := range r.reapOnce() {
		x.Must(res.Err)
		if res.Outcome != reap.Confirmed {
			x.T.Fatalf("first look: %s, want confirmed", res.Outcome)
		}
	}
	x.Clock.Advance(audittest.ReadGrace)
	return r
}

func newTierOn(t *testing.T, opt memstore.Options) *audittest.Tier { return audittest.New(t, opt) }

// namingCatalog says that a ref names the first condemned slot.
type namingCatalog struct{ catalog.Catalog }

func (n *namingCatalog) DueSlots(ctx context.Context, c segment.Chain, limit int) (catalog.TrimPlan, error) {
	p, err := n.Catalog.DueSlots(ctx, c, limit)
	p.Named = append(p.Named, catalog.Ref{Key: segment.SlotKey(c, p.Chain.Trimmed), Stream: "s"})
	return p, err
}

func deleter(x *audittest.Tier) *orphan.Deleter { return orphan.NewDeleter(x.Classes) }

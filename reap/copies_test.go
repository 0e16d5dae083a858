package reap_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// pairCatalog says that the tier's epoch was made with two buckets.
type pairCatalog struct{ catalog.Catalog }

func (c pairCatalog) Topologies(ctx context.Context) ([]catalog.Topology, error) {
	all, err := c.Catalog.Topologies(ctx)
	for i := range all {
		all[i].Buckets = []string{"mem", "second"}
	}
	return all, err
}

// pair is a tier whose slots have copies in a second bucket, which refuses to delete one.
type pair struct {
	*audittest.Tier
	second  *memstore.Driver
	keeps   atomic.Pointer[string] // the key that is not deleted there
	trimmer *reap.Trimmer
}

func newPair(t *testing.T, slots int) *pair {
	t.Helper()
	p := &pair{Tier: newTier(t)}
	p.second = memstore.New(memstore.Options{Clock: p.Clock.Now, Shuffle: 3, DirectoryPrefix: true})
	store := p.Open(faultstore.Wrap(p.second, func(faultstore.Call) faultstore.Fault {
		key := p.keeps.Load()
		if key == nil {
			return faultstore.Fault{}
		}
		return faultstore.Fault{Kind: faultstore.DeleteFails, Keys: func(k string) bool { return k == *key }}
	}))
	classes := objstore.Classes{string(segment.ClassStandard): {p.Store, store}}
	p.trimmer = reap.NewTrimmer(pairCatalog{p.DB}, classes, orphan.NewDeleter(classes), 1<<30)
	for range slots {
		key := segment.SlotKey(p.Chain, p.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40}))
		_, err := store.PutOnce(t.Context(), key, p.Mem.Dump()[key], nil)
		p.Must(err)
	}
	return p
}

func (p *pair) key(id segment.ID) string { return segment.SlotKey(p.Chain, id) }

// check is one trim-check of the chain.
func (p *pair) check() (reap.TrimReport, error) {
	p.T.Helper()
	ms := p.Take(catalog.DutyTrimCheck)
	if len(ms) != 1 {
		p.T.Fatalf("%d trim-checks are due", len(ms))
	}
	return p.trimmer.RunOnce(p.T.Context(), ms[0])
}

// TestDeleteThatFailsInTheSecondBucket is kept and repeated: the cursor stays at the slot
// until it is gone everywhere, and the slots after it are deleted again.
func TestDeleteThatFailsInTheSecondBucket(t *testing.T) {
	p := newPair(t, 3)
	p.SettleAll()
	p.Clock.Advance(audittest.ReadGrace)
	rep, err := p.check()
	p.Must(err)
	if rep.Condemned != 3 {
		t.Fatalf("%+v", rep)
	}
	stuck := p.key(2)
	p.keeps.Store(&stuck)
	p.Clock.Advance(audittest.ReadGrace)
	rep, err = p.check()
	if !errors.Is(err, objstore.ErrUnavailable) || rep.Deleted != 1 {
		t.Fatalf("%+v, %v", rep, err)
	}
	if row, err := p.DB.Chain(t.Context(), p.Chain); err != nil || row.Trimmed != 2 {
		t.Fatalf("trimmed %d, %v: want it to stop at the slot that stands", row.Trimmed, err)
	}
	if got := p.second.Keys(); !slices.Equal(got, []string{stuck}) {
		t.Fatalf("the second bucket holds %v", got)
	}
	p.keeps.Store(nil)
	rep, err = p.trimmer.RunOnce(t.Context(), p.Markers(catalog.DutyTrimCheck)[0])
	p.Must(err)
	if rep.Deleted != 2 || len(p.second.Keys()) != 0 || len(p.Slots()) != 0 {
		t.Fatalf("%+v: the first holds %v, the second %v", rep, p.Slots(), p.second.Keys())
	}
	p.RunDry()
	p.MustBeClean()
}

// TestStrayCopies: a copy that landed after its slot was trimmed, in the second bucket
// only, goes a grace later, as a stray of the first does.
func TestStrayCopies(t *testing.T) {
	p := newPair(t, 2)
	late := p.Mem.Dump()[p.key(1)]
	p.SettleAll()
	for range 2 {
		p.Clock.Advance(audittest.ReadGrace)
		_, err := p.check()
		p.Must(err)
	}
	if len(p.second.Keys()) != 0 {
		t.Fatalf("%v stand", p.second.Keys())
	}
	_, err := p.Open(p.second).PutOnce(t.Context(), p.key(1), late, nil)
	p.Must(err)
	rep, err := p.trimmer.Strays(t.Context(), p.Chain)
	p.Must(err)
	if rep.Young != 1 || rep.Deleted != 0 {
		t.Fatalf("%+v, want one young stray", rep)
	}
	p.Clock.Advance(audittest.ReadGrace)
	rep, err = p.trimmer.Strays(t.Context(), p.Chain)
	p.Must(err)
	if rep.Deleted != 1 || len(p.second.Keys()) != 0 {
		t.Fatalf("%+v, %v stand", rep, p.second.Keys())
	}
	p.RunDry()
	p.MustBeClean()
}

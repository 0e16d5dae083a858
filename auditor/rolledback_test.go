package auditor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// rollBack has the tier's catalog forget its second slot, which its head knows. mend brings the
// newest copy back.
func rollBack(x *audittest.Tier) (mend func()) {
	x.T.Helper()
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.RunDry()
	db := x.DB.(*memory.Catalog)
	old := db.Snapshot()
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.SettleAll()
	x.Clock.Advance(audittest.ReadGrace)
	once(x, x.Auditor("a", auditor.Config{})) // condemned, and the head says so
	newest := db.Snapshot()
	db.Restore(old)
	return func() {
		db.Restore(newest)
		x.RunDry()
		x.MustBeClean()
	}
}

// TestRolledBackChainIsNotAbsorbed: what stands in the bucket brings no row up to its head again,
// which is how the tier knows that the catalog lost commits.
func TestRolledBackChainIsNotAbsorbed(t *testing.T) {
	x := newTier(t)
	defer rollBack(x)()
	x.Clock.Advance(2 * audittest.OwnerLease)
	_, err := x.Auditor("b", auditor.Config{}).Once(x.Ctx(), auditor.OnceOptions{})
	if !errors.Is(err, catalog.ErrRolledBack) {
		t.Errorf("a pass over a chain that was rolled back: %v", err)
	}
	row, err := x.DB.Chain(x.Ctx(), x.Chain)
	x.Must(err)
	if row.AbsorbedEnd != 2 {
		t.Errorf("absorbed up to %d", row.AbsorbedEnd)
	}
	if told := x.Audited("rolled-back"); len(told) != 1 {
		t.Errorf("told %d times: %+v", len(told), told)
	}
}

// TestSweepTellsOfARollback: the daily look tells, where nothing else is due that deletes.
func TestSweepTellsOfARollback(t *testing.T) {
	x := newTier(t)
	defer rollBack(x)()
	a := x.Auditor("b", auditor.Config{Sweep: true})
	_, err := a.Once(x.Ctx(), auditor.OnceOptions{})
	if !errors.Is(err, catalog.ErrRolledBack) {
		t.Errorf("a sweep under a catalog that was rolled back: %v", err)
	}
	if told := x.Audited("rolled-back"); len(told) != 1 {
		t.Errorf("told %d times: %+v", len(told), told)
	}
}

// TestHeadsStandStill: where one chain's row is behind its head, no other chain's head is written
// either: the copy of the catalog that is to come back has not got that far.
func TestHeadsStandStill(t *testing.T) {
	x := newTier(t)
	other := segment.Chain{Epoch: 2}
	_, err := x.DB.EnsureTopology(x.Ctx(), catalog.Topology{
		Epoch: 2, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	x.Must(err)
	_, err = x.DB.AcquireChain(x.Ctx(), catalog.Acquire{Chain: other, Owner: segment.UUID{7}, Address: "other", Lease: audittest.OwnerLease})
	x.Must(err)
	ahead, err := segment.EncodeHead(&segment.Head{Epoch: 2, Term: 9, AbsorbedEnd: 1, NextSeq: 1, Condemned: 1, Trimmed: 1, Nonce: "n"})
	x.Must(err)
	info, err := x.Store.PutIfMatch(x.Ctx(), segment.HeadKey(other), ahead, "")
	x.Must(err)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.SettleAll()
	x.Clock.Advance(audittest.ReadGrace)
	_, err = x.Auditor("a", auditor.Config{}).Once(x.Ctx(), auditor.OnceOptions{})
	if !errors.Is(err, catalog.ErrRolledBack) {
		t.Errorf("a trim-check beside a chain that was rolled back: %v", err)
	}
	if _, err := x.Store.Head(x.Ctx(), segment.HeadKey(x.Chain)); err == nil {
		t.Error("the head of the chain that is as its head went on")
	}
	now, err := segment.EncodeHead(&segment.Head{Epoch: 2, Term: 1, AbsorbedEnd: 1, NextSeq: 1, Condemned: 1, Trimmed: 1, Nonce: "n"})
	x.Must(err)
	_, err = x.Store.PutIfMatch(x.Ctx(), segment.HeadKey(other), now, info.ETag) // the newest copy is back
	x.Must(err)
	x.RunDry()
}

// TestRolledBackChainIsNotRetained: nor does a watermark that is raised again bring a row up to
// its head.
func TestRolledBackChainIsNotRetained(t *testing.T) {
	x := newTier(t)
	x.Policy(tenRows)
	slots(x, 4)
	x.Release()
	db := x.DB.(*memory.Catalog)
	old := db.Snapshot()
	once(x, x.Auditor("a", auditor.Config{})) // the watermark is raised, and the head says so
	newest := db.Snapshot()
	db.Restore(old)
	_, err := x.Auditor("b", auditor.Config{}).Once(x.Ctx(), auditor.OnceOptions{})
	if w := watermark(x); w != 0 || !errors.Is(err, catalog.ErrRolledBack) {
		t.Errorf("the watermark is %d: %v", w, err)
	}
	db.Restore(newest)
	x.RunDry()
	x.MustBeClean()
}

// TestHeadsOfABucketThatIsAway: what the first head of a class is waited for in vain, the others
// of it are not: absorbs of all classes wait for the look.
func TestHeadsOfABucketThatIsAway(t *testing.T) {
	x := newTier(t)
	_, err := x.DB.EnsureTopology(x.Ctx(), catalog.Topology{
		Epoch: 2, Shards: 3, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	x.Must(err)
	for s := range segment.Shard(3) {
		_, err := x.DB.AcquireChain(x.Ctx(), catalog.Acquire{
			Chain: segment.Chain{Epoch: 2, Shard: s}, Owner: segment.UUID{7}, Address: "other", Lease: audittest.OwnerLease,
		})
		x.Must(err)
	}
	asked := map[string]bool{}
	d := faultstore.Wrap(x.Mem, func(c faultstore.Call) faultstore.Fault {
		if c.Op == objstore.OpGet && strings.HasPrefix(c.Key, "rw/") {
			asked[c.Key] = true
			return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrUnavailable}
		}
		return faultstore.Fault{}
	})
	x.Must(x.DB.Arm(x.Ctx(), catalog.DutyReapCheck, segment.StreamKey("s", 1, 1, 0), segment.ClassStandard, 0))
	_, err = x.AuditorOn("a", auditor.Config{Duties: []string{"reap-check"}}, x.Open(d), x.DB).Once(x.Ctx(), auditor.OnceOptions{})
	if !errors.Is(err, objstore.ErrUnavailable) || len(asked) != 1 {
		t.Errorf("%d heads were asked for, %v", len(asked), err)
	}
}

// failOver has an auditor look at the heads a second before a trim-check is due on the tier's chain, and
// takes the catalog back by restore before it is, behind the head of another chain. It
// returns what the auditor then says, within the time for which its look is believed.
func failOver(x *audittest.Tier, restore func(db *memory.Catalog, old *memory.Snapshot)) error {
	x.T.Helper()
	other := segment.Chain{Epoch: 2}
	_, err := x.DB.EnsureTopology(x.Ctx(), catalog.Topology{
		Epoch: 2, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	x.Must(err)
	acquire := catalog.Acquire{Chain: other, Owner: segment.UUID{7}, Address: "other", Lease: audittest.OwnerLease}
	_, err = x.DB.AcquireChain(x.Ctx(), acquire)
	x.Must(err)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.SettleAll()
	db := x.DB.(*memory.Catalog)
	old := db.Snapshot()
	acquire.Expect, acquire.Resume = 1, true
	_, err = x.DB.AcquireChain(x.Ctx(), acquire)
	x.Must(err)
	_, err = reap.WriteHead(x.Ctx(), x.Store, x.DB, other)
	x.Must(err)
	x.Clock.Advance(audittest.ReadGrace - time.Second)
	x.Must(x.DB.Arm(x.Ctx(), catalog.DutyReapCheck, segment.StreamKey("s", 1, 1, 9), segment.ClassStandard, 0))
	a := x.Auditor("a", auditor.Config{Duties: []string{"reap-check", "trim-check"}})
	once(x, a) // it looks, and all is well
	if _, err := x.Store.Head(x.Ctx(), segment.HeadKey(x.Chain)); err == nil {
		x.T.Fatal("the trim-check was due too soon")
	}
	newest := db.Snapshot()
	restore(db, old)
	x.Clock.Advance(2 * time.Second)
	_, err = a.Once(x.Ctx(), auditor.OnceOptions{})
	db.Restore(newest)
	return err
}

// TestLookEndsWithTheSession: what was seen of the heads before a fail-over lets nothing
// through behind it, however short the time between.
func TestLookEndsWithTheSession(t *testing.T) {
	x := newTier(t)
	err := failOver(x, (*memory.Catalog).Restore)
	if !errors.Is(err, catalog.ErrRolledBack) {
		t.Errorf("a trim-check behind a fail-over that lost commits: %v", err)
	}
	if _, err := x.Store.Head(x.Ctx(), segment.HeadKey(x.Chain)); err == nil {
		t.Error("the head of the chain that is as its head went on, by a look of before")
	}
	x.RunDry()
	x.MustBeClean()
}

// TestLookThatOutlivesItsCatalog is what is left open: a catalog that goes back, and does not
// say so. The look is believed for its time, and the newest copy is behind a head then.
func TestLookThatOutlivesItsCatalog(t *testing.T) {
	x := newTier(t)
	x.Damaged = true
	if err := failOver(x, (*memory.Catalog).RestoreUnseen); err != nil {
		t.Errorf("a trim-check by a look that is believed: %v", err)
	}
	if err := reap.CheckHead(x.Ctx(), x.Store, x.DB, x.Chain); !errors.Is(err, catalog.ErrRolledBack) {
		t.Errorf("the newest copy against the head that went on: %v", err)
	}
}

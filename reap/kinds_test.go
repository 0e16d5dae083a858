package reap_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// allKinds is a tier with a stream "s" of refs of every kind, in this order: a stream
// object, a pack, a lost span, another pack that holds two slots, slots; "t" lies beside it in each.
func allKinds(t *testing.T) *audittest.Tier {
	x := audittest.New(t, memstore.Options{})
	slot := func(rows int) {
		x.Slot(audittest.Write{Stream: "s", Rows: rows, Size: 400}, audittest.Write{Stream: "t", Rows: 1, Size: 40})
	}
	slot(20)
	x.SettleAll()
	slot(3)
	x.SettleAll()
	slot(5)
	x.SettleAll()
	lost, err := x.DB.AcceptLoss(x.Ctx(), plan(x, "s").Refs[2].Key, "s")
	x.Must(err)
	slot(2)
	slot(3)
	x.SettleAll()
	slot(4)
	slot(4)
	kinds := map[catalog.RefKind]int{}
	for _, r := range plan(x, "s").Refs {
		kinds[r.Kind]++
	}
	if len(lost) != 1 || kinds[catalog.RefStream] != 1 || kinds[catalog.RefPack] < 2 || kinds[catalog.RefLost] != 1 || kinds[catalog.RefSlot] != 2 {
		t.Fatalf("lost %v, kinds %v", lost, kinds)
	}
	return x
}

// unwatched says which object of a ref that is dead, or with cut also of one that live_from
// cuts, has no watcher.
func unwatched(x *audittest.Tier, cut bool) error {
	refs, err := x.DB.RefsByKey(x.Ctx(), nil, 1000)
	if err != nil {
		return err
	}
	for i := range refs {
		r := &refs[i]
		if !r.Dead(r.LiveFrom) && (!cut || !r.FirstPos().Less(r.LiveFrom)) {
			continue
		}
		duty, id := catalog.DutyReapCheck, r.Key
		switch r.Kind {
		case catalog.RefLost:
			continue // has no object
		case catalog.RefSlot:
			k, err := segment.ParseKey(r.Key)
			if err != nil {
				return err
			}
			duty, id = catalog.DutySettle, catalog.SettleID(r.Chain, k.ID)
		}
		if _, err := x.DB.Marker(x.Ctx(), duty, id); err != nil {
			return fmt.Errorf("%s of %s: %w", duty, r.Key, err)
		}
	}
	return nil
}

// TestWatchersAreArmedBeforeAnyRefIsRetired (03 §9): trim, rm and retention, over refs of
// every kind, cut at each of them; and then all that is dead goes.
func TestWatchersAreArmedBeforeAnyRefIsRetired(t *testing.T) {
	cut := func(n int, in segment.Seq) func(x *audittest.Tier) {
		return func(x *audittest.Tier) {
			r := plan(x, "s").Refs[n]
			_, err := x.DB.TrimStream(x.Ctx(), "s", segment.Pos{Epoch: 1, Seq: r.First + in})
			x.Must(err)
		}
	}
	ways := map[string]func(x *audittest.Tier){
		"rm": func(x *audittest.Tier) {
			_, err := x.DB.DeleteStream(x.Ctx(), "s")
			x.Must(err)
		},
		"retention of 1": func(x *audittest.Tier) { x.Raise(1) },
		"retention of 4": func(x *audittest.Tier) { x.Raise(4) }, // in the middle of a pack
		"retention of 6": func(x *audittest.Tier) { x.Raise(6) },
	}
	for n := range 6 {
		ways[fmt.Sprintf("trim to ref %d", n)] = cut(n, 0)
		ways[fmt.Sprintf("trim into ref %d", n)] = cut(n, 1)
	}
	for name, give := range ways {
		t.Run(name, func(t *testing.T) {
			x := allKinds(t)
			give(x)
			retired := 0
			f := &audittest.Faults{}
			f.Hook = func(call string, after bool) {
				if call != "RetireRefs" || after {
					return
				}
				retired++
				// A retention's straddling objects are armed last: a ref names them all along.
				if err := unwatched(x, !strings.HasPrefix(name, "retention")); err != nil {
					t.Errorf("before a retirement: no %v", err)
				}
			}
			f.Start()
			r := faulty(x, f)
			for _, res := range r.walkOnce() {
				x.Must(res.Err)
			}
			for _, m := range r.take(catalog.DutyReclaim) {
				_, err := reap.NewReclaimer(r.cat, x.Classes, orphan.NewDeleter(x.Classes)).RunOnce(t.Context(), m)
				x.Must(err)
			}
			f.Heal()
			if retired == 0 && name != "trim to ref 0" && name != "trim into ref 0" {
				t.Error("nothing was retired")
			}
			if err := unwatched(x, true); err != nil {
				t.Errorf("what straddles has no %v", err)
			}
			x.Clock.Advance(time.Minute)
			x.RunDry()
			x.MustBeClean()
			if left := x.Keys(segment.KeyStream); name == "rm" && len(left) > 0 {
				t.Errorf("%v stand", left)
			}
			for _, ref := range plan(x, "s").Refs {
				if ref.Dead(plan(x, "s").LiveFrom) {
					t.Errorf("dead ref %+v stands", ref)
				}
			}
		})
	}
}

package reap_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// interest lets the watermark go as far as its owner says.
var interest = catalog.Retention{Mode: catalog.RetentionInterest}

// packed makes a chain of n slots of two streams, each settled into objects of its own
// and trimmed.
func packed(t *testing.T, n int) *audittest.Tier {
	t.Helper()
	x := newTier(t)
	x.Policy(interest)
	for range n {
		x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400}, audittest.Write{Stream: "small", Rows: 2, Size: 40})
		x.RunDry()
	}
	if len(x.Settled()) != 2*n || len(x.Slots()) != 0 {
		t.Fatalf("settled %v, slots %v", x.Settled(), x.Slots())
	}
	return x
}

func (r rooms) reclaimOnce() (rep reap.ReclaimReport, err error) {
	for _, m := range r.take(catalog.DutyReclaim) {
		rep, err = r.reclaim.RunOnce(r.Ctx(), m)
	}
	return rep, err
}

func refsLeft(x *audittest.Tier) (n int) {
	x.T.Helper()
	for _, s := range []string{"big", "small"} {
		n += len(plan(x, s).Refs)
	}
	return n
}

func TestReclaimRetiresWhatTheWatermarkGaveUp(t *testing.T) {
	x := packed(t, 3)
	keep := plan(x, "big").Refs[2].Key
	x.Raise(2)
	rep, err := plain(x).reclaimOnce()
	x.Must(err)
	if rep.Outcome != reap.ReclaimDone || rep.Retired != 4 || rep.Straddling != 0 || rep.Watermark != 44 {
		t.Fatalf("%+v", rep)
	}
	if h := head(x); h.WatermarkSeq != 44 || h.WatermarkSegment != 2 {
		t.Errorf("head %+v", h)
	}
	if n := len(x.Settled()); n != 6 || len(x.Markers(catalog.DutyReapCheck)) != 4 || len(x.Markers(catalog.DutyReclaim)) != 0 {
		t.Fatalf("%d objects stand, reap-checks %v", n, x.Markers(catalog.DutyReapCheck))
	}
	if _, err := x.DB.Marker(t.Context(), catalog.DutyTrimCheck, catalog.ChainID(x.Chain)); err != nil {
		t.Errorf("trim-check: %v", err)
	}
	x.RunDry()
	x.MustBeClean()
	if got := x.Settled(); len(got) != 2 || !slices.Contains(got, keep) || refsLeft(x) != 2 {
		t.Errorf("settled %v, want the third slot's two", got)
	}
}

// An object that the watermark cuts in two is watched, and stands.
func TestReclaimWatchesTheObjectThatStraddles(t *testing.T) {
	x := newTier(t)
	x.Policy(interest)
	for range 3 {
		x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400})
	}
	x.RunDry()
	x.Raise(2)
	rep, err := plain(x).reclaimOnce()
	x.Must(err)
	if rep.Retired != 0 || rep.Straddling != 1 || len(x.Markers(catalog.DutyReapCheck)) != 1 {
		t.Fatalf("%+v, reap-checks %v", rep, x.Markers(catalog.DutyReapCheck))
	}
	x.RunDry()
	x.MustBeClean()
	if p := plan(x, "big"); len(p.Refs) != 1 || p.LiveFrom.Seq != 41 {
		t.Errorf("%+v", p)
	}
}

// Slots that nobody settled yet: their dead refs are retired, and they go unwritten.
func TestReclaimOfSlotsThatOweASettle(t *testing.T) {
	x := newTier(t)
	for range 3 {
		x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400})
	}
	x.Raise(2)
	rep, err := plain(x).reclaimOnce()
	x.Must(err)
	if rep.Retired != 2 {
		t.Fatalf("%+v", rep)
	}
	x.RunDry()
	x.MustBeClean()
	if got := x.Settled(); len(got) != 1 || len(x.Slots()) != 0 || plan(x, "big").Refs[0].First != 41 {
		t.Errorf("settled %v, slots %v", got, x.Slots())
	}
}

// settle=off (I5): the bucket holds just the slots from the watermark on.
func TestPlainChainHoldsTheSlotsFromTheWatermarkOn(t *testing.T) {
	x := audittest.NewPlain(t, memstore.Options{})
	var ids []segment.ID
	for range 5 {
		ids = append(ids, x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400}))
	}
	x.RunDry()
	if len(x.Slots()) != 5 {
		t.Fatalf("nothing was given up, %v stand", x.Slots())
	}
	for _, upTo := range []int{2, 4} {
		x.Raise(ids[upTo-1])
		x.RunDry()
		x.MustBeClean()
		var want []string
		for _, id := range ids[upTo:] {
			want = append(want, segment.SlotKey(x.Chain, id))
		}
		if got := x.Slots(); !slices.Equal(got, want) {
			t.Fatalf("slots %v, want %v", got, want)
		}
		if row := chainRow(x); row.Trimmed != ids[upTo-1]+1 {
			t.Errorf("%+v", row)
		}
	}
}

// The dead refs of a plain chain keep its slots out of the condemned ones: the grace
// begins when they are retired (I4).
func TestPlainChainTrimsAfterTheReclaim(t *testing.T) {
	x := audittest.NewPlain(t, memstore.Options{})
	for range 3 {
		x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400})
	}
	x.Raise(2)
	x.Must(x.DB.Arm(t.Context(), catalog.DutyTrimCheck, catalog.ChainID(x.Chain), "", 0))
	rep, err := plain(x).trimOnce()
	x.Must(err)
	if rep.Condemned != 0 {
		t.Fatalf("%+v: condemned slots that refs name", rep)
	}
	x.RunDry()
	x.MustBeClean()
	if len(x.Slots()) != 1 {
		t.Errorf("slots %v", x.Slots())
	}
}

func callIndex(calls []string, prefix string) int {
	return slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, prefix) })
}

// Watch before you act: head, watchers, refs, in this order.
func TestReclaimsOrder(t *testing.T) {
	x := packed(t, 2)
	x.Raise(1)
	f := &audittest.Faults{}
	f.Start()
	_, err := faulty(x, f).reclaimOnce()
	x.Must(err)
	f.Heal()
	last := -1
	for _, step := range []string{"store put rw/", "DeadRefs", "ArmWatchers", "RetireRefs", "StraddlingRefs", "Arm", "Resolve"} {
		i := callIndex(f.Calls()[last+1:], step)
		if i < 0 {
			t.Fatalf("no %s after %d of %v", step, last, f.Calls())
		}
		last += i + 1
	}
	x.RunDry()
}

// A watermark that rises during a run: its refs are the next run's, whose head comes
// first, and the marker that it armed stands.
func TestReclaimArmedDuringTheRun(t *testing.T) {
	x := packed(t, 4)
	x.Raise(1)
	f, raised := &audittest.Faults{}, false
	f.Hook = func(call string, after bool) {
		if call == "DeadRefs" && !after && !raised {
			raised = true
			x.Raise(3)
		}
	}
	f.Start()
	rep, err := faulty(x, f).reclaimOnce()
	x.Must(err)
	f.Heal()
	if !raised || rep.Retired != 2 || rep.Watermark != 22 || head(x).WatermarkSegment != 1 {
		t.Fatalf("%+v, head %+v", rep, head(x))
	}
	if ms := x.Markers(catalog.DutyReclaim); len(ms) != 1 {
		t.Fatalf("%d reclaims stand: the second watermark's is lost", len(ms))
	}
	rep, err = plain(x).reclaimOnce()
	x.Must(err)
	if rep.Retired != 4 || head(x).WatermarkSegment != 3 {
		t.Errorf("%+v, head %+v", rep, head(x))
	}
	x.RunDry()
	x.MustBeClean()
}

// A head ahead of the row: the catalog was rolled back, nothing is retired.
func TestReclaimOnARolledBackCatalog(t *testing.T) {
	x := packed(t, 2)
	x.Raise(1)
	_, err := reap.WriteHead(t.Context(), x.Store, x.DB, x.Chain)
	x.Must(err)
	ahead := *head(x)
	ahead.WatermarkSeq, ahead.WatermarkSegment = 44, 2
	body, err := segment.EncodeHead(&ahead)
	x.Must(err)
	info, err := x.Store.Head(t.Context(), segment.HeadKey(x.Chain))
	x.Must(err)
	_, err = x.Store.PutIfMatch(t.Context(), segment.HeadKey(x.Chain), body, info.ETag)
	x.Must(err)
	if rep, err := plain(x).reclaimOnce(); !errors.Is(err, catalog.ErrRolledBack) || rep.Retired != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if refs, _, err := x.DB.DeadRefs(t.Context(), x.Chain, 0); err != nil || len(refs) != 2 || head(x).WatermarkSegment != 2 {
		t.Errorf("%d dead refs, %v, head %+v: something went on", len(refs), err, head(x))
	}
	x.Damaged = true // fsck has no verdict on such a catalog
}

// A crash that leaves the head behind the row is fine: the next run writes it.
func TestReclaimCutAfterEachStep(t *testing.T) {
	for _, step := range []string{"store put rw/", "ArmWatchers", "RetireRefs", "StraddlingRefs", "Arm", "Resolve"} {
		t.Run(step, func(t *testing.T) {
			x := packed(t, 3)
			x.Raise(2)
			f := &audittest.Faults{Pick: audittest.Cut(1, func(c string) bool {
				return c == step || strings.HasSuffix(step, "/") && strings.HasPrefix(c, step)
			})}
			f.Start()
			if _, err := faulty(x, f).reclaimOnce(); err == nil || f.Hit() == "" {
				t.Fatalf("no cut: %v", err)
			}
			f.Heal()
			x.Clock.Advance(time.Minute)
			x.RunDry()
			x.MustBeClean()
			if len(x.Settled()) != 2 || head(x).WatermarkSegment != 2 {
				t.Errorf("settled %v, head %+v", x.Settled(), head(x))
			}
		})
	}
}

func TestSweepReclaimEveryCallFails(t *testing.T) {
	audittest.Sweep(t, audittest.AllForms(), func(t *testing.T, f *audittest.Faults) {
		x := newTier(t)
		x.Policy(interest)
		for range 2 {
			x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400}, audittest.Write{Stream: "small", Rows: 2, Size: 40})
		}
		x.RunDry()
		x.Slot(audittest.Write{Stream: "small", Rows: 2, Size: 40})
		x.Slot(audittest.Write{Stream: "small", Rows: 2, Size: 40})
		x.Raise(3)
		f.Start()
		rep, err := faulty(x, f).reclaimOnce()
		if f.Hit() == "" && (err != nil || rep.Retired != 3) {
			t.Fatalf("no fault, yet %+v (%v)", rep, err)
		}
		f.Heal()
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
		if len(x.Settled()) != 1 || len(x.Slots()) != 0 {
			t.Fatalf("settled %v, slots %v", x.Settled(), x.Slots())
		}
	})
}

// Refs that change under every page are left for a later run.
func TestReclaimGivesUpOnRefsThatChange(t *testing.T) {
	x := packed(t, 2)
	x.Raise(1)
	r := roomsOn(x, x.Store, &stubborn{Catalog: x.DB})
	if rep, err := r.reclaimOnce(); !errors.Is(err, catalog.ErrConflict) || rep.Retired != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if len(x.Markers(catalog.DutyReclaim)) != 1 {
		t.Error("its marker is gone")
	}
	x.Clock.Advance(time.Minute)
	x.RunDry()
	x.MustBeClean()
}

// stubborn never retires a ref.
type stubborn struct{ catalog.Catalog }

func (*stubborn) RetireRefs(context.Context, []catalog.Ref) (int, error) { return 0, nil }

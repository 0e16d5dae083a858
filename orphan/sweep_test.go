package orphan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/segment"
)

func sweeper(x *audittest.Tier, reclaim bool) *orphan.Sweeper {
	return orphan.NewSweeper(x.DB, x.Classes, orphan.NewDeleter(x.Classes), reclaim)
}

// littered is a tier with something of every shape, old enough to be judged.
func littered(t *testing.T, opt memstore.Options) (x *audittest.Tier, leaked string) {
	t.Helper()
	x = audittest.New(t, opt)
	x.Damaged = true // fsck would rightly find the litter
	body := whole(x)
	x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
	leaked = segment.StreamKey("leak", 1, 7, 0)
	put(x, leaked, string(body))
	put(x, "obj/what/is/this", "?")
	put(x, "seg/00000009.00000000.0000000000000001", "a slot of a chain that nobody knows")
	put(x, segment.DoctorPrefix+"stopped/1", "?")
	for _, k := range []string{leaked, key, "no/key/of/ours"} {
		_, err := x.Mem.CreateUpload(t.Context(), k, nil)
		x.Must(err)
	}
	job(x, key, 3*time.Hour) // its upload is watched
	x.Clock.Advance(audittest.OrphanGrace + time.Second)
	return x, leaked
}

func TestSweepAbortsUnwatchedUploadsAndReportsKeys(t *testing.T) {
	for name, opt := range map[string]memstore.Options{
		"ordered": {}, "K39 shuffled, empty pages": {Shuffle: 3, EmptyPages: true, PageSize: 2},
	} {
		t.Run(name, func(t *testing.T) {
			x, leaked := littered(t, opt)
			young, err := x.Mem.CreateUpload(t.Context(), leaked, nil)
			x.Must(err)
			put(x, segment.DoctorPrefix+"running/1", "?")
			before := x.Keys()
			rep, err := sweeper(x, false).RunOnce(t.Context())
			x.Must(err)
			if rep.Aborts.Aborted != 1 || rep.Skipped != 2 || rep.Unwatched != 3 || rep.Unknown != 2 || rep.Armed != 0 {
				t.Fatalf("%+v", rep)
			}
			if !slices.Equal(before, x.Keys()) {
				t.Fatal("a key was deleted")
			}
			ups, err := x.Store.ListUploads(t.Context(), "")
			x.Must(err)
			if len(ups) != 3 || !slices.ContainsFunc(ups, func(u objstore.Upload) bool { return u.ID == young }) {
				t.Fatalf("uploads %+v: want the watched, the young and the unknown one kept", ups)
			}
			if !slices.ContainsFunc(rep.Found, func(f orphan.Found) bool { return f.Key == leaked && f.Reason != "" }) {
				t.Fatalf("found %+v", rep.Found)
			}
			if !slices.ContainsFunc(rep.Found, func(f orphan.Found) bool { return strings.Contains(f.Reason, "strandline doctor") }) {
				t.Fatalf("found %+v: want the way out for what a doctor left", rep.Found)
			}
		})
	}
}

// A living owner's upload of a slot is its own; once the lease is over it is a stray.
func TestSweepLeavesTheOwnersUploads(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
	for _, id := range []segment.ID{1, 2} { // below and at absorbed_end
		_, err := x.Mem.CreateUpload(t.Context(), segment.SlotKey(x.Chain, id), nil)
		x.Must(err)
	}
	for _, c := range []struct {
		later   time.Duration
		aborted int
	}{{audittest.OrphanGrace, 1}, {audittest.OwnerLease, 1}} {
		x.Clock.Advance(c.later)
		rep, err := sweeper(x, false).RunOnce(t.Context())
		x.Must(err)
		if rep.Aborts.Aborted != c.aborted {
			t.Fatalf("after %v: %+v, want %d aborted", c.later, rep, c.aborted)
		}
	}
	x.RunDry()
	x.MustBeClean()
}

// K15: with --sweep an unwatched settled object dies by the two phases; unknown
// shapes are never touched.
func TestK15SweepReclaimsBySettledKeysOnly(t *testing.T) {
	x, leaked := littered(t, memstore.Options{})
	rep, err := sweeper(x, true).RunOnce(t.Context())
	x.Must(err)
	if rep.Armed != 1 || !slices.Contains(x.Keys(), leaked) {
		t.Fatalf("%+v", rep)
	}
	x.RunDry()
	keys := x.Keys()
	if slices.Contains(keys, leaked) || !slices.Contains(keys, "obj/what/is/this") || !slices.Contains(keys, "seg/00000009.00000000.0000000000000001") {
		t.Fatalf("%v stand: want the leak gone, the unknown ones untouched", keys)
	}
}

// K16: any error in listing, or in reading what watches: zero aborts.
func TestK16SweepWithAnErrorActsOnNothing(t *testing.T) {
	for _, bad := range []string{"store list ", "store list-uploads", "Intent", "Liveness", "Marker", "Chains"} {
		t.Run(bad, func(t *testing.T) {
			x, _ := littered(t, memstore.Options{PageSize: 2})
			seen := 0
			f := &audittest.Faults{Pick: func(_ int, c string) audittest.Form {
				if strings.HasPrefix(c, bad) {
					if seen++; seen > 1 || bad == "store list-uploads" || bad == "Chains" || bad == "Marker" {
						return audittest.NotApplied
					}
				}
				return audittest.Fine
			}}
			f.Start()
			store := f.Store(x)
			classes := objstore.Classes{string(segment.ClassStandard): {store}}
			_, err := orphan.NewSweeper(f.Catalog(x), classes, orphan.NewDeleter(classes), true).RunOnce(t.Context())
			if f.Hit() == "" || err == nil || !errors.Is(err, objstore.ErrUnavailable) && !errors.Is(err, catalog.ErrUnavailable) {
				t.Fatalf("%v (hit %q)", err, f.Hit())
			}
			if ups, err := x.Store.ListUploads(t.Context(), ""); err != nil || len(ups) != 3 {
				t.Fatalf("uploads %+v (%v): aborted on a look that did not complete", ups, err)
			}
			if ms := x.Markers(catalog.DutyReapCheck); len(ms) != 0 {
				t.Fatalf("armed %+v", ms)
			}
		})
	}
}

// Each shape that we write has exactly one owner, and a clean tier has no finding.
func TestSweepOfACleanTierFindsNothing(t *testing.T) {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400}, audittest.Write{Stream: "t", Rows: 1, Size: 8})
	x.SettleAll()
	x.Slot(audittest.Write{Stream: "u", Rows: 20, Size: 400})
	x.RunDry()
	_, err := x.DB.DeleteStream(t.Context(), "u")
	x.Must(err)
	for range 30 {
		x.Clock.Advance(3 * time.Minute)
		_, err := x.Auditor("a", auditor.Config{}).Once(t.Context(), auditor.OnceOptions{})
		x.Must(err)
		rep, err := sweeper(x, true).RunOnce(t.Context())
		x.Must(err)
		if len(rep.Found) != 0 || rep.Armed != 0 {
			t.Fatalf("%+v", rep)
		}
	}
}

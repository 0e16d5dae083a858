package reap_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// rewritten makes a tier with n settled slots and a trim-check that is due.
func rewritten(t *testing.T, n int) *audittest.Tier {
	t.Helper()
	x := newTier(t)
	for range n {
		x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
	}
	x.SettleAll()
	x.Clock.Advance(audittest.ReadGrace)
	return x
}

// condemned is rewritten, with its slots condemned a grace ago.
func condemned(t *testing.T, n int) *audittest.Tier {
	t.Helper()
	x := rewritten(t, n)
	rep, err := plain(x).trimOnce()
	x.Must(err)
	if rep.Outcome != reap.TrimCondemned || rep.Condemned != n {
		t.Fatalf("%+v, want %d condemned", rep, n)
	}
	x.Clock.Advance(audittest.ReadGrace)
	return x
}

func chainRow(x *audittest.Tier) catalog.ChainRow {
	x.T.Helper()
	row, err := x.DB.Chain(x.Ctx(), x.Chain)
	x.Must(err)
	return row
}

func head(x *audittest.Tier) *segment.Head {
	x.T.Helper()
	body, _, err := x.Store.ReadAll(x.Ctx(), segment.HeadKey(x.Chain), 1<<20)
	x.Must(err)
	h, err := segment.DecodeHead(body)
	x.Must(err)
	return h
}

func TestTrimCheckCondemnsThenDeletesAGraceLater(t *testing.T) {
	x := rewritten(t, 3)
	r := plain(x)
	rep, err := r.trimOnce()
	x.Must(err)
	if rep.Outcome != reap.TrimCondemned || rep.Condemned != 3 || len(x.Slots()) != 3 {
		t.Fatalf("%+v, slots %v", rep, x.Slots())
	}
	if h := head(x); h.Condemned != 4 || h.Trimmed != 1 || h.AbsorbedEnd != 4 {
		t.Fatalf("head %+v is not brought up to the row after the condemn", h)
	}
	at := x.Clock.Now()
	// An early run never resets the clock, and nothing newly rewritten joins.
	x.Clock.Advance(audittest.ReadGrace / 2)
	x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
	x.SettleAll()
	ms := x.Markers(catalog.DutyTrimCheck)
	if _, err := reap.NewTrimmer(x.DB, x.Classes, orphan.NewDeleter(x.Classes), 1<<30).RunOnce(t.Context(), ms[0]); err != nil {
		t.Fatal(err)
	}
	if ms = x.Markers(catalog.DutyTrimCheck); len(ms) != 1 || !ms[0].Due.Equal(at.Add(audittest.ReadGrace)) {
		t.Fatalf("after an early run: %+v, want it due at %v", ms, at.Add(audittest.ReadGrace))
	}
	x.Clock.Advance(audittest.ReadGrace/2 - time.Second)
	if rep, err := r.trimOnce(); err != nil || rep.Outcome != "" || len(x.Slots()) != 4 {
		t.Fatalf("a second early: %+v (%v)", rep, err)
	}
	x.Clock.Advance(time.Second)
	rep, err = r.trimOnce()
	x.Must(err)
	if rep.Deleted != 3 || rep.Outcome != reap.TrimCondemned || rep.Condemned != 1 {
		t.Fatalf("%+v, want 3 deleted and the newly rewritten one condemned", rep)
	}
	if got := x.Slots(); len(got) != 1 {
		t.Fatalf("slots %v, want the one condemned now", got)
	}
	x.RunDry()
	x.MustBeClean()
	if row, h := chainRow(x), head(x); row.Trimmed != 5 || h.Condemned != 5 {
		t.Fatalf("row trimmed %d, head condemned %d, want 5", row.Trimmed, h.Condemned)
	}
}

// A slot whose settle marker stands is never condemned, nor what comes after it.
func TestTrimCheckStopsAtTheEarliestStandingMarker(t *testing.T) {
	x := rewritten(t, 2)
	x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
	rep, err := plain(x).trimOnce()
	x.Must(err)
	if rep.Condemned != 2 || rep.Chain.Condemned != 3 {
		t.Fatalf("%+v, want the two settled slots condemned", rep)
	}
	x.RunDry()
	x.MustBeClean()
}

// K12: after a lost compare-and-set no delete follows.
func TestK12NoDeleteAfterALostAdvance(t *testing.T) {
	x := condemned(t, 3)
	f := &audittest.Faults{}
	deletes := 0
	f.Hook = func(call string, after bool) {
		if after && strings.HasPrefix(call, "store delete") {
			deletes++
			// Another auditor is faster: ours loses its compare-and-set.
			_, err := x.DB.AdvanceTrim(x.Ctx(), x.Chain, 1, 4)
			x.Must(err)
		}
	}
	f.Start()
	_, err := faulty(x, f).trimOnce()
	if !errors.Is(err, catalog.ErrConflict) || deletes != 1 {
		t.Fatalf("%v after %d deletes, want the conflict after one", err, deletes)
	}
	f.Heal()
	x.Clock.Advance(time.Minute)
	x.RunDry()
	x.MustBeClean()
}

// A ref that names a condemned slot stops the chain before any delete.
func TestNamedSlotStopsTheTrim(t *testing.T) {
	x := condemned(t, 2)
	lie := &namingCatalog{Catalog: x.DB}
	r := roomsOn(x, x.Store, lie)
	var named *reap.NamedError
	if _, err := r.trimOnce(); !errors.As(err, &named) {
		t.Fatalf("%v, want a *NamedError", err)
	}
	if len(x.Slots()) != 2 {
		t.Fatalf("slots %v: one was deleted", x.Slots())
	}
	x.Clock.Advance(time.Minute)
	x.RunDry()
	x.MustBeClean()
}

// K21: a head that cannot be read, or does not decode, is not "no head": nothing goes.
func TestK21UnreadableHeadStopsTheTrim(t *testing.T) {
	x := condemned(t, 2)
	good, info, err := x.Store.ReadAll(t.Context(), segment.HeadKey(x.Chain), segment.MaxHeadBytes)
	x.Must(err)
	driver := faultstore.Wrap(x.Mem, func(c faultstore.Call) faultstore.Fault {
		if c.Op == objstore.OpGet && c.Key == segment.HeadKey(x.Chain) {
			return faultstore.Fault{Kind: faultstore.NotApplied}
		}
		return faultstore.Fault{}
	})
	if _, err := roomsOn(x, x.Open(driver), x.DB).trimOnce(); !errors.Is(err, objstore.ErrUnavailable) || driver.Hits() == 0 {
		t.Errorf("a head that cannot be read: %v", err)
	}
	info, err = x.Store.PutIfMatch(t.Context(), segment.HeadKey(x.Chain), []byte("{}"), info.ETag)
	x.Must(err)
	x.Clock.Advance(time.Minute)
	if _, err := plain(x).trimOnce(); !segment.IsStructural(err) {
		t.Errorf("a head that does not decode: %v", err)
	}
	if len(x.Slots()) != 2 {
		t.Fatalf("slots %v: deleted beside an unreadable head", x.Slots())
	}
	_, err = x.Store.PutIfMatch(t.Context(), segment.HeadKey(x.Chain), good, info.ETag)
	x.Must(err)
	x.Clock.Advance(time.Minute)
	x.RunDry()
	x.MustBeClean()
}

// The catalog was rolled back: no delete on that chain, and the error says what to do.
func TestRolledBackCatalogStopsTheTrim(t *testing.T) {
	x := condemned(t, 2)
	ahead := *head(x)
	ahead.AbsorbedEnd = 9
	body, err := segment.EncodeHead(&ahead)
	x.Must(err)
	info, err := x.Store.Head(t.Context(), segment.HeadKey(x.Chain))
	x.Must(err)
	_, err = x.Store.PutIfMatch(t.Context(), segment.HeadKey(x.Chain), body, info.ETag)
	x.Must(err)
	for _, act := range []func() error{
		func() error { _, err := plain(x).trimOnce(); return err },
		func() error {
			_, err := reap.NewTrimmer(x.DB, x.Classes, orphan.NewDeleter(x.Classes), 1).Strays(t.Context(), x.Chain)
			return err
		},
		func() error { _, err := reap.WriteHead(t.Context(), x.Store, x.DB, x.Chain); return err },
	} {
		if err := act(); !errors.Is(err, catalog.ErrRolledBack) {
			t.Errorf("%v, want rolled back", err)
		}
	}
	if len(x.Slots()) != 2 || head(x).AbsorbedEnd != 9 {
		t.Fatal("something was deleted, or the head went back")
	}
	x.Damaged = true // fsck rightly calls the rolled-back chain damage
}

func TestHeadIsCreatedOnceAndNeverGoesBack(t *testing.T) {
	x := rewritten(t, 1)
	write := func() {
		t.Helper()
		_, err := reap.WriteHead(t.Context(), x.Store, x.DB, x.Chain)
		x.Must(err)
	}
	write()
	before := x.Store.Counters()
	write()
	if n := x.Store.Counters().Sub(before).Requests[objstore.OpPut]; n != 0 {
		t.Fatalf("%d PUTs of a head that is up to date", n)
	}
	// Two auditors at once: one loses its If-Match, reads again, and both agree.
	f := &audittest.Faults{}
	raced := false
	f.Hook = func(call string, after bool) {
		if !after && strings.HasPrefix(call, "store put rw/") && !raced {
			raced = true
			x.Slot(audittest.Write{Stream: "s", Rows: 1, Size: 8})
			write()
		}
	}
	x.Slot(audittest.Write{Stream: "s", Rows: 1, Size: 8})
	f.Start()
	_, err := reap.WriteHead(t.Context(), f.Store(x), f.Catalog(x), x.Chain)
	x.Must(err)
	if h, row := head(x), chainRow(x); !raced || h.AbsorbedEnd != row.AbsorbedEnd || h.AbsorbedEnd != 4 {
		t.Fatalf("head %+v, row %+v", h, row)
	}
	x.RunDry()
}

func TestSlotsGoFromEveryBucketOfTheSet(t *testing.T) {
	x := newTier(t)
	second := memstore.New(memstore.Options{Clock: x.Clock.Now})
	x.Classes[string(segment.ClassStandard)] = objstore.Set{x.Store, x.Open(second)}
	classes := x.Classes
	trimmer := reap.NewTrimmer(x.DB, classes, orphan.NewDeleter(classes), 1<<30)
	x.Slot(audittest.Write{Stream: "s", Rows: 1, Size: 8})
	x.SettleAll()
	x.Clock.Advance(audittest.ReadGrace)
	ms := x.Take(catalog.DutyTrimCheck)
	if _, err := trimmer.RunOnce(t.Context(), ms[0]); !errors.Is(err, objstore.ErrInvalid) {
		t.Fatalf("%v: the epoch was made with one bucket, two are configured", err)
	}
	x.Classes[string(segment.ClassStandard)] = objstore.Set{x.Store}
	x.Clock.Advance(time.Minute)
	x.RunDry()
}

// K1, its end: a stalled owner's PUT that landed late, below trimmed, is reclaimed.
func TestK1StraysBelowTrimmedGoAfterAGrace(t *testing.T) {
	for name, opt := range map[string]memstore.Options{
		"ordered":                   {},
		"K39 shuffled, empty pages": {Shuffle: 7, EmptyPages: true, PageSize: 2},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTierOn(t, opt)
			for range 3 {
				x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
			}
			late := x.Mem.Dump()[segment.SlotKey(x.Chain, 2)]
			x.RunDry()
			standing := x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
			_, err := x.Store.PutOnce(t.Context(), segment.SlotKey(x.Chain, 2), late, nil)
			x.Must(err)
			trimmer := reap.NewTrimmer(x.DB, x.Classes, orphan.NewDeleter(x.Classes), 1<<30)
			rep, err := trimmer.Strays(t.Context(), x.Chain)
			x.Must(err)
			if rep.Young != 1 || rep.Deleted != 0 {
				t.Fatalf("%+v, want one young stray", rep)
			}
			x.Clock.Advance(audittest.ReadGrace)
			rep, err = trimmer.Strays(t.Context(), x.Chain)
			x.Must(err)
			if rep.Deleted != 1 || !slices.Equal(x.Slots(), []string{segment.SlotKey(x.Chain, standing)}) {
				t.Fatalf("%+v, slots %v, want the stray gone and the live slot kept", rep, x.Slots())
			}
			x.RunDry()
			x.MustBeClean()
		})
	}
}

// K16: a listing that did not complete deletes nothing.
func TestK16FailedListingDeletesNoStray(t *testing.T) {
	x := newTierOn(t, memstore.Options{PageSize: 1})
	for range 3 {
		x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
	}
	dump := x.Mem.Dump()
	x.RunDry()
	for id := segment.ID(1); id <= 3; id++ {
		_, err := x.Store.PutOnce(t.Context(), segment.SlotKey(x.Chain, id), dump[segment.SlotKey(x.Chain, id)], nil)
		x.Must(err)
	}
	x.Clock.Advance(audittest.ReadGrace)
	lists := 0
	f := &audittest.Faults{Pick: func(_ int, call string) audittest.Form {
		if strings.HasPrefix(call, "store list") {
			if lists++; lists >= 3 {
				return audittest.NotApplied
			}
		}
		return audittest.Fine
	}}
	f.Start()
	if _, err := faulty(x, f).trimmer.Strays(t.Context(), x.Chain); !errors.Is(err, objstore.ErrUnavailable) {
		t.Fatalf("%v, want the listing's error", err)
	}
	if len(x.Slots()) != 3 || f.Hit() == "" {
		t.Fatalf("slots %v: deleted on a listing that did not complete", x.Slots())
	}
	f.Heal()
	rep, err := plain(x).trimmer.Strays(t.Context(), x.Chain)
	x.Must(err)
	if rep.Deleted != 3 {
		t.Fatalf("%+v, want 3", rep)
	}
}

// Crash table: "the rewritten-cursor CAS".
func TestCutAfterTheRewrittenCursorDerivesItAgain(t *testing.T) {
	x := rewritten(t, 2)
	f := &audittest.Faults{Pick: audittest.Cut(1, func(c string) bool { return c == "AdvanceRewritten" })}
	f.Start()
	if _, err := faulty(x, f).trimOnce(); err == nil || f.Hit() == "" {
		t.Fatal("no cut")
	}
	f.Heal()
	if row := chainRow(x); row.Rewritten != 3 || row.Condemned != 1 {
		t.Fatalf("%+v", row)
	}
	x.Clock.Advance(time.Minute)
	rep, err := plain(x).trimOnce()
	x.Must(err)
	if rep.Condemned != 2 {
		t.Fatalf("%+v, want both condemned", rep)
	}
	x.RunDry()
	x.MustBeClean()
}

// The head is written before the first delete: a cut right before it leaves all.
func TestHeadComesBeforeTheFirstDelete(t *testing.T) {
	x := condemned(t, 2)
	x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40}) // the row moves on
	f := &audittest.Faults{}
	f.Start()
	_, err := faulty(x, f).trimOnce()
	x.Must(err)
	calls := f.Calls()
	put := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, "store put rw/") })
	del := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, "store delete") })
	if put < 0 || del < 0 || put > del {
		t.Fatalf("calls %v: the head was not written before the delete", calls)
	}
	f.Heal()
	x.RunDry()
	x.MustBeClean()
}

func TestSweepTrimCheckEveryCallFails(t *testing.T) {
	audittest.Sweep(t, audittest.AllForms(), func(t *testing.T, f *audittest.Faults) {
		x := condemned(t, 2)
		x.Slot(audittest.Write{Stream: "s", Rows: 5, Size: 40})
		x.SettleAll()
		f.Start()
		rep, err := faulty(x, f).trimOnce()
		if f.Hit() == "" && (err != nil || rep.Deleted != 2 || rep.Condemned != 1) {
			t.Fatalf("no fault, yet %+v (%v)", rep, err)
		}
		f.Heal()
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
		if row := chainRow(x); row.Trimmed != 4 {
			t.Fatalf("trimmed %d, want 4", row.Trimmed)
		}
	})
}

func TestSweepCondemnSlotsEveryCallFails(t *testing.T) {
	audittest.Sweep(t, audittest.AllForms(), func(t *testing.T, f *audittest.Faults) {
		x := rewritten(t, 2)
		f.Start()
		_, _ = faulty(x, f).trimOnce() // its fault is this test's
		f.Heal()
		if len(x.Slots()) != 2 {
			t.Fatal("deleted in the check that condemned")
		}
		x.Clock.Advance(time.Minute)
		x.RunDry()
		x.MustBeClean()
	})
}

// K35 for slots: the cursor goes up to the first slot that would not go.
func TestK35TrimGoesUpToTheFirstFailedSlot(t *testing.T) {
	x := condemned(t, 4)
	broken := true
	third := segment.SlotKey(x.Chain, 3)
	driver := faultstore.Wrap(x.Mem, func(faultstore.Call) faultstore.Fault {
		if !broken {
			return faultstore.Fault{}
		}
		return faultstore.Fault{Kind: faultstore.DeleteFails, Err: objstore.ErrDenied, Keys: func(key string) bool { return key == third }}
	})
	rep, err := roomsOn(x, x.Open(driver), x.DB).trimOnce()
	if !errors.Is(err, objstore.ErrDenied) || rep.Deleted != 2 || chainRow(x).Trimmed != 3 || !slices.Equal(x.Slots(), []string{third}) {
		t.Fatalf("%+v (%v), row %+v, slots %v", rep, err, chainRow(x), x.Slots())
	}
	broken = false
	x.Clock.Advance(time.Minute)
	x.RunDry()
	x.MustBeClean()
}

package wal_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// gone is what the shared tier has of a segment that does not stand here any more.
type gone struct {
	wal.SealedSegment
	bytes []byte
}

func (g gone) fill(f wal.File) error {
	_, err := f.WriteAt(g.bytes, 0)
	return err
}

func (g gone) adopt(l *wal.Log) error { return l.Adopt(bg, g.ID, g.UUID, g.fill) }

// housekept is sixSegments with 1 to 4 gone to the shared tier, by id.
func housekept(t testing.TB, fsys *powercut.FS) (*wal.Log, map[segment.ID]gone) {
	t.Helper()
	l := sixSegments(t, fsys)
	shared := map[segment.ID]gone{}
	for _, s := range l.Sealed() {
		shared[s.ID] = gone{s, mustRead(t, fsys, s.Path)}
	}
	removed, err := l.Housekeep(t.Context(), wal.NoFloor)
	must(t, err)
	if len(removed) != 4 {
		t.Fatalf("housekeeping removed %v", removed)
	}
	return l, shared
}

func TestAdoptedSegmentsStandAgain(t *testing.T) {
	fsys := powercut.New()
	l, shared := housekept(t, fsys)
	for _, id := range []segment.ID{3, 4, 2, 4} { // in any order; one that stands is a no-op
		must(t, shared[id].adopt(l))
		mustPut(t, l, "goes on")
	}
	if n := l.Metrics().Adopted; n != 3 || !slices.Equal(ids(l), []segment.ID{2, 3, 4, 5, 6}) {
		t.Fatalf("%d adopted, %v stand", n, ids(l))
	}
	for i, s := range l.Sealed() {
		want := shared[s.ID]
		want.SealedAt = s.SealedAt // of the file, not of the segment
		if s != want.SealedSegment {
			t.Errorf("segment %d is %+v, was %+v", i, s, want.SealedSegment)
		}
	}
	f, err := l.OpenSegment(3)
	must(t, err)
	b := make([]byte, f.Size())
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != string(shared[3].bytes) {
		t.Errorf("the adopted segment reads otherwise: %v", err)
	}
	must(t, f.Close())
	mustClose(t, l)
	l, r := open(t, fsys.Cut(0))
	if got := r.payloads(); !slices.Equal(got[:6], []string{"2", "3", "4", "5", "6", "7"}) || len(got) != 10 {
		t.Fatalf("after a power cut: %v", got)
	}
	removed, err := l.Housekeep(t.Context(), wal.NoFloor)
	if err != nil || !slices.Equal(removed, []segment.ID{2, 3, 4}) {
		t.Fatalf("housekeeping after adoption: %v, %v", removed, err)
	}
	mustClose(t, l)
	if err := shared[3].adopt(l); !errors.Is(err, wal.ErrClosed) {
		t.Fatalf("adopt into a closed log: %v", err)
	}
}

func TestAdoptRefusesWhatHasNoPlace(t *testing.T) {
	fsys := powercut.New()
	l, shared := housekept(t, fsys)
	defer mustClose(t, l)
	_, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 1, Seq: 1})
	must(t, err)
	never := func(wal.File) error { t.Error("fill was called"); return nil }
	newest := l.State().UUID
	for about, c := range map[string]struct {
		id segment.ID
		u  segment.UUID
	}{
		"id 0":              {0, shared[2].UUID},
		"reclaimed":         {1, shared[1].UUID},
		"stands otherwise":  {6, shared[5].UUID},
		"newest, otherwise": {7, shared[5].UUID},
		"above the newest":  {8, shared[5].UUID},
	} {
		if err := l.Adopt(t.Context(), c.id, c.u, never); !errors.Is(err, wal.ErrOrder) {
			t.Errorf("%s: %v", about, err)
		}
	}
	must(t, l.Adopt(t.Context(), 7, newest, never))
	must(t, l.Adopt(t.Context(), 6, shared[6].UUID, never))
	// Under way already.
	err = l.Adopt(t.Context(), 2, shared[2].UUID, func(f wal.File) error {
		if err := shared[2].adopt(l); !errors.Is(err, wal.ErrOrder) {
			t.Errorf("a second adopt of one id: %v", err)
		}
		return shared[2].fill(f)
	})
	must(t, err)
}

// Only where CHECKPOINT covers it may a segment be missing, or come back.
func TestAdoptNeedsACheckpoint(t *testing.T) {
	fsys := powercut.New()
	l, _ := open(t, fsys)
	start := segment.Start{Chain: testChain, ID: 5, Base: 50, Term: 1, Prev: segment.UUID{9}}
	if err := l.Adopt(t.Context(), 4, segment.UUID{9}, nil); !errors.Is(err, wal.ErrOrder) {
		t.Errorf("adopt into an empty log: %v", err)
	}
	must(t, l.StartSegment(t.Context(), start)) // writes CHECKPOINT for 4
	wrong := errors.New("not there")
	if err := l.Adopt(t.Context(), 4, segment.UUID{9}, func(wal.File) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("a fill that failed: %v", err)
	}
	mustClose(t, l)
}

// What is not the segment, whole and sealed, is found before it has a name.
func TestAdoptProvesTheBytes(t *testing.T) {
	fsys := powercut.New()
	l, shared := housekept(t, fsys)
	good := shared[4]
	stranger := powercut.New()
	mustClose(t, sixSegments(t, stranger))
	other := mustRead(t, stranger, segFile(4))
	for about, b := range map[string][]byte{
		"empty":              nil,
		"not sealed":         good.bytes[:len(good.bytes)-44],
		"cut in the Seal":    good.bytes[:len(good.bytes)-1],
		"a byte behind":      append(slices.Clone(good.bytes), 0),
		"another segment":    shared[3].bytes,
		"another log's":      other,
		"a bit of a payload": flip(good.bytes, (len(good.bytes)-50)*8),
	} {
		err := l.Adopt(t.Context(), 4, good.UUID, gone{bytes: b}.fill)
		if !errors.Is(err, segment.ErrCorrupt) {
			t.Errorf("%s: %v", about, err)
		}
	}
	// Whole, of this id and the asked UUID, and yet not what segment 5 follows.
	u := segment.UUID(other[8:24])
	if err := l.Adopt(t.Context(), 4, u, gone{bytes: other}.fill); !errors.Is(err, segment.ErrCorrupt) {
		t.Errorf("another log's segment under its own UUID: %v", err)
	}
	for name := range fsys.Dump() {
		if name == segFile(4) || name == segFile(4)+".tmp" {
			t.Errorf("%s was left", name)
		}
	}
	must(t, good.adopt(l))
	mustClose(t, l)
}

func TestAdoptionsAbreast(t *testing.T) {
	fsys := powercut.New()
	l, shared := housekept(t, fsys)
	var wg sync.WaitGroup
	for id := range segment.ID(4) {
		wg.Go(func() {
			if err := shared[id+1].adopt(l); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 50 {
		mustPut(t, l, fmt.Sprint(i))
	}
	wg.Wait()
	if !slices.Equal(ids(l), []segment.ID{1, 2, 3, 4, 5, 6}) {
		t.Fatalf("%v stand", ids(l))
	}
	mustClose(t, l)
}

// afterAdopt wants segment 4 there whole or not at all, no unfinished file, and
// a log that goes on and adopts it.
func afterAdopt(t *testing.T, fsys *powercut.FS, g gone, about string, done bool) {
	t.Helper()
	r := &recorder{}
	l, err := wal.Open(t.Context(), shardDir, config(fsys), r.take)
	if err != nil {
		t.Fatalf("%s: %v", about, err)
	}
	got := r.payloads()
	if len(got) == 4 {
		if got[0] != "4" {
			t.Fatalf("%s: rows %v", about, got)
		}
		got = got[1:]
	} else if done {
		t.Fatalf("%s: adopted, and gone: %v", about, got)
	}
	if !slices.Equal(got, []string{"5", "6", "7"}) {
		t.Fatalf("%s: rows %v", about, got)
	}
	if _, err := fsys.ReadFile(g.Path + ".tmp"); err == nil {
		t.Fatalf("%s: an unfinished file stands", about)
	}
	if err := g.adopt(l); err != nil {
		t.Fatalf("%s: again: %v", about, err)
	}
	mustPut(t, l, "8")
	mustClose(t, l)
}

func TestPowerCutAtEveryStepOfAdopt(t *testing.T) {
	for step := 0; ; step++ {
		for seed := range uint64(12) {
			fsys := powercut.New()
			l, shared := housekept(t, fsys)
			fsys.PowerOffAfter(step)
			err := shared[4].adopt(l)
			stop(l)
			afterAdopt(t, fsys.Cut(seed), shared[4], fmt.Sprintf("cut after step %d, seed %d", step, seed), err == nil)
			if err == nil {
				if step < 5 {
					t.Fatalf("an adoption took %d changes", step)
				}
				return
			}
		}
	}
}

func TestFaultAtEveryStepOfAdopt(t *testing.T) {
	for _, kind := range []powercut.Kind{
		powercut.KindCreate, powercut.KindWrite, powercut.KindSync,
		powercut.KindRead, powercut.KindRename, powercut.KindSyncDir,
	} {
		for nth := 1; ; nth++ {
			about := fmt.Sprintf("%s %d fails", kind, nth)
			fsys := powercut.New()
			l, shared := housekept(t, fsys)
			hit := fsys.FailNth(kind, nth, syscall.ENOSPC)
			err := shared[4].adopt(l)
			if !hit() {
				must(t, err)
				mustClose(t, l)
				if nth == 1 {
					t.Fatalf("an adoption has no %s", kind)
				}
				break
			}
			fsys.Inject(nil)
			if !errors.Is(err, wal.ErrFull) || errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("%s: %v", about, err)
			}
			if !slices.Equal(ids(l), []segment.ID{5, 6}) || l.Err() != nil {
				t.Fatalf("%s: %v stand, log says %v", about, ids(l), l.Err())
			}
			mustPut(t, l, "goes on")
			must(t, shared[4].adopt(l))
			mustClose(t, l)
		}
	}
}

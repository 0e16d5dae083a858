package wal_test

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// sixSegments is a log of sealed segments 1 to 6 with a row each, checkpointed
// through the fourth, and an open seventh.
func sixSegments(t testing.TB, fsys *powercut.FS) *wal.Log {
	t.Helper()
	l := fresh(t, fsys)
	for i := range 6 {
		mustPut(t, l, fmt.Sprint(i+1))
		mustSeal(t, l)
	}
	mustPut(t, l, "7")
	must(t, l.Checkpoint(t.Context(), l.Sealed()[3].End()))
	return l
}

func ids(l *wal.Log) (out []segment.ID) {
	for _, s := range l.Sealed() {
		out = append(out, s.ID)
	}
	return out
}

func TestReclaimGivesUpWhatItMay(t *testing.T) {
	fsys := powercut.New()
	l := sixSegments(t, fsys)
	for about, r := range map[string]segment.Reclaim{
		"above CHECKPOINT":      {Segment: 5, Seq: 5},
		"the newest":            {Segment: 7, Seq: 7},
		"beyond the newest":     {Segment: 9, Seq: 9},
		"a seq in the middle":   {Segment: 3, Seq: 2},
		"a seq of the next one": {Segment: 3, Seq: 4},
	} {
		if _, err := l.Reclaim(t.Context(), r); !errors.Is(err, wal.ErrOrder) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if _, err := fsys.ReadFile(shardDir + "/reclaim.json"); err == nil {
		t.Fatal("a refused reclaim left reclaim.json")
	}
	reader, err := l.OpenSegment(2)
	must(t, err)
	reclaim := func(r segment.Reclaim, want ...segment.ID) {
		t.Helper()
		removed, err := l.Reclaim(t.Context(), r)
		must(t, err)
		if !slices.Equal(removed, want) {
			t.Fatalf("removed %v, want %v", removed, want)
		}
	}
	reclaim(segment.Reclaim{Segment: 2, Seq: 2}, 1, 2)
	reclaim(segment.Reclaim{Segment: 2, Seq: 2})
	reclaim(segment.Reclaim{Segment: 1, Seq: 2}) // never back
	if _, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 4, Seq: 1}); !errors.Is(err, wal.ErrOrder) {
		t.Errorf("a seq that goes back: %v", err)
	}
	if _, err := reader.ReadAt(make([]byte, reader.Size()), 0); err != nil {
		t.Errorf("a reader lost its reclaimed segment: %v", err)
	}
	must(t, reader.Close())
	mustPut(t, l, "8")
	reclaim(segment.Reclaim{Segment: 4, Seq: 4}, 3, 4)
	if got := l.Reclaimed(); got.Segment != 4 || got.Seq != 4 || !slices.Equal(ids(l), []segment.ID{5, 6}) {
		t.Fatalf("reclaimed %+v, %v stand", got, ids(l))
	}
	mustClose(t, l)
	if _, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 4, Seq: 4}); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("reclaim of a closed log: %v", err)
	}
	l, r := open(t, fsys.Cut(0))
	if got := l.Reclaimed(); got.Segment != 4 || got.Seq != 4 || !slices.Equal(r.payloads(), []string{"5", "6", "7", "8"}) {
		t.Fatalf("after a power cut: reclaimed %+v, rows %v", got, r.payloads())
	}
	mustClose(t, l)
}

// What housekeeping has taken already may be given up for good too.
func TestReclaimBelowWhatStands(t *testing.T) {
	fsys := powercut.New()
	l := sixSegments(t, fsys)
	_, err := l.Housekeep(t.Context(), wal.NoFloor)
	must(t, err)
	if _, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 3, Seq: 6}); !errors.Is(err, wal.ErrOrder) {
		t.Errorf("a seq that stands here: %v", err)
	}
	removed, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 3, Seq: 3})
	if err != nil || len(removed) > 0 || l.Reclaimed().Segment != 3 {
		t.Fatalf("removed %v, %v; reclaimed %+v", removed, err, l.Reclaimed())
	}
	mustClose(t, l)
}

// afterReclaim wants the reclaim point old or new, all rows above it, and a log
// that goes on and reclaims.
func afterReclaim(t *testing.T, fsys *powercut.FS, about string, done bool) {
	t.Helper()
	r := &recorder{}
	l, err := wal.Open(t.Context(), shardDir, config(fsys), r.take)
	if err != nil {
		t.Fatalf("%s: %v", about, err)
	}
	at := l.Reclaimed()
	if at != (segment.Reclaim{}) && (at.Segment != 3 || at.Seq != 3) || done && at.Segment != 3 {
		t.Fatalf("%s: reclaimed %+v", about, at)
	}
	got := r.payloads()
	if len(got) < 4 || !slices.Equal(got[len(got)-4:], []string{"4", "5", "6", "7"}) {
		t.Fatalf("%s: rows %v", about, got)
	}
	for _, id := range ids(l) {
		if id <= at.Segment {
			t.Fatalf("%s: segment %d stands below the reclaim point", about, id)
		}
	}
	if _, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 3, Seq: 3}); err != nil {
		t.Fatalf("%s: again: %v", about, err)
	}
	if !slices.Equal(ids(l), []segment.ID{4, 5, 6}) {
		t.Fatalf("%s: %v stand", about, ids(l))
	}
	mustPut(t, l, "8")
	mustClose(t, l)
}

// The power goes at every step of a reclaim; what the disk has of the rest is
// anything.
func TestPowerCutAtEveryStepOfReclaim(t *testing.T) {
	for step := 0; ; step++ {
		for seed := range uint64(12) {
			fsys := powercut.New()
			l := sixSegments(t, fsys)
			fsys.PowerOffAfter(step)
			_, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 3, Seq: 3})
			stop(l)
			afterReclaim(t, fsys.Cut(seed), fmt.Sprintf("cut after step %d, seed %d", step, seed), err == nil)
			if err == nil {
				if step < 9 {
					t.Fatalf("a reclaim took %d changes", step)
				}
				return
			}
		}
	}
}

// Any one operation of a reclaim fails: nothing is lost, appends go on, and the
// next call does it.
func TestFaultAtEveryStepOfReclaim(t *testing.T) {
	for _, kind := range []powercut.Kind{
		powercut.KindCreate, powercut.KindWrite, powercut.KindSync,
		powercut.KindRename, powercut.KindSyncDir, powercut.KindRemove,
	} {
		for nth := 1; ; nth++ {
			about := fmt.Sprintf("%s %d fails", kind, nth)
			fsys := powercut.New()
			l := sixSegments(t, fsys)
			hit := fsys.FailNth(kind, nth, syscall.EIO)
			_, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 3, Seq: 3})
			if !hit() {
				must(t, err)
				mustClose(t, l)
				if nth == 1 {
					t.Fatalf("a reclaim has no %s", kind)
				}
				break
			}
			fsys.Inject(nil)
			if !errors.Is(err, syscall.EIO) {
				t.Fatalf("%s: %v", about, err)
			}
			other := fsys.Cut(uint64(nth) * 77) // the power goes right after it
			stop(l)
			afterReclaim(t, other, about+", reopened", false)
		}
	}
}

func TestReclaimGoesOnAfterAFault(t *testing.T) {
	fsys := powercut.New()
	l := sixSegments(t, fsys)
	fsys.FailNth(powercut.KindRemove, 2, syscall.EIO)
	removed, err := l.Reclaim(t.Context(), segment.Reclaim{Segment: 3, Seq: 3})
	if !errors.Is(err, syscall.EIO) || !slices.Equal(removed, []segment.ID{1}) {
		t.Fatalf("removed %v, %v", removed, err)
	}
	mustPut(t, l, "8")
	removed, err = l.Reclaim(t.Context(), segment.Reclaim{Segment: 3, Seq: 3})
	if err != nil || !slices.Equal(removed, []segment.ID{2, 3}) {
		t.Fatalf("removed %v, %v", removed, err)
	}
	mustClose(t, l)
}

// reclaim.json that gives up everything is no reason to unlink everything.
func TestReclaimOfTheNewestIsCorruption(t *testing.T) {
	fsys := powercut.New()
	mustClose(t, sixSegments(t, fsys))
	b, err := segment.EncodeReclaim(segment.Reclaim{Seq: 7, Segment: 7})
	must(t, err)
	mustWrite(t, fsys, shardDir+"/reclaim.json", b)
	wantCorrupt(t, fsys, "all reclaimed")
	must(t, fsys.Remove(shardDir+"/CHECKPOINT"))
	wantCorrupt(t, fsys, "all reclaimed, no CHECKPOINT")
}

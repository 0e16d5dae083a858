package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Scenario RFC0008.6: a segment is closed by size or by age, whichever comes
// first; a fresh one takes what follows; no frame is dropped or doubled.
func TestRFC0008_6_SegmentRotation(t *testing.T) {
	t.Run("by size", rfc6Size)
	t.Run("by size, to the byte", rfc6Exact)
	t.Run("by age", rfc6Age)
	t.Run("closed cleanly before the next frame", rfc6Order)
	t.Run("power cut at each step", rfc6Cut)
	t.Run("a failed fsync is a hard error", rfc6Fault)
}

func segmentFiles(t testing.TB, fsys *powercut.FS) (n int) {
	t.Helper()
	names, err := fsys.ReadDir(shardDir)
	must(t, err)
	for _, name := range names {
		if _, ok := segment.ParseFileName(name); ok {
			n++
		}
	}
	return n
}

// rotated checks one append against the log before it: in the same segment, or in
// the next one, which is one more file and has a new UUID.
func rotated(t *testing.T, l *wal.Log, fsys *powercut.FS, before wal.State, files int, end wal.Offset) bool {
	t.Helper()
	now := l.State()
	if end.Segment == before.Segment {
		if got := segmentFiles(t, fsys); got != files || end.UUID != before.UUID {
			t.Fatalf("%d files became %d within segment %d", files, got, end.Segment)
		}
		return false
	}
	if end.Segment != before.Segment+1 || end.UUID == before.UUID || now.Start.Prev != before.UUID || now.Start.Base != before.Next {
		t.Fatalf("an append at %+v, after %+v", end, before)
	}
	if got := segmentFiles(t, fsys); got != files+1 {
		t.Fatalf("%d files became %d over one rotation", files, got)
	}
	return true
}

func rfc6Size(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	rng := rand.New(rand.NewPCG(6, 6))
	var rows []string
	rotations, enough := 0, 4
	if raceEnabled || testing.Short() {
		enough = 2
	}
	for rotations < enough {
		p := fmt.Sprintf("%d.%s", len(rows), strings.Repeat("s", rng.IntN(5<<20)))
		before, files := l.State(), segmentFiles(t, fsys)
		end := mustPut(t, l, p)
		rows = append(rows, p)
		frame := int64(segment.FrameHeaderBytes + segment.BatchBytes(batch(p)))
		if end.Byte > segment.MinSegmentBytes {
			t.Fatalf("segment %d is %d bytes, its cap is %d", end.Segment, end.Byte, segment.MinSegmentBytes)
		}
		if !rotated(t, l, fsys, before, files, end) {
			continue
		}
		rotations++
		if room := segment.MinSegmentBytes - before.Durable.Byte; frame+44 <= room {
			t.Errorf("rotated for a frame of %d bytes with room for %d", frame, room)
		}
	}
	mustClose(t, l)
	l, r := open(t, fsys.Cut(0))
	wantRows(t, r, rows...)
	if got := len(l.Sealed()); got != rotations {
		t.Errorf("%d sealed segments after %d rotations", got, rotations)
	}
	mustClose(t, l)
}

// rfc6Exact: a frame that leaves just the room of the Seal stays, one that is a
// byte longer goes into the next segment.
func rfc6Exact(t *testing.T) {
	const seal = segment.FrameHeaderBytes + 24
	for _, over := range []int64{0, 1} {
		fsys := powercut.New()
		l := fresh(t, fsys)
		end := mustPut(t, l, strings.Repeat("s", 9<<20))
		p := strings.Repeat("s", int(segment.MinSegmentBytes-seal-end.Byte))
		frame := func() int64 { return int64(segment.FrameHeaderBytes + segment.BatchBytes(batch(p))) }
		for end.Byte+frame()+seal > segment.MinSegmentBytes+over {
			p = p[1:]
		}
		next := mustPut(t, l, p)
		if want := end.Segment + segment.ID(over); next.Segment != want || end.Byte+frame()+seal != segment.MinSegmentBytes+over {
			t.Errorf("a frame that passes the cap by %d bytes went to segment %d, want %d", over, next.Segment, want)
		}
		mustSeal(t, l)
		for _, s := range l.Sealed() {
			if s.Bytes > segment.MinSegmentBytes || over == 0 && s.Bytes != segment.MinSegmentBytes {
				t.Errorf("segment %d is %d bytes, its cap is %d", s.ID, s.Bytes, segment.MinSegmentBytes)
			}
		}
		mustClose(t, l)
	}
}

// rfc6Age: not one nanosecond earlier, and not by an empty segment.
func rfc6Age(t *testing.T) {
	for _, age := range []time.Duration{time.Second, 10 * time.Second, 600 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			fsys := powercut.New()
			cfg := config(fsys)
			cfg.SegmentAge = age
			l, err := wal.Open(bg, shardDir, cfg, nil)
			must(t, err)
			begin(t, l)
			var rows []string
			for i := range 3 {
				time.Sleep(3 * age) // a segment that holds nothing but its start does not age
				synctest.Wait()
				p := fmt.Sprint("row ", i)
				before, files := l.State(), segmentFiles(t, fsys)
				end := mustPut(t, l, p)
				rows = append(rows, p)
				if got := rotated(t, l, fsys, before, files, end); got != (i > 0) {
					t.Fatalf("row %d went to segment %d", i, end.Segment)
				}
				time.Sleep(age - time.Nanosecond)
				synctest.Wait()
				if st := l.State(); !st.Open {
					t.Fatalf("age %v: segment %d was closed early", age, st.Segment)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if st := l.State(); st.Open || len(l.Sealed()) != i+1 {
					t.Fatalf("age %v: segment %d is still open, %d sealed", age, st.Segment, len(l.Sealed()))
				}
			}
			mustClose(t, l)
			l, r := open(t, fsys.Cut(0))
			wantRows(t, r, rows...)
			mustClose(t, l)
		})
	}
}

// rfc6Order reads the operation log: between the last bytes of the old segment
// and the first frame of the new one stand the fdatasync of the old one, that of
// the new one's beginning, and the fsync of the directory.
func rfc6Order(t *testing.T) {
	fsys := powercut.New()
	hooked := &hookFS{FS: fsys}
	l := fresh(t, hooked)
	mustPut(t, l, "old")
	from := len(fsys.Ops())
	firstFrame := -1
	hooked.write = func(f wal.File, p []byte, off int64) (int, error) {
		if firstFrame < 0 && lastRow(p) == 2 {
			firstFrame = len(fsys.Ops())
		}
		return f.WriteAt(p, off)
	}
	mustSeal(t, l)
	mustPut(t, l, "new")
	mustClose(t, l)
	if firstFrame < 0 {
		t.Fatal("the new segment's first frame was not seen")
	}
	unsynced, entries := map[string]bool{}, false
	for _, op := range fsys.Ops()[from:firstFrame] {
		seg := strings.Contains(op.Path, ".seg")
		switch op.Kind {
		case powercut.KindWrite, powercut.KindTruncate:
			unsynced[op.Path] = seg
		case powercut.KindSync:
			delete(unsynced, op.Path)
		case powercut.KindCreate, powercut.KindRename:
			entries = entries || seg || strings.Contains(op.To, ".seg")
		case powercut.KindSyncDir:
			entries = false
		}
	}
	for name, seg := range unsynced {
		if seg {
			t.Errorf("%s was not fsynced before a frame went into the next segment", name)
		}
	}
	if entries {
		t.Error("the new segment's directory entry was not durable before a frame went into it")
	}
}

// rfc6Cut cuts the power at every change that two rotations make.
func rfc6Cut(t *testing.T) {
	base := powercut.New()
	mustClose(t, fresh(t, base))
	for step := 0; ; step++ {
		var acked []string
		whole := true
		for seed := range uint64(10) {
			fsys := base.Cut(0)
			l, _ := open(t, fsys)
			acked = nil
			fsys.PowerOffAfter(step)
			whole = true
			tried := []string{"a", "b", "c", "d", "e"}
			for i, p := range tried {
				if _, err := put(l, p); err != nil {
					whole = false
					break
				}
				acked = append(acked, p)
				if i%2 == 1 {
					if _, err := l.Seal(bg); err != nil {
						whole = false
						break
					}
				}
			}
			cut := fsys.Cut(seed)
			stop(l)
			l, r := open(t, cut) // never corruption
			got := r.payloads()
			if len(got) < len(acked) || len(got) > len(acked)+1 {
				t.Fatalf("step %d, seed %d: %q survive of %q", step, seed, got, acked)
			}
			wantRows(t, r, tried[:len(got)]...)
			mustPut(t, l, "goes on")
			mustClose(t, l)
			l, r = open(t, cut.Cut(0))
			wantRows(t, r, append(got, "goes on")...)
			mustClose(t, l)
		}
		if whole && len(acked) == 5 {
			if step < 20 {
				t.Fatalf("two rotations took only %d changes", step)
			}
			return
		}
	}
}

// rfc6Fault: each fsync of a rotation fails in turn. The append that needed it
// gets the error, so do all after it, and nothing is lost.
func rfc6Fault(t *testing.T) {
	for _, kind := range []powercut.Kind{powercut.KindSync, powercut.KindSyncDir} {
		for nth := 1; ; nth++ {
			fsys := powercut.New()
			l := fresh(t, fsys)
			mustPut(t, l, "acked")
			hit := failRotation(fsys, kind, nth)
			_, sealErr := l.Seal(bg)
			_, err := put(l, "next")
			if err = errors.Join(sealErr, err); err == nil {
				mustClose(t, l)
				if hit() || nth == 1 {
					t.Fatalf("%s %d of a rotation: hit %t and no error", kind, nth, hit())
				}
				break
			}
			for range 3 {
				if _, err := put(l, "later"); !errors.Is(err, syscall.EIO) || !errors.Is(err, wal.ErrPoisoned) {
					t.Fatalf("%s %d: an append after it: %v", kind, nth, err)
				}
			}
			stop(l)
			l, r := open(t, fsys.Cut(0))
			if got := r.payloads(); len(got) == 0 || got[0] != "acked" || len(got) > 2 {
				t.Fatalf("%s %d: %q survive", kind, nth, got)
			}
			mustPut(t, l, "goes on")
			mustClose(t, l)
		}
	}
}

// failRotation makes the nth fsync of a kind fail, not counting index.json's.
func failRotation(fsys *powercut.FS, kind powercut.Kind, nth int) (hit func() bool) {
	seen := 0
	fsys.Inject(func(op powercut.Op) error {
		if op.Kind != kind || strings.Contains(op.Path, segment.IndexFile) {
			return nil
		}
		if seen++; seen == nth {
			return syscall.EIO
		}
		return nil
	})
	return func() bool { fsys.Inject(nil); return seen >= nth }
}

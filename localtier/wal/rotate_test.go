package wal_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// rotationSteps is 03 §1's list, as the operation log shows it.
var rotationSteps = []string{
	"write 1.seg", "write 1.seg", // the run's frames, the Seal
	"truncate 1.seg", "sync 1.seg",
	"create 2.seg", "write 2.seg", "sync 2.seg", "syncdir",
	"write 2.seg", "sync 2.seg", // only then frames
}

func steps(ops []powercut.Op) []string {
	var out []string
	for _, op := range ops {
		name := strings.TrimLeft(strings.TrimPrefix(filepath.Base(op.Path), "0"), "0")
		switch {
		case strings.Contains(op.Path, segment.IndexFile):
		case op.Kind == powercut.KindSyncDir:
			out = append(out, string(op.Kind))
		default:
			out = append(out, string(op.Kind)+" "+name)
		}
	}
	return out
}

// rotateOnce appends a row, and then one that needs the next segment: both in
// one group, while an earlier fdatasync is held.
func rotateOnce(l *wal.Log) error {
	if _, err := put(l, "before"); err != nil {
		return err
	}
	if _, err := l.Seal(bg); err != nil {
		return err
	}
	_, err := put(l, "after")
	return err
}

// K46: the new segment takes nothing before the old one is synced, and no frame
// before its own beginning and the directory are. Proven by the operation log.
func TestK46RotationOrderByOperationLog(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	defer mustClose(t, l)
	big := strings.Repeat("x", 6<<20)
	mustPut(t, l, big)
	mustPut(t, l, big)
	from := len(fsys.Ops())
	// 18 MiB do not fit 17 MiB: this append rotates, in one commit.
	mustPut(t, l, big)
	got := slices.Compact(steps(fsys.Ops()[from:]))          // a run is written in pieces
	want := slices.Delete(slices.Clone(rotationSteps), 0, 1) // the old segment's frames were written before
	if !slices.Equal(got, want) {
		t.Fatalf("rotation did\n%v\nwant\n%v", got, want)
	}
}

// K46, all histories: in any log of operations, a segment is created only after
// the one before it was synced with nothing written since, and takes frames only
// after its directory entry is durable.
func TestK46NoSegmentBeforeThePreviousIsSynced(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	for i := range 20 {
		for range i % 4 {
			if _, err := l.AppendBatch(t.Context(), batch("row")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, l)
	unsynced := map[string]bool{}
	fresh, created := map[string]int{}, 0
	for i, op := range fsys.Ops() {
		if !strings.HasSuffix(op.Path, ".seg") && op.Kind != powercut.KindSyncDir {
			continue
		}
		switch op.Kind {
		case powercut.KindCreate:
			created++
			for name := range unsynced {
				t.Fatalf("op %d creates %s while %s is not synced", i, op.Path, name)
			}
			fresh[op.Path] = 0
		case powercut.KindWrite:
			if n, ok := fresh[op.Path]; ok && n > 0 {
				t.Fatalf("op %d writes a second time to %s before its directory entry is durable", i, op.Path)
			}
			if _, ok := fresh[op.Path]; ok {
				fresh[op.Path]++
			}
			unsynced[op.Path] = true
		case powercut.KindSync:
			delete(unsynced, op.Path)
		case powercut.KindSyncDir:
			clear(fresh)
		}
	}
	if created < 10 {
		t.Fatalf("only %d segments were made", created)
	}
}

// K44: the power goes at every step of a rotation, and what the disk has of the
// unsynced rest is anything. Every acknowledged row is there, nothing is
// corrupt, and the log goes on.
func TestK44PowerCutAtEveryStepOfRollover(t *testing.T) {
	base := powercut.New()
	mustClose(t, fresh(t, base))
	cutSteps := 0
	for step := 0; ; step++ {
		for seed := range uint64(12) {
			fsys := base.Cut(0)
			l, _ := open(t, fsys)
			mustPut(t, l, "acked")
			done := len(fsys.Ops())
			fsys.PowerOffAfter(step)
			err := rotateOnce(l)
			taken := len(fsys.Ops()) - done
			stop(l)
			if err == nil {
				if cutSteps < len(rotationSteps) {
					t.Fatalf("the rotation ended after %d steps", taken)
				}
				return
			}
			cutSteps = max(cutSteps, step)
			afterCut(t, fsys.Cut(seed), step, seed)
		}
	}
}

// afterCut wants the acknowledged row, then some prefix of the others, and a log
// that goes on.
func afterCut(t *testing.T, fsys *powercut.FS, step int, seed uint64) {
	t.Helper()
	about := fmt.Sprintf("cut after step %d, seed %d", step, seed)
	r := &recorder{}
	l, err := wal.Open(t.Context(), shardDir, config(fsys), r.take)
	if err != nil {
		t.Fatalf("%s: %v", about, err)
	}
	all := []string{"acked", "before", "after"}
	got := r.payloads()
	if len(got) == 0 || len(got) > 3 || !slices.Equal(got, all[:len(got)]) {
		t.Fatalf("%s: replayed %q", about, got)
	}
	r.gapless(t)
	mustPut(t, l, "more")
	mustClose(t, l)
	l, r2 := open(t, fsys.Cut(0))
	wantRows(t, r2, append(got, "more")...)
	mustClose(t, l)
}

// K44: zeros behind the last frame, as a file system leaves them when it grows a
// file before its data, are a clean end.
func TestK44ZeroTailIsClean(t *testing.T) {
	for _, zeros := range []int{1, 19, 20, 21, 4096, 1 << 20} {
		fsys := powercut.New()
		l := fresh(t, fsys)
		mustPut(t, l, "a")
		mustClose(t, l)
		b, err := fsys.ReadFile(segFile(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := fsys.WriteFile(segFile(1), append(b, make([]byte, zeros)...)); err != nil {
			t.Fatal(err)
		}
		l, r := open(t, fsys)
		wantRows(t, r, "a")
		mustPut(t, l, "b")
		mustClose(t, l)
		if _, err := fsys.ReadFile(tornFile(1)); err == nil {
			t.Errorf("%d zeros were kept aside", zeros)
		}
		l, r = open(t, fsys)
		wantRows(t, r, "a", "b")
		mustClose(t, l)
	}
}

func TestSizeRotationNeverStraddles(t *testing.T) {
	fsys := powercut.New()
	var sealed []wal.SealedSegment
	cfg := config(fsys)
	cfg.OnSealed = func(s wal.SealedSegment) { sealed = append(sealed, s) }
	l, err := wal.Open(t.Context(), shardDir, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, l)
	var want []string
	for i := range 24 {
		p := strings.Repeat(string(rune('a'+i)), 1<<20+i*200_000)
		mustPut(t, l, p)
		want = append(want, p)
	}
	mustClose(t, l)
	if len(sealed) < 3 {
		t.Fatalf("%d segments sealed", len(sealed))
	}
	for i, s := range sealed {
		if s.Bytes > segment.MinSegmentBytes || s.Bytes < 8<<20 || s.ID != segment.ID(i+1) {
			t.Errorf("segment %d has %d bytes", s.ID, s.Bytes)
		}
		if i > 0 && (s.Prev != sealed[i-1].UUID || s.Base != sealed[i-1].Next) {
			t.Errorf("segment %d does not follow", s.ID)
		}
	}
	l, r := open(t, fsys)
	defer mustClose(t, l)
	wantRows(t, r, want...)
	if got := l.Sealed(); len(got) != len(sealed) || got[0].Digest != sealed[0].Digest || got[0].Bytes != sealed[0].Bytes {
		t.Fatalf("sealed list after reopening: %+v", got)
	}
}

func TestAgeSealsFromTheFirstFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := powercut.New()
		cfg := config(fsys)
		cfg.SegmentAge = 10 * time.Second
		l, err := wal.Open(t.Context(), shardDir, cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		begin(t, l)
		time.Sleep(time.Minute) // an empty segment has no age
		if n := len(l.Sealed()); n != 0 {
			t.Fatalf("%d segments sealed without a frame", n)
		}
		ticket, err := l.AppendConsumer(t.Context(), segment.KindConsumerCreate, segment.Consumer{Name: "c"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ticket.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		mustPut(t, l, "a") // does not begin the age again
		time.Sleep(4*time.Second - 1)
		synctest.Wait()
		if n := len(l.Sealed()); n != 0 {
			t.Fatal("sealed before its age")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if s := l.State(); len(l.Sealed()) != 1 || s.Open {
			t.Fatalf("not sealed at its age: %+v", s)
		}
		mustPut(t, l, "b") // opens the next lazily
		if s := l.State(); s.Segment != 2 || !s.Open || s.Start.Base != 2 {
			t.Fatalf("state %+v", s)
		}
		mustClose(t, l)
		time.Sleep(time.Hour) // no timer seals a closed log
	})
}

// NextStart is asked before the frame that needs the segment, so that its
// snapshot is of exactly the frames before.
func TestNextStartSnapshotsWhatWasAppendedBefore(t *testing.T) {
	fsys := powercut.New()
	cfg := config(fsys)
	appended := 0
	refuse := errors.New("not now")
	var fail error
	cfg.NextStart = func(s *segment.Start) error {
		s.Consumers = []segment.Consumer{{Name: "c", Cursor: segment.Seq(appended)}}
		return fail
	}
	var starts []segment.Start
	sink := func(r wal.Replayed) error {
		if r.Frame.Kind == segment.KindStart {
			starts = append(starts, *r.Start)
		}
		return nil
	}
	l, err := wal.Open(t.Context(), shardDir, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, l)
	for range 3 {
		mustPut(t, l, "x")
		appended++
		mustSeal(t, l)
	}
	fail = refuse
	if _, err := put(l, "y"); !errors.Is(err, refuse) {
		t.Fatalf("append whose segment was refused: %v", err)
	}
	fail = nil
	mustPut(t, l, "y")
	mustClose(t, l)
	l, err = wal.Open(t.Context(), shardDir, cfg, sink)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	for i, s := range starts[1:] {
		if s.Base != segment.Seq(i+2) || s.Consumers[0].Cursor != segment.Seq(i+1) {
			t.Errorf("segment %d: base %d with the state after %d rows", s.ID, s.Base, s.Consumers[0].Cursor)
		}
	}
}

func TestStartSegmentForANewTerm(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	mustPut(t, l, "a")
	s := l.State()
	next := segment.Start{Chain: testChain, ID: 2, Base: s.Next, Term: 7, Prev: s.UUID}
	for name, bad := range map[string]func(*segment.Start){
		"id":    func(s *segment.Start) { s.ID = 3 },
		"base":  func(s *segment.Start) { s.Base++ },
		"prev":  func(s *segment.Start) { s.Prev[0]++ },
		"term":  func(s *segment.Start) { s.Term = 0 },
		"chain": func(s *segment.Start) { s.Chain.Shard++ },
	} {
		wrong := next
		bad(&wrong)
		if err := l.StartSegment(t.Context(), wrong); !errors.Is(err, wal.ErrOrder) {
			t.Errorf("wrong %s: %v", name, err)
		}
		if !l.State().Open {
			t.Fatalf("wrong %s sealed the segment", name)
		}
	}
	if err := l.StartSegment(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if ok, err := l.Seal(t.Context()); ok || err != nil {
		t.Fatalf("an empty segment was sealed: %v", err)
	}
	if ok, err := l.SealEmpty(t.Context()); !ok || err != nil {
		t.Fatalf("a fence was not sealed: %v", err)
	}
	if got := l.Sealed(); len(got) != 2 || got[1].Frames != 1 || got[1].Term != 7 {
		t.Fatalf("sealed %+v", got)
	}
	mustPut(t, l, "b")
	if s := l.State(); s.Start.Term != 7 || s.Segment != 3 {
		t.Fatalf("state %+v", s)
	}
	mustClose(t, l)
	l, r := open(t, fsys)
	defer mustClose(t, l)
	wantRows(t, r, "a", "b")
}

package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

func TestCheckpointIsDurableMonotonicAndChecked(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	if _, ok := l.LastCheckpoint(); ok {
		t.Fatal("a fresh log has a checkpoint")
	}
	first := mustPut(t, l, "a")
	mustSeal(t, l)
	end := l.Sealed()[0].End()
	later := mustPut(t, l, "b")
	for name, bad := range map[string]wal.Offset{
		"beyond":       {Segment: later.Segment, UUID: later.UUID, Byte: later.Byte + 1},
		"another uuid": {Segment: later.Segment, UUID: first.UUID, Byte: later.Byte},
		"unknown":      {Segment: 9, UUID: later.UUID, Byte: 100},
	} {
		if err := l.Checkpoint(t.Context(), bad); !errors.Is(err, wal.ErrOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []wal.Offset{first, end, first, later, end} {
		must(t, l.Checkpoint(t.Context(), o))
	}
	mustClose(t, l)
	l, _ = open(t, fsys.Cut(0))
	if got, ok := l.LastCheckpoint(); !ok || got != later {
		t.Fatalf("checkpoint is %v, want %v", got, later)
	}
	mustClose(t, l)
	if err := l.Checkpoint(t.Context(), later); !errors.Is(err, wal.ErrClosed) {
		t.Fatalf("checkpoint of a closed log: %v", err)
	}
}

// A checkpoint is old or new, whenever the power goes.
func TestPowerCutInCheckpoint(t *testing.T) {
	for step := 0; ; step++ {
		for seed := range uint64(8) {
			fsys := powercut.New()
			l := fresh(t, fsys)
			first := mustPut(t, l, "a")
			must(t, l.Checkpoint(t.Context(), first))
			second := mustPut(t, l, "b")
			fsys.PowerOffAfter(step)
			err := l.Checkpoint(t.Context(), second)
			stop(l)
			l, _ = open(t, fsys.Cut(seed))
			got, ok := l.LastCheckpoint()
			if !ok || got != first && got != second || err == nil && got != second {
				t.Fatalf("step %d seed %d: checkpoint is %v, %v", step, seed, got, ok)
			}
			mustClose(t, l)
			if err == nil {
				if step < 5 {
					t.Fatalf("a checkpoint took %d changes", step)
				}
				return
			}
		}
	}
}

func TestHousekeepUnlinksOnlyBelowEverything(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	for i := range 5 {
		mustPut(t, l, fmt.Sprint(i))
		mustSeal(t, l)
	}
	sealed := l.Sealed()
	keep := func(retain segment.ID, want ...segment.ID) {
		t.Helper()
		removed, err := l.Housekeep(t.Context(), retain)
		must(t, err)
		if !slices.Equal(removed, want) {
			t.Fatalf("removed %v, want %v", removed, want)
		}
	}
	keep(wal.NoFloor) // no checkpoint
	within := sealed[1].End()
	within.Byte--
	must(t, l.Checkpoint(t.Context(), within))
	keep(1)
	keep(wal.NoFloor, 1) // the second straddles
	must(t, l.Checkpoint(t.Context(), sealed[3].End()))
	keep(0)
	keep(3, 2)
	r, err := l.OpenSegment(3)
	must(t, err)
	keep(wal.NoFloor, 3, 4)
	b := make([]byte, r.Size())
	if _, err := r.ReadAt(b, 0); err != nil || r.Size() != sealed[2].Bytes {
		t.Fatalf("a reader lost its unlinked segment: %v", err)
	}
	must(t, r.Close())
	if _, err := l.OpenSegment(3); !errors.Is(err, wal.ErrNotFound) {
		t.Fatalf("open of an unlinked segment: %v", err)
	}
	must(t, l.Checkpoint(t.Context(), sealed[4].End()))
	keep(wal.NoFloor) // the newest stays: ids are never used twice
	mustClose(t, l)
	l, r2 := open(t, fsys)
	if got := r2.payloads(); !slices.Equal(got, []string{"4"}) {
		t.Fatalf("replayed %q", got)
	}
	mustPut(t, l, "next")
	if s := l.State(); s.Segment != 6 || s.Next != 7 {
		t.Fatalf("state %+v", s)
	}
	mustClose(t, l)
}

// A power cut may keep any of housekeeping's unlinks: gaps below the checkpoint
// are no corruption.
func TestPowerCutInHousekeep(t *testing.T) {
	for seed := range uint64(60) {
		fsys := powercut.New()
		l := fresh(t, fsys)
		for i := range 6 {
			mustPut(t, l, fmt.Sprint(i))
			mustSeal(t, l)
		}
		must(t, l.Checkpoint(t.Context(), l.Sealed()[4].End()))
		fsys.PowerOffAfter(int(seed % 7))
		_, err := l.Housekeep(t.Context(), wal.NoFloor)
		stop(l)
		l, r := open(t, fsys.Cut(seed))
		got := r.payloads()
		if got[len(got)-1] != "5" || !slices.IsSorted(got) {
			t.Fatalf("seed %d: replayed %q after %v", seed, got, err)
		}
		mustPut(t, l, "6")
		if _, err := l.Housekeep(t.Context(), wal.NoFloor); err != nil {
			t.Fatal(err)
		}
		if sealed := l.Sealed(); len(sealed) != 1 || sealed[0].ID != 6 {
			t.Fatalf("seed %d: %d segments stand", seed, len(sealed))
		}
		mustClose(t, l)
	}
}

// A log that begins above segment 1 records that the shared tier holds the rest,
// before its first segment: whenever the power goes, the next open is no
// corruption.
func TestLogThatBeginsAboveSegmentOne(t *testing.T) {
	prev := segment.UUID{1, 2, 3}
	start := segment.Start{Chain: testChain, ID: 100, Base: 5000, Term: 3, Prev: prev}
	for step := 0; ; step++ {
		fsys := powercut.New()
		l, _ := open(t, fsys)
		fsys.PowerOffAfter(step)
		err := l.StartSegment(t.Context(), start)
		stop(l)
		for seed := range uint64(8) {
			l, _ := open(t, fsys.Cut(seed))
			switch s := l.State(); {
			case s.Segment == 0:
				must(t, l.StartSegment(t.Context(), start))
			case s.Segment != 100 || s.Next != 5000 || s.Start.Prev != prev:
				t.Fatalf("step %d seed %d: %+v", step, seed, s)
			}
			mustPut(t, l, "a")
			mustClose(t, l)
		}
		if err == nil {
			break
		}
	}
}

func TestSegmentsWithoutIdentityAreRefused(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	id := l.Identity()
	mustPut(t, l, "a")
	mustClose(t, l)
	l, _ = open(t, fsys)
	if l.Identity() != id || id.Writer == (segment.UUID{}) {
		t.Fatalf("identity %v became %v", id, l.Identity())
	}
	mustClose(t, l)
	must(t, fsys.Remove(shardDir+"/IDENTITY"))
	_, err := wal.Open(t.Context(), shardDir, config(fsys), nil)
	if !errors.Is(err, wal.ErrNoIdentity) || !strings.Contains(err.Error(), "restore") {
		t.Fatalf("open: %v", err)
	}
	if _, err := wal.OpenReadOnly(t.Context(), shardDir, config(fsys), nil); !errors.Is(err, wal.ErrNoIdentity) {
		t.Fatalf("open read-only: %v", err)
	}
}

// The identity is made with the directory: whenever the power goes, the
// directory has one writer or none and no segments.
func TestPowerCutWhileTheDirectoryIsMade(t *testing.T) {
	for step := range 6 {
		for seed := range uint64(6) {
			fsys := powercut.New()
			fsys.PowerOffAfter(step)
			l, err := wal.Open(t.Context(), shardDir, config(fsys), nil)
			var id segment.Identity
			if err == nil {
				id = l.Identity()
				stop(l)
			}
			after := fsys.Cut(seed)
			l, openErr := wal.Open(t.Context(), shardDir, config(after), nil)
			if openErr != nil || err == nil && l.Identity() != id {
				t.Fatalf("step %d seed %d: %v, identity %v then %v", step, seed, openErr, id, l.Identity())
			}
			mustClose(t, l)
		}
	}
}

func TestTwoOpensAreLocked(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	_, err := wal.Open(t.Context(), shardDir, config(fsys), nil)
	var held *wal.LockedError
	if !errors.Is(err, wal.ErrLocked) || !errors.As(err, &held) || held.PID == 0 {
		t.Fatalf("second open: %v", err)
	}
	mustClose(t, l)
	l, _ = open(t, fsys)
	mustClose(t, l)
}

func TestIndexIsRateLimitedAndExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := powercut.New()
		l := fresh(t, fsys)
		for i := range 300 {
			mustPut(t, l, "x")
			if i == 0 {
				ticket, err := l.AppendConsumer(t.Context(), segment.KindConsumerCreate, segment.Consumer{Name: "c", Cursor: 1})
				must(t, err)
				_, err = ticket.Wait(t.Context())
				must(t, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if n := l.Metrics().IndexWrites; n < 3 || n > 5 {
			t.Errorf("index.json was written %d times in five seconds", n)
		}
		x, err := segment.DecodeIndex(mustRead(t, fsys, shardDir+"/index.json"))
		must(t, err)
		s := l.State()
		if x.Bytes != s.Durable.Byte || x.NextSeq != 301 || x.Frames != 302 || len(x.Consumers) != 1 || x.Sealed {
			t.Errorf("index.json is %+v", x)
		}
		mustClose(t, l)
	})
}

// index.json never knows more than what is fsynced: it is a witness.
func TestIndexKnowsOnlyWhatIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := powercut.New()
		mustClose(t, fresh(t, fsys))
		slow := &slowSync{FS: fsys, entered: make(chan struct{}), gate: make(chan struct{})}
		l, err := wal.Open(t.Context(), shardDir, config(slow), nil)
		must(t, err)
		durable := mustPut(t, l, "a")
		slow.on.Store(true)
		ticket, err := l.AppendBatch(t.Context(), batch("b"))
		must(t, err)
		<-slow.entered
		time.Sleep(5 * time.Second)
		x, err := segment.DecodeIndex(mustRead(t, fsys, shardDir+"/index.json"))
		must(t, err)
		if x.Bytes != durable.Byte || x.NextSeq != 2 {
			t.Errorf("index.json knows %d bytes and seq %d within the fdatasync, %d are durable", x.Bytes, x.NextSeq, durable.Byte)
		}
		close(slow.gate)
		_, err = ticket.Wait(t.Context())
		must(t, err)
		mustClose(t, l)
	})
}

// Open for append reads no segment through if index.json matches, and the first
// append still goes to a file that the disk has.
func TestOpenWithoutReplayBelievesOnlyAnExactIndex(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	for range 50 {
		mustPut(t, l, strings.Repeat("x", 100_000))
	}
	mustClose(t, l)
	var read int64
	fsys.Inject(func(op powercut.Op) error {
		if op.Kind == powercut.KindRead && strings.HasSuffix(op.Path, ".seg") {
			read += op.Len
		}
		return nil
	})
	l, err := wal.Open(t.Context(), shardDir, config(fsys), nil)
	must(t, err)
	if read > 100_000 {
		t.Errorf("an open without a replay read %d bytes", read)
	}
	if s := l.State(); s.Next != 51 || s.Frames != 51 {
		t.Errorf("state %+v", s)
	}
	mustPut(t, l, "after")
	mustSeal(t, l)
	mustClose(t, l)
	cut := fsys.Cut(0)
	l, r := open(t, cut)
	r.gapless(t)
	if len(r.rows) != 51 {
		t.Errorf("%d rows", len(r.rows))
	}
	mustClose(t, l)
	// A byte more than index.json knows: it is read after all.
	l, err = wal.Open(t.Context(), shardDir, config(cut), nil)
	must(t, err)
	mustPut(t, l, "open segment")
	mustClose(t, l)
	mustWrite(t, cut, segFile(2), append(mustRead(t, cut, segFile(2)), 0))
	l, err = wal.Open(t.Context(), shardDir, config(cut), nil)
	must(t, err)
	if s := l.State(); s.Next != 53 || s.Durable.Byte != int64(len(mustRead(t, cut, segFile(2)))) {
		t.Errorf("state %+v", s)
	}
	mustClose(t, l)
}

func TestConfigReportsAllFaultsAtOnce(t *testing.T) {
	must(t, wal.Config{}.Validate())
	err := wal.Config{SegmentBytes: 1, SegmentAge: 1, BatchWindow: time.Minute, SpareFiles: -1}.Validate()
	for _, knob := range []string{"segment-bytes", "segment-age", "batch-window", "spare-files"} {
		if err == nil || !strings.Contains(err.Error(), knob) {
			t.Errorf("%s is not named in %v", knob, err)
		}
	}
	if _, err := wal.Open(t.Context(), shardDir, wal.Config{FS: powercut.New()}, nil); err == nil || !strings.Contains(err.Error(), "NextStart") {
		t.Errorf("open without NextStart: %v", err)
	}
}

func TestReadOnlyMutatesNothing(t *testing.T) {
	fsys := threeSegments(t)
	noIndex(t, fsys)
	// Everything that Open would repair: a torn tail, an unfinished file, a
	// leftover, and no index.json.
	b := mustRead(t, fsys, segFile(4))
	mustWrite(t, fsys, segFile(4), append(b, "\x40\x00\x00\x00\x01\x00\x00\x00torn"+strings.Repeat("\x07", 20)...))
	mustWrite(t, fsys, shardDir+"/CHECKPOINT.tmp", []byte("half"))
	reclaim, err := segment.EncodeReclaim(segment.Reclaim{Seq: 1, Segment: 1})
	must(t, err)
	mustWrite(t, fsys, shardDir+"/reclaim.json", reclaim)
	before, ops := fsys.Dump(), len(fsys.Ops())
	r := &recorder{}
	ro, err := wal.OpenReadOnly(t.Context(), shardDir, config(fsys), r.take)
	must(t, err)
	if got := r.payloads(); !slices.Equal(got, []string{"two", "three", "four"}) {
		t.Fatalf("replayed %q", got)
	}
	if s := ro.State(); s.Segment != 4 || s.Next != 5 || !ro.Tail().Torn || len(ro.Sealed()) != 2 {
		t.Fatalf("state %+v, tail %+v", s, ro.Tail())
	}
	seg, err := ro.OpenSegment(4)
	must(t, err)
	if seg.Size() != int64(len(b)) {
		t.Fatalf("the open segment reads as %d bytes, %d are valid", seg.Size(), len(b))
	}
	must(t, seg.Close())
	if _, err := wal.OpenReadOnly(t.Context(), "/data/nowhere", config(fsys), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a missing directory: %v", err)
	}
	sameFiles(t, before, fsys.Dump(), "read-only")
	if n := len(fsys.Ops()); n != ops {
		t.Fatalf("a read-only open made changes: %v", fsys.Ops()[ops:])
	}
}

// Read-only opens beside a live writer see some moment of it, never corruption.
func TestReadOnlyBesideALiveWriter(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 400 {
			if _, err := put(l, fmt.Sprint(i)); err != nil {
				t.Error(err)
				return
			}
			if i%40 == 39 {
				_, err := l.Seal(bg)
				s := l.Sealed()
				if err = errors.Join(err, l.Checkpoint(bg, s[len(s)-1].End()), second(l.Housekeep(bg, wal.NoFloor))); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		r := &recorder{}
		ro, err := wal.OpenReadOnly(t.Context(), shardDir, config(fsys), r.take)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its housekeeping was faster than four looks
		}
		must(t, err)
		for i := 1; i < len(r.rows); i++ {
			if r.rows[i].Seq != r.rows[i-1].Seq+1 {
				t.Fatalf("row %d follows %d", r.rows[i].Seq, r.rows[i-1].Seq)
			}
		}
		if n := len(r.rows); n > 0 && ro.State().Next != r.rows[n-1].Seq+1 {
			t.Fatalf("next is %d after %d", ro.State().Next, r.rows[n-1].Seq)
		}
	}
	mustClose(t, l)
}

// What index.json vouched for is read when it is first copied: damage that an
// open without a replay did not look for is corruption then, and nothing is
// appended behind it.
func TestDamageBehindATrustedIndexIsFoundBeforeTheFirstAppend(t *testing.T) {
	fsys := powercut.New()
	at := written(t, fsys, "one", "two", "three")
	whole := mustRead(t, fsys, segFile(1))
	for _, bit := range []int64{at[0].Byte*8 + 3, at[1].Byte*8 - 1, int64(len(whole))*8 - 1} {
		mustWrite(t, fsys, segFile(1), flip(whole, int(bit)))
		l, err := wal.Open(t.Context(), shardDir, config(fsys), nil)
		must(t, err)
		_, err = put(l, "four")
		if !errors.Is(err, segment.ErrCorrupt) || !errors.Is(err, wal.ErrPoisoned) {
			t.Fatalf("bit %d: append %v", bit, err)
		}
		stop(l)
		if string(mustRead(t, fsys, segFile(1))) != string(flip(whole, int(bit))) {
			t.Fatalf("bit %d: the segment was changed", bit)
		}
		wantCorrupt(t, fsys, "with a replay")
	}
	mustWrite(t, fsys, segFile(1), whole)
	l, r := open(t, fsys)
	wantRows(t, r, "one", "two", "three")
	mustClose(t, l)
}

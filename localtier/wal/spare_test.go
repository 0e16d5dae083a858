package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

func openEager(t testing.TB, fsys wal.FS, sink wal.Sink) *wal.Log {
	t.Helper()
	l, err := wal.Open(t.Context(), shardDir, config(fsys).Eager(), sink)
	must(t, err)
	return l
}

// share marks all sealed segments as in the shared tier and housekeeps.
func share(l *wal.Log) error {
	s := l.Sealed()
	if len(s) == 0 {
		return nil
	}
	if err := l.Checkpoint(bg, s[len(s)-1].End()); err != nil {
		return err
	}
	_, err := l.Housekeep(bg, wal.NoFloor)
	return err
}

// spareLog is an eager log with spare files: segments 1 to 3 of about 30 KB were
// sealed and housekept, but for the newest.
func spareLog(t testing.TB, fsys wal.FS) *wal.Log {
	t.Helper()
	l := openEager(t, fsys, nil)
	begin(t, l)
	for i := range 3 {
		for range 3 {
			mustPut(t, l, fmt.Sprint(i)+strings.Repeat("o", 10_000))
		}
		mustSeal(t, l)
	}
	mustPut(t, l, "newest")
	must(t, share(l))
	if m := l.Metrics(); m.Recycled != 2 || m.SpareBytes < 60_000 {
		t.Fatalf("%d files were put aside, %d bytes", m.Recycled, m.SpareBytes)
	}
	return l
}

func files(fsys *powercut.FS, part string) (out []string) {
	for name := range fsys.Dump() {
		if strings.Contains(name, part) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func TestSegmentsAreWrittenOverSpareFiles(t *testing.T) {
	fsys := powercut.New()
	l := spareLog(t, fsys)
	from := len(fsys.Ops())
	mustSeal(t, l)
	at := mustPut(t, l, "over a spare file")
	b := mustRead(t, fsys, segFile(5))
	if int64(len(b)) <= at.Byte || !strings.Contains(string(b[at.Byte:]), "ooo") {
		t.Fatalf("segment 5 is %d bytes, its frames end at %d: no spare file was used", len(b), at.Byte)
	}
	for _, op := range fsys.Ops()[from:] {
		if op.Kind == powercut.KindCreate && strings.HasSuffix(op.Path, ".seg") {
			t.Errorf("%s was created", op.Path)
		}
	}
	f, err := l.OpenSegment(5)
	must(t, err)
	if f.Size() != at.Byte {
		t.Errorf("a reader sees %d bytes, %d are durable", f.Size(), at.Byte)
	}
	must(t, f.Close())
	m := l.Metrics()
	mustSeal(t, l)
	if n := int64(len(mustRead(t, fsys, segFile(5)))); n != l.Sealed()[1].Bytes {
		t.Errorf("a sealed segment is %d bytes long, its Seal ends at %d", n, l.Sealed()[1].Bytes)
	}
	if m.DiskBytes > 40_000 {
		t.Errorf("%d durable bytes stand", m.DiskBytes)
	}
	mustClose(t, l)
	l, r := open(t, fsys.Cut(0))
	if got := r.payloads(); !slices.Equal(got, []string{"newest", "over a spare file"}) {
		t.Errorf("replayed %q", brief(got))
	}
	mustClose(t, l)
}

// The order in which a spare file becomes a segment: whole and durable first,
// then its name, then the directory, only then frames.
func TestSpareFileBecomesASegmentInOrder(t *testing.T) {
	fsys := powercut.New()
	l := spareLog(t, fsys)
	from := len(fsys.Ops())
	mustSeal(t, l)
	mustPut(t, l, "a")
	var got []string
	for _, op := range fsys.Ops()[from:] {
		if strings.Contains(op.Path, segment.IndexFile) {
			continue
		}
		got = append(got, string(op.Kind))
	}
	want := []string{
		"write", "truncate", "sync", // Seal
		"write", "sync", "rename", "syncdir", // header and SegmentStart, name
		"write", "sync",
	}
	if !slices.Equal(got, want) {
		t.Errorf("did %v, want %v", got, want)
	}
	mustClose(t, l)
}

// A file that somebody reads is unlinked and not overwritten.
func TestFileThatIsReadIsNotRecycled(t *testing.T) {
	fsys := powercut.New()
	l := spareLog(t, fsys)
	must(t, l.DropSpares())
	if n := files(fsys, "spare-"); len(n) > 0 || l.Metrics().SpareBytes != 0 {
		t.Fatalf("%v stand after DropSpares", n)
	}
	id := l.State().Segment
	mustSeal(t, l)
	mustPut(t, l, "next")
	reader, err := l.OpenSegment(id)
	must(t, err)
	whole := mustRead(t, fsys, segFile(id))
	must(t, share(l))
	if n := files(fsys, "spare-"); len(n) > 0 || slices.Contains(ids(l), id) {
		t.Fatalf("a segment that is read was recycled: %v", n)
	}
	mustPut(t, l, strings.Repeat("x", 50_000))
	b := make([]byte, reader.Size())
	if _, err := reader.ReadAt(b, 0); err != nil || string(b) != string(whole) {
		t.Errorf("the reader's bytes changed: %v", err)
	}
	must(t, reader.Close())
	mustClose(t, l)
}

func TestSpareFilesSurviveAnOpenAndOffRemovesThem(t *testing.T) {
	fsys := powercut.New()
	mustClose(t, spareLog(t, fsys))
	mustWrite(t, fsys, shardDir+"/spare-00000000000000ff.free", make([]byte, 50_000))
	l := openEager(t, fsys, nil)
	if n := files(fsys, "spare-"); len(n) != 2 {
		t.Fatalf("%v stand", n)
	}
	mustClose(t, l)
	cfg := config(fsys).Eager()
	cfg.Preallocate = wal.PreallocateOff
	l, err := wal.Open(t.Context(), shardDir, cfg, nil)
	must(t, err)
	if n := files(fsys, "spare-"); len(n) != 0 {
		t.Fatalf("%v stand", n)
	}
	mustPut(t, l, strings.Repeat("x", 20_000))
	if n := int64(len(mustRead(t, fsys, segFile(4)))); n != l.State().Durable.Byte {
		t.Errorf("off, and the file is %d bytes long", n)
	}
	mustClose(t, l)
	cfg.Preallocate, cfg.SpareFiles = "sometimes", 65
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "preallocate") || !strings.Contains(err.Error(), "spare-files") {
		t.Errorf("validate: %v", err)
	}
}

// A full disk takes the spare files.
func TestFullDiskTakesTheSpareFiles(t *testing.T) {
	fsys := powercut.New()
	l := spareLog(t, fsys)
	fsys.SetFree(100)
	if _, err := put(l, strings.Repeat("x", 50_000)); !errors.Is(err, wal.ErrFull) {
		t.Fatalf("append on a full disk: %v", err)
	}
	if n := files(fsys, "spare-"); len(n) > 0 {
		t.Errorf("%v stand", n)
	}
	must(t, l.Resume())
	mustPut(t, l, strings.Repeat("x", 50_000))
	mustClose(t, l)
}

// No room for zeros ahead is no failure of the rows before them.
func TestFullDiskAheadOfTheWriter(t *testing.T) {
	fsys := powercut.New()
	l := openEager(t, fsys, nil)
	begin(t, l)
	fsys.SetFree(500)
	at := mustPut(t, l, "fits")
	mustPut(t, l, "this too")
	if n := int64(len(mustRead(t, fsys, segFile(1)))); n < at.Byte {
		t.Fatalf("the file is %d bytes", n)
	}
	mustClose(t, l)
	l, r := open(t, fsys.Cut(0))
	wantRows(t, r, "fits", "this too")
	mustClose(t, l)
}

// A failed write among zeros or stale bytes is taken back whole.
func TestFailedWriteInALongerFile(t *testing.T) {
	for _, part := range []int{0, 30, 5000, 19_000} {
		fsys := powercut.New()
		l := spareLog(t, fsys)
		mustSeal(t, l)
		mustPut(t, l, "a")
		written := 0 // of the run, piece by piece
		fsys.Inject(func(op powercut.Op) error {
			if op.Kind != powercut.KindWrite {
				return nil
			}
			if written += int(op.Len); written > part {
				return &powercut.PartError{N: part - (written - int(op.Len)), Err: syscall.EIO}
			}
			return nil
		})
		if _, err := put(l, strings.Repeat("x", 20_000)); err == nil || errors.Is(err, wal.ErrPoisoned) {
			t.Fatalf("append: %v", err)
		}
		fsys.Inject(nil)
		must(t, l.Resume())
		mustPut(t, l, "b")
		cut := fsys.Cut(uint64(part))
		stop(l)
		l, r := open(t, cut)
		if got := r.payloads(); !slices.Equal(got, []string{"newest", "a", "b"}) {
			t.Fatalf("replayed %s", brief(got))
		}
		mustClose(t, l)
	}
}

// A clean close ends the file with its frames, so that the next open believes
// index.json; after a crash the file is longer and is read.
func TestOnlyACleanCloseIsBelieved(t *testing.T) {
	fsys := powercut.New()
	l := spareLog(t, fsys)
	mustSeal(t, l)
	for range 3 {
		mustPut(t, l, strings.Repeat("x", 6000))
	}
	s := l.State()
	killed := fsys.Cut(0) // a copy of the disk within the log's life
	mustWrite(t, killed, shardDir+"/"+segment.IndexFile, indexOf(t, s))
	stop(l)
	for about, want := range map[string]bool{"killed": true, "closed": false} {
		on, s := killed, s
		if !want {
			on = powercut.New()
			l := spareLog(t, on)
			mustSeal(t, l)
			mustPut(t, l, strings.Repeat("x", 6000))
			s = l.State()
			mustClose(t, l)
		}
		read := false
		on.Inject(func(op powercut.Op) error {
			if op.Kind == powercut.KindRead && op.Path == segFile(5) && op.Off > 0 && op.Len > 1000 {
				read = true
			}
			return nil
		})
		l := openEager(t, on, nil)
		if got := l.State(); got.Durable.Byte != s.Durable.Byte || got.Next != s.Next {
			t.Errorf("%s: state %+v, want %+v", about, got, s)
		}
		if read != want {
			t.Errorf("%s: segment was read: %v", about, read)
		}
		on.Inject(nil)
		mustPut(t, l, "on")
		mustClose(t, l)
	}
}

func indexOf(t testing.TB, s wal.State) []byte {
	t.Helper()
	b, err := segment.EncodeIndex(&segment.Index{
		NextSeq: s.Next, Segment: s.Segment, UUID: s.UUID, Term: s.Start.Term, Bytes: s.Durable.Byte, Frames: s.Frames,
	})
	must(t, err)
	return b
}

// Damage in a longer file is still told from its end: behind the damaged frame
// stands one that was written when it was synced.
func TestDamageInALongerFileIsCorruption(t *testing.T) {
	fsys := powercut.New()
	l := spareLog(t, fsys)
	mustSeal(t, l)
	first := mustPut(t, l, "one")
	second := mustPut(t, l, "two")
	last := mustPut(t, l, "three")
	cut := fsys.Cut(0)
	stop(l)
	noIndex(t, cut)
	whole := mustRead(t, cut, segFile(5))
	for bit := int(first.Byte) * 8; bit < int(second.Byte)*8; bit += 3 {
		mustWrite(t, cut, segFile(5), flip(whole, bit))
		wantCorrupt(t, cut, fmt.Sprintf("bit %d", bit))
	}
	// The very last frame without index.json is what cannot be told.
	mustWrite(t, cut, segFile(5), flip(whole, int(last.Byte-1)*8))
	l = openEager(t, cut, nil)
	if l.State().Next != segment.Seq(13) {
		t.Errorf("next seq is %d", l.State().Next)
	}
	mustClose(t, l)
}

// The power goes at every step of housekeeping, sealing and starting a segment
// over a spare file, and of the adoption of one: every acknowledged row is there.
func TestPowerCutAtEveryStepWithSpareFiles(t *testing.T) {
	for step := 0; ; step++ {
		ended := false
		for seed := range uint64(16) {
			fsys := powercut.New()
			l := spareLog(t, fsys)
			mustSeal(t, l)
			mustPut(t, l, "acked")
			fsys.PowerOffAfter(step)
			err := rotateOnce(l)
			if err == nil {
				err = share(l)
			}
			if err == nil {
				err = rotateOnce(l)
			}
			stop(l)
			cut := fsys.Cut(seed)
			ended = err == nil
			goOnAfter(t, cut, fmt.Sprintf("cut after step %d, seed %d", step, seed), ended)
			// The power goes again while it recovers, into a spare file.
			again := fsys.Cut(seed)
			again.PowerOffAfter(step % 15)
			if l, err := wal.Open(t.Context(), shardDir, config(again).Eager(), nil); err == nil {
				stop(l)
			}
			goOnAfter(t, again.Cut(seed*31), fmt.Sprintf("twice, step %d, seed %d", step, seed), ended)
		}
		if ended {
			if step < 25 {
				t.Fatalf("it took %d steps", step)
			}
			return
		}
	}
}

func goOnAfter(t *testing.T, fsys *powercut.FS, about string, all bool) {
	t.Helper()
	r := &recorder{}
	l, err := wal.Open(t.Context(), shardDir, config(fsys).Eager(), r.take)
	if err != nil {
		t.Fatalf("%s: %v", about, err)
	}
	got := r.payloads()
	at := slices.Index(got, "acked")
	want := []string{"acked", "before", "after", "before", "after"}
	housekept := at < 0 && all || at < 0 && len(got) > 0 // share() took what it had checkpointed
	if at >= 0 {
		got = got[at:]
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || all && len(got) != len(want) {
			t.Fatalf("%s: replayed %q", about, got)
		}
	} else if !housekept {
		t.Fatalf("%s: replayed %q", about, got)
	}
	next := l.State().Next
	mustPut(t, l, "more")
	mustSeal(t, l)
	mustPut(t, l, "and more")
	mustClose(t, l)
	l, r2 := open(t, fsys.Cut(0))
	if n := len(r2.rows); l.State().Next != next+2 || r2.payloads()[n-1] != "and more" || r2.rows[n-1].Seq != next+1 {
		t.Fatalf("%s: it did not go on: next %d after %d", about, l.State().Next, next)
	}
	mustClose(t, l)
}

// Any one operation fails: nothing acknowledged is lost, and what is not poisoned
// goes on.
func TestFaultAtEveryStepWithSpareFiles(t *testing.T) {
	for _, kind := range []powercut.Kind{
		powercut.KindOpen, powercut.KindCreate, powercut.KindWrite, powercut.KindTruncate, powercut.KindSync,
		powercut.KindRename, powercut.KindSyncDir, powercut.KindRemove,
	} {
		for nth := 1; ; nth++ {
			about := fmt.Sprintf("%s %d fails", kind, nth)
			fsys := powercut.New()
			l := spareLog(t, fsys)
			mustPut(t, l, "acked")
			hit := fsys.FailNth(kind, nth, syscall.EIO)
			acked := []string{"acked"}
			for _, p := range []string{"1", "2", "3"} {
				if _, err := l.Seal(bg); err != nil {
					continue
				}
				if _, err := put(l, p); err == nil {
					acked = append(acked, p)
				}
				_ = l.Resume() // poisoned or not, the reopening below decides
			}
			was := hit()
			fsys.Inject(nil)
			stop(l)
			l, r := open(t, fsys.Cut(uint64(nth)))
			got := r.payloads()
			got = got[slices.Index(got, "acked"):]
			for i, p := range acked {
				if !slices.Contains(got[i:], p) {
					t.Fatalf("%s: %q was acknowledged, replayed %q", about, p, got)
				}
			}
			mustPut(t, l, "on")
			mustClose(t, l)
			if !was {
				break
			}
		}
	}
}

// TestPowerCutsAtRandomMoments with spare files, zeros ahead and housekeeping.
func TestPowerCutsWithSpareFiles(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 40
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 11))
		fsys := powercut.New()
		h := &history{tried: map[segment.Seq]map[string]bool{}, kept: map[segment.Seq]string{}}
		for boot := range 5 {
			about := fmt.Sprintf("seed %d boot %d", seed, boot)
			fsys.PowerOffAfter(-1)
			if rng.IntN(4) == 0 {
				fsys.PowerOffAfter(rng.IntN(20))
			}
			r := &recorder{}
			l, err := wal.Open(t.Context(), shardDir, config(fsys).Eager(), r.take)
			if err == nil {
				h.checkSuffix(t, r, about)
				var wg sync.WaitGroup
				over := make(chan struct{})
				wg.Go(func() {
					for share(l) == nil {
						select {
						case <-over:
							return
						default:
							runtime.Gosched()
						}
					}
				})
				live(t, l, fsys, h, rng)
				close(over)
				wg.Wait()
			} else if !strings.Contains(err.Error(), powercut.ErrPowerOff.Error()) {
				t.Fatalf("%s: %v", about, err)
			}
			fsys = fsys.Cut(rng.Uint64N(3) * (1 + rng.Uint64()>>1))
		}
		r := &recorder{}
		l := openEager(t, fsys, r.take)
		h.checkSuffix(t, r, fmt.Sprintf("seed %d at the end", seed))
		mustClose(t, l)
	}
}

// checkSuffix is check for a log whose older segments may be housekept: what
// stands is in order and right, and reaches to the last row that was kept.
func (h *history) checkSuffix(t *testing.T, r *recorder, about string) {
	t.Helper()
	var last segment.Seq
	for i, row := range r.rows {
		p := string(row.Payload)
		if i > 0 && row.Seq <= last { // a gap is one that recovery allowed, below CHECKPOINT
			t.Fatalf("%s: seq %d follows %d", about, row.Seq, last)
		}
		last = row.Seq
		if want, ok := h.kept[last]; ok && want != p {
			t.Fatalf("%s: seq %d is %.20q, acknowledged was %.20q", about, last, p, want)
		}
		if !h.tried[last][p] {
			t.Fatalf("%s: seq %d is %.20q, which nobody appended there", about, last, p)
		}
		h.kept[last] = p
	}
	for seq := range h.kept {
		if seq > last && len(r.rows) > 0 {
			t.Fatalf("%s: seq %d was acknowledged and is gone; the last is %d", about, seq, last)
		}
	}
}

// Read-only opens beside a writer that writes over spare files and zeros, whose
// files do not end where its frames do: some moment of it, never corruption.
func TestReadOnlyBesideALiveWriterWithSpareFiles(t *testing.T) {
	fsys := powercut.New()
	l := spareLog(t, fsys)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 600 {
			if _, err := put(l, strings.Repeat("n", i%3000)); err != nil {
				t.Error(err)
				return
			}
			if i%60 != 59 {
				continue
			}
			if _, err := l.Seal(bg); err != nil || share(l) != nil {
				t.Error(err)
				return
			}
		}
	}()
	looks := 0
	for running := true; running; looks++ {
		select {
		case <-done:
			running = false
		default:
		}
		r := &recorder{}
		ro, err := wal.OpenReadOnly(t.Context(), shardDir, config(fsys).Eager(), r.take)
		if errors.Is(err, fs.ErrNotExist) {
			continue // housekept under it
		}
		must(t, err)
		for i, row := range r.rows {
			if i > 0 && row.Seq != r.rows[i-1].Seq+1 || strings.Trim(string(row.Payload), "n") != "" && string(row.Payload) != "newest" && row.Seq > 9 {
				t.Fatalf("row %d is %d, %.20q", i, row.Seq, row.Payload)
			}
		}
		if n := len(r.rows); n > 0 && ro.State().Next != r.rows[n-1].Seq+1 {
			t.Fatalf("next is %d after %d", ro.State().Next, r.rows[n-1].Seq)
		}
	}
	mustClose(t, l)
	if looks < 2 {
		t.Fatalf("only %d looks", looks)
	}
}

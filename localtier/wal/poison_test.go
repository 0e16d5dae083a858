package wal_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// K41: after a failed fdatasync every append and sync returns that first error,
// though the kernel would now say that the next one succeeded. After reopening,
// what is replayed is durable: a power cut does not take it back.
func TestK41FailedSyncIsStickyUntilReopened(t *testing.T) {
	for seed := range uint64(20) {
		fsys := powercut.New()
		l := fresh(t, fsys)
		mustPut(t, l, "acked")
		hit := fsys.FailNth(powercut.KindSync, 1, syscall.EIO)
		_, err := put(l, "lost?")
		if !errors.Is(err, wal.ErrPoisoned) || !errors.Is(err, syscall.EIO) || !hit() {
			t.Fatalf("append over a failed fdatasync: %v", err)
		}
		first := err.Error()
		for name, again := range map[string]error{
			"append": second(put(l, "x")),
			"sync":   l.Sync(t.Context()),
			"seal":   second(l.Seal(t.Context())),
			"start":  l.StartSegment(t.Context(), segment.Start{}),
			"err":    l.Err(),
			"resume": l.Resume(),
			"close":  l.Close(),
		} {
			if name != "close" && (again == nil || again.Error() != first) || again == nil {
				t.Errorf("%s says %v, not the first error", name, again)
			}
		}
		fsys.Inject(nil)
		// The page cache still shows the row. Whoever replays it may answer for it,
		// so from the moment Open returns the disk must have it.
		l, r := open(t, fsys)
		got := r.payloads()
		if got[0] != "acked" {
			t.Fatalf("replayed %q", got)
		}
		stop(l)
		l, r = open(t, fsys.Cut(seed))
		wantRows(t, r, got...)
		mustPut(t, l, "goes on")
		mustClose(t, l)
	}
}

func second[T any](_ T, err error) error { return err }

// A fdatasync that fails anywhere in the log's life poisons it, and after a power
// cut every acknowledged row is there.
func TestEveryFailedSyncPoisons(t *testing.T) {
	for _, kind := range []powercut.Kind{powercut.KindSync, powercut.KindSyncDir} {
		for nth := 1; ; nth++ {
			fsys := powercut.New()
			l := fresh(t, fsys)
			hit := fsys.FailNth(kind, nth, syscall.EIO)
			var acked []string
			var err error
			for i := 0; i < 6 && err == nil; i++ {
				p := fmt.Sprint(i)
				if _, err = put(l, p); err == nil {
					acked = append(acked, p)
				}
				if err == nil && i%2 == 1 {
					_, err = l.Seal(t.Context())
				}
			}
			stop(l)
			if !hit() {
				if err != nil || nth < 3 {
					t.Fatalf("%s %d: not hit, %v", kind, nth, err)
				}
				break
			}
			if !errors.Is(err, wal.ErrPoisoned) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("%s %d: %v", kind, nth, err)
			}
			for seed := range uint64(6) {
				l, r := open(t, fsys.Cut(seed))
				r.gapless(t)
				if got := r.payloads(); len(got) < len(acked) || strings.Join(got[:len(acked)], " ") != strings.Join(acked, " ") {
					t.Fatalf("%s %d seed %d: acknowledged %q, replayed %q", kind, nth, seed, acked, got)
				}
				mustClose(t, l)
			}
		}
	}
}

// A full disk refuses appends with ErrFull, acknowledges nothing, and once there
// is space the log goes on where the disk stands.
func TestDiskFullInAppend(t *testing.T) {
	for _, free := range []int64{0, 1, 30, 5000} {
		fsys := powercut.New()
		l := fresh(t, fsys)
		mustPut(t, l, "a")
		next := l.State().Next
		fsys.SetFree(free)
		_, err := put(l, strings.Repeat("x", 10_000))
		if !errors.Is(err, wal.ErrFull) || errors.Is(err, wal.ErrPoisoned) {
			t.Fatalf("free %d: %v", free, err)
		}
		if s := l.State(); s.Next != next || s.DurableNext != next {
			t.Fatalf("free %d: seqs were not taken back: %+v", free, s)
		}
		if _, err := put(l, "y"); !errors.Is(err, wal.ErrFull) {
			t.Fatalf("append before Resume: %v", err)
		}
		fsys.SetFree(-1)
		if err := l.Resume(); err != nil {
			t.Fatal(err)
		}
		mustPut(t, l, "b")
		mustClose(t, l)
		l, r := open(t, fsys)
		wantRows(t, r, "a", "b")
		mustClose(t, l)
	}
}

// Those who queued behind a refused write are refused with it: their seqs follow
// rows that are not there.
func TestRolledBackWriteRefusesAllBehindIt(t *testing.T) {
	fsys := powercut.New()
	mustClose(t, fresh(t, fsys))
	slow := &slowSync{FS: fsys, entered: make(chan struct{}), gate: make(chan struct{})}
	l, err := wal.Open(t.Context(), shardDir, config(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	slow.on.Store(true)
	first, err := l.AppendBatch(t.Context(), batch("first"))
	if err != nil {
		t.Fatal(err)
	}
	<-slow.entered
	var behind []wal.Ticket
	for range 5 {
		ticket, err := l.AppendBatch(t.Context(), batch("behind"))
		if err != nil {
			t.Fatal(err)
		}
		behind = append(behind, ticket)
	}
	if ticket, err := l.AppendConsumer(t.Context(), segment.KindAck, segment.Consumer{Name: "c", Cursor: 9}); err == nil {
		behind = append(behind, ticket)
	}
	fsys.SetFree(10)
	slow.on.Store(false)
	close(slow.gate)
	if _, err := first.Wait(t.Context()); err != nil {
		t.Fatalf("the row before: %v", err)
	}
	for _, ticket := range behind {
		if _, err := ticket.Wait(t.Context()); !errors.Is(err, wal.ErrFull) {
			t.Fatalf("a row behind: %v", err)
		}
	}
	fsys.SetFree(-1)
	if err := l.Resume(); err != nil {
		t.Fatal(err)
	}
	b := batch("again")
	ticket, err := l.AppendBatch(t.Context(), b)
	if err != nil || b.First != 2 {
		t.Fatalf("seq %d, %v", b.First, err)
	}
	if _, err := ticket.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	l, r := open(t, fsys)
	wantRows(t, r, "first", "again")
	mustClose(t, l)
}

// A full disk while sealing or beginning a segment: whatever byte count is left,
// nothing acknowledged is lost and the log goes on.
func TestDiskFullInSealAndNextSegment(t *testing.T) {
	for free := int64(0); free < 300; free += 7 {
		fsys := powercut.New()
		l := fresh(t, fsys)
		mustPut(t, l, "a")
		fsys.SetFree(free)
		sealed, err := l.Seal(t.Context())
		if err != nil && (!errors.Is(err, wal.ErrFull) || sealed) {
			t.Fatalf("free %d: seal %v, %v", free, sealed, err)
		}
		if err != nil && !l.State().Open {
			t.Fatalf("free %d: a segment whose Seal failed is not open: %+v", free, l.State())
		}
		_, err = put(l, "b")
		if err != nil && !errors.Is(err, wal.ErrFull) {
			t.Fatalf("free %d: append %v", free, err)
		}
		want := []string{"a"}
		if err == nil {
			want = append(want, "b")
		}
		fsys.SetFree(-1)
		if err := l.Resume(); err != nil {
			t.Fatal(err)
		}
		mustPut(t, l, "c")
		mustSeal(t, l)
		mustPut(t, l, "d")
		mustClose(t, l)
		l, r := open(t, fsys.Cut(0))
		wantRows(t, r, append(want, "c", "d")...)
		mustClose(t, l)
	}
}

// A full disk while recovery makes its copy: ErrFull, nothing changed, and with
// space the same directory opens.
func TestDiskFullInRecovery(t *testing.T) {
	base := powercut.New()
	at := written(t, base, "one", "torn away")
	noIndex(t, base)
	b := mustRead(t, base, segFile(1))
	mustWrite(t, base, segFile(1), b[:at[1].Byte-3])
	for free := int64(0); free < 200; free += 9 {
		fsys := base.Cut(0)
		fsys.SetFree(free)
		l, err := wal.Open(t.Context(), shardDir, config(fsys), (&recorder{}).take)
		if err == nil {
			stop(l)
			if free < at[0].Byte {
				t.Fatalf("a copy of %d bytes fitted into %d", at[0].Byte, free)
			}
			continue
		}
		if !errors.Is(err, wal.ErrFull) {
			t.Fatalf("free %d: %v", free, err)
		}
		if string(mustRead(t, fsys, segFile(1))) != string(b[:at[1].Byte-3]) {
			t.Fatalf("free %d: the segment was changed", free)
		}
		fsys.SetFree(-1)
		l, r := open(t, fsys)
		wantRows(t, r, "one")
		mustClose(t, l)
	}
}

// A write that cannot be rolled back is poison.
func TestFailedRollbackPoisons(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	mustPut(t, l, "a")
	fsys.Inject(func(op powercut.Op) error {
		switch op.Kind {
		case powercut.KindWrite:
			return &powercut.PartError{N: 7, Err: syscall.EIO}
		case powercut.KindTruncate:
			return syscall.EROFS
		}
		return nil
	})
	_, err := put(l, "b")
	if !errors.Is(err, wal.ErrPoisoned) || !errors.Is(err, syscall.EIO) || !errors.Is(err, syscall.EROFS) {
		t.Fatalf("append: %v", err)
	}
	if err := l.Sync(t.Context()); !errors.Is(err, wal.ErrPoisoned) {
		t.Fatalf("sync: %v", err)
	}
	stop(l)
	fsys.Inject(nil)
	l, r := open(t, fsys)
	wantRows(t, r, "a")
	mustClose(t, l)
}

// A failed write that is rolled back is an error of that append, not of the log.
func TestFailedWriteIsRolledBack(t *testing.T) {
	for _, n := range []int{0, 1, 25, 1000} {
		fsys := powercut.New()
		l := fresh(t, fsys)
		mustPut(t, l, "a")
		hit := fsys.FailNth(powercut.KindWrite, 1, &powercut.PartError{N: n, Err: syscall.EIO})
		_, err := put(l, strings.Repeat("b", 2000))
		if !errors.Is(err, syscall.EIO) || errors.Is(err, wal.ErrPoisoned) || !hit() {
			t.Fatalf("append: %v", err)
		}
		if err := l.Resume(); err != nil {
			t.Fatal(err)
		}
		mustPut(t, l, "c")
		mustClose(t, l)
		for seed := range uint64(5) {
			l, r := open(t, fsys.Cut(seed))
			wantRows(t, r, "a", "c")
			mustClose(t, l)
		}
	}
}

// A write that reached the file whole and failed all the same was refused: its
// rows are not there at the next open, whether or not others were appended.
func TestRefusedRowsDoNotComeBack(t *testing.T) {
	for _, after := range []string{"", "c"} {
		fsys := powercut.New()
		l := fresh(t, fsys)
		mustPut(t, l, "a")
		fsys.FailNth(powercut.KindWrite, 1, &powercut.PartError{N: 1 << 20, Err: syscall.EIO})
		if _, err := put(l, "b"); !errors.Is(err, syscall.EIO) || errors.Is(err, wal.ErrPoisoned) {
			t.Fatalf("append: %v", err)
		}
		want := []string{"a"}
		if after != "" {
			must(t, l.Resume())
			mustPut(t, l, after)
			want = append(want, after)
		}
		mustClose(t, l)
		l, r := open(t, fsys)
		wantRows(t, r, want...)
		mustClose(t, l)
	}
}

// A Seal whose fdatasync failed reads as sealed from the page cache after a
// restart. The next segment must not stand on it before the disk has it.
func TestSealThatOnlyThePageCacheShows(t *testing.T) {
	for seed := range uint64(8) {
		fsys := powercut.New()
		l := fresh(t, fsys)
		mustPut(t, l, "a")
		fsys.FailNth(powercut.KindSync, 1, syscall.EIO)
		if _, err := l.Seal(t.Context()); !errors.Is(err, wal.ErrPoisoned) {
			t.Fatalf("seal: %v", err)
		}
		stop(l)
		fsys.Inject(nil)
		l, r := open(t, fsys)
		wantRows(t, r, "a")
		if s := l.State(); s.Open || len(l.Sealed()) != 1 {
			t.Fatalf("state %+v", s)
		}
		mustPut(t, l, "b")
		stop(l)
		l, r = open(t, fsys.Cut(seed))
		wantRows(t, r, "a", "b")
		mustClose(t, l)
	}
}

// A full disk in a sidecar: CHECKPOINT says so and the old one stands; index.json
// is a cache and fails nobody.
func TestDiskFullInSidecars(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	first := mustPut(t, l, "a")
	if err := l.Checkpoint(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	next := mustPut(t, l, "b")
	fsys.SetFree(0)
	if err := l.Checkpoint(t.Context(), next); !errors.Is(err, wal.ErrFull) {
		t.Fatalf("checkpoint on a full disk: %v", err)
	}
	if got, ok := l.LastCheckpoint(); !ok || got != first {
		t.Fatalf("checkpoint is %v", got)
	}
	mustClose(t, l)
	if l.Metrics().IndexFailures == 0 {
		t.Fatal("index.json did not meet the full disk")
	}
	fsys.SetFree(-1)
	l, r := open(t, fsys.Cut(3))
	wantRows(t, r, "a", "b")
	if got, ok := l.LastCheckpoint(); !ok || got != first {
		t.Fatalf("checkpoint after reopening is %v", got)
	}
	mustClose(t, l)
}

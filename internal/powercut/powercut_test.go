package powercut_test

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
)

const page = 4096

func machine(t *testing.T) *powercut.FS {
	t.Helper()
	f := powercut.New()
	must(t, f.MkdirAll("/d"))
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, f *powercut.FS, name string) wal.File {
	t.Helper()
	h, err := f.Create(name)
	must(t, err)
	return h
}

func write(t *testing.T, h wal.File, b []byte, off int64) {
	t.Helper()
	_, err := h.WriteAt(b, off)
	must(t, err)
}

func fill(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }

func TestCutKeepsWhatWasSyncedAndNoMore(t *testing.T) {
	f := machine(t)
	h := create(t, f, "/d/a")
	write(t, h, fill('x', 5000), 0)
	must(t, h.Sync())
	must(t, f.SyncDir("/d"))
	write(t, h, fill('y', 5000), 5000)
	must(t, create(t, f, "/d/b").Sync()) // no SyncDir: the entry is lost
	cut := f.Cut(0)
	if b, err := cut.ReadFile("/d/a"); err != nil || !bytes.Equal(b, fill('x', 5000)) {
		t.Errorf("synced file reads as %d bytes, %v", len(b), err)
	}
	if _, err := cut.ReadFile("/d/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an entry that was not synced: %v", err)
	}
	if _, err := h.WriteAt(nil, 0); !errors.Is(err, powercut.ErrPowerOff) {
		t.Errorf("a write after the cut: %v", err)
	}
}

// Over many seeds every unsynced page is once there and once not, whatever its
// neighbour is, and so are the lengths.
func TestCutSpillsAnySubset(t *testing.T) {
	f := machine(t)
	h := create(t, f, "/d/a")
	write(t, h, fill('x', page), 0)
	must(t, h.Sync())
	must(t, f.SyncDir("/d"))
	write(t, h, fill('y', 3*page), page)
	seen := map[[3]bool]bool{}
	sizes := map[int]bool{}
	for seed := range uint64(300) {
		b, err := f.Cut(seed).ReadFile("/d/a")
		must(t, err)
		if len(b) < page || !bytes.Equal(b[:page], fill('x', page)) {
			t.Fatalf("seed %d: a synced page is gone", seed)
		}
		sizes[len(b)] = true
		var there [3]bool
		for i := range there {
			at := (i + 1) * page
			there[i] = len(b) > at && b[at] == 'y'
		}
		seen[there] = true
	}
	if len(seen) != 8 || len(sizes) < 4 {
		t.Errorf("%d of 8 subsets, %d lengths", len(seen), len(sizes))
	}
}

func TestCutIsRepeatable(t *testing.T) {
	f := machine(t)
	write(t, create(t, f, "/d/a"), fill('x', 10*page), 0)
	for seed := range uint64(50) {
		a, b := f.Cut(seed).Dump(), f.Cut(seed).Dump()
		if len(a) != len(b) || !bytes.Equal(a["/d/a"], b["/d/a"]) {
			t.Fatalf("seed %d gave two boots", seed)
		}
	}
}

// A failed sync drops the pages: they read well, the next sync says nil, and
// whether a boot has them is left to chance.
func TestFailedSyncLosesPagesSilently(t *testing.T) {
	f := machine(t)
	h := create(t, f, "/d/a")
	write(t, h, fill('x', 100), 0)
	must(t, f.SyncDir("/d"))
	hit := f.FailNth(powercut.KindSync, 1, syscall.EIO)
	if err := h.Sync(); !errors.Is(err, syscall.EIO) || !hit() {
		t.Fatalf("sync: %v", err)
	}
	must(t, h.Sync())
	b := make([]byte, 100)
	if _, err := h.ReadAt(b, 0); err != nil || !bytes.Equal(b, fill('x', 100)) {
		t.Errorf("the page cache lost the page: %v", err)
	}
	there, gone := 0, 0
	for seed := range uint64(100) {
		b, err := f.Cut(seed).ReadFile("/d/a")
		must(t, err)
		switch has := bytes.IndexByte(b, 'x') >= 0; {
		case has && seed == 0:
			t.Fatal("a boot from synced bytes only has what no sync wrote")
		case has:
			there++
		default:
			gone++
		}
	}
	if there == 0 || gone == 0 {
		t.Errorf("%d boots have the page, %d do not", there, gone)
	}
}

// A page that was written twice may be on the disk as it was after the first
// write, and a file as long as it was then.
func TestCutSpillsEarlierVersions(t *testing.T) {
	written := func() (*powercut.FS, wal.File) {
		f := machine(t)
		h := create(t, f, "/d/a")
		must(t, h.Sync())
		must(t, f.SyncDir("/d"))
		write(t, h, fill('1', 600), 0)
		write(t, h, fill('2', 600), 600)
		write(t, h, fill('3', 600), 0)
		return f, h
	}
	f, _ := written()
	seen := map[string]bool{}
	for seed := range uint64(400) {
		b, err := f.Cut(seed).ReadFile("/d/a")
		must(t, err)
		at := func(i int) byte {
			if i >= len(b) || b[i] == 0 {
				return '-'
			}
			return b[i]
		}
		seen[string([]byte{at(0), at(599), at(600), at(1199)})] = true
	}
	for _, want := range []string{"----", "11--", "1122", "3322"} {
		if !seen[want] {
			t.Errorf("no boot found %s; found %v", want, seen)
		}
	}
	f, h := written()
	must(t, h.Sync())
	for seed := range uint64(50) {
		if b, err := f.Cut(seed).ReadFile("/d/a"); err != nil || !bytes.Equal(b, append(fill('3', 600), fill('2', 600)...)) {
			t.Fatalf("seed %d: an earlier version came back after the sync, %v", seed, err)
		}
	}
}

// What a boot hides behind a file's end does not come back when the file grows.
func TestNothingComesBackBehindTheEnd(t *testing.T) {
	for seed := range uint64(200) {
		f := machine(t)
		h := create(t, f, "/d/a")
		must(t, f.SyncDir("/d"))
		write(t, h, fill('x', 100), 0)
		must(t, h.Sync())
		write(t, h, fill('y', 2*page), 100)
		must(t, h.Truncate(150))
		boot := f.Cut(seed)
		b, err := boot.ReadFile("/d/a")
		must(t, err)
		if len(b) < 100 || !bytes.Equal(b[:100], fill('x', 100)) {
			t.Fatalf("seed %d: synced bytes are gone: %d left", seed, len(b))
		}
		g, err := boot.OpenWrite("/d/a")
		must(t, err)
		must(t, g.Truncate(4*page))
		grown, err := boot.ReadFile("/d/a")
		must(t, err)
		if !bytes.Equal(grown[:len(b)], b) || bytes.IndexByte(grown[len(b):], 'y') >= 0 {
			t.Fatalf("seed %d: bytes behind the end came back", seed)
		}
	}
}

// Zeros ahead of the writer cost no memory and no time, and are pages as any
// other: durable after a Sync.
func TestZerosAreSparse(t *testing.T) {
	f := machine(t)
	h := create(t, f, "/d/a")
	zeros := make([]byte, 16<<20)
	write(t, h, zeros, 0)
	must(t, h.Sync())
	must(t, f.SyncDir("/d"))
	write(t, h, fill('x', 10), 5*page)
	if n := testing.AllocsPerRun(5, func() { f.Cut(3) }); n > 100 {
		t.Errorf("a cut of one file of zeros allocates %.0f times", n)
	}
	b, err := f.Cut(0).ReadFile("/d/a")
	if err != nil || !bytes.Equal(b, zeros) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// A rename is atomic: the old file or the new one, never neither.
func TestRenameIsAtomicUnderACut(t *testing.T) {
	old, renamed := 0, 0
	for seed := range uint64(100) {
		f := machine(t)
		must(t, f.WriteFile("/d/a", []byte("old")))
		h := create(t, f, "/d/a.tmp")
		write(t, h, []byte("new"), 0)
		must(t, h.Sync())
		must(t, f.Rename("/d/a.tmp", "/d/a"))
		b, err := f.Cut(seed).ReadFile("/d/a")
		must(t, err)
		switch string(b) {
		case "old":
			old++
		case "new":
			renamed++
		default:
			t.Fatalf("seed %d: %q", seed, b)
		}
	}
	if old == 0 || renamed == 0 {
		t.Errorf("%d old, %d new", old, renamed)
	}
}

func TestTruncateAndRegrowReadsZeros(t *testing.T) {
	f := machine(t)
	h := create(t, f, "/d/a")
	write(t, h, fill('x', 2*page), 0)
	must(t, h.Truncate(10))
	must(t, h.Truncate(100))
	must(t, h.Sync())
	must(t, f.SyncDir("/d"))
	b, err := f.Cut(0).ReadFile("/d/a")
	if err != nil || !bytes.Equal(b, append(fill('x', 10), make([]byte, 90)...)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestFullDiskTakesWhatFits(t *testing.T) {
	f := machine(t)
	h := create(t, f, "/d/a")
	f.SetFree(10)
	n, err := h.WriteAt(fill('x', 30), 0)
	if n != 10 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	must(t, h.Truncate(4))
	if n, err := h.WriteAt(fill('y', 7), 4); n != 6 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("after a truncate: wrote %d, %v", n, err)
	}
	write(t, h, fill('z', 10), 0) // overwriting takes no space
	must(t, f.Remove("/d/a"))
	write(t, create(t, f, "/d/b"), fill('x', 10), 0)
}

func TestPowerOffAfterCountsChanges(t *testing.T) {
	f := machine(t)
	f.PowerOffAfter(2)
	h := create(t, f, "/d/a")
	write(t, h, fill('x', 5), 0)
	if err := h.Sync(); !errors.Is(err, powercut.ErrPowerOff) {
		t.Fatalf("the third change: %v", err)
	}
	if _, err := f.ReadDir("/d"); !errors.Is(err, powercut.ErrPowerOff) {
		t.Fatalf("a read without power: %v", err)
	}
	if ops := f.Ops(); len(ops) != 2 || ops[0].Kind != powercut.KindCreate || ops[1].Len != 5 {
		t.Fatalf("log of operations: %v", ops)
	}
}

func TestOneFileKeepsItsBytesUnderAnOpenHandle(t *testing.T) {
	f := machine(t)
	must(t, f.WriteFile("/d/a", []byte("kept")))
	h, err := f.Open("/d/a")
	must(t, err)
	must(t, f.Remove("/d/a"))
	b := make([]byte, 4)
	if _, err := h.ReadAt(b, 0); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := f.Create("/d/a"); err != nil {
		t.Error(err)
	}
	if _, err := f.Create("/d/a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
	if _, err := h.WriteAt([]byte("x"), 0); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("write to a file opened for reading: %v", err)
	}
}

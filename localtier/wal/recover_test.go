package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// written is a log of rows, each in its own fdatasync, and the offsets after them.
func written(t testing.TB, fsys *powercut.FS, rows ...string) []wal.Offset {
	t.Helper()
	l := fresh(t, fsys)
	var offsets []wal.Offset
	for _, p := range rows {
		offsets = append(offsets, mustPut(t, l, p))
	}
	mustClose(t, l)
	return offsets
}

// noIndex takes index.json away: the witness did not reach the disk.
func noIndex(t testing.TB, fsys *powercut.FS) {
	t.Helper()
	if err := fsys.Remove(shardDir + "/" + segment.IndexFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func flip(b []byte, bit int) []byte {
	b = slices.Clone(b)
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

func mustRead(t testing.TB, fsys *powercut.FS, name string) []byte {
	t.Helper()
	b, err := fsys.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustWrite(t testing.TB, fsys *powercut.FS, name string, b []byte) {
	t.Helper()
	if err := fsys.WriteFile(name, b); err != nil {
		t.Fatal(err)
	}
}

// K42: damage with a valid frame of this segment after it, written when the
// damaged one was synced, is corruption: nothing is cut.
func TestK42ValidFrameAfterDamageIsCorruption(t *testing.T) {
	fsys := powercut.New()
	at := written(t, fsys, "one", "two", "three", "four")
	noIndex(t, fsys)
	whole := mustRead(t, fsys, segFile(1))
	for name, spoil := range map[string]func(b []byte){
		"zeroed frame":                          func(b []byte) { clear(b[at[0].Byte:at[1].Byte]) },
		"length of 4G":                          func(b []byte) { copy(b[at[0].Byte:], "\xff\xff\xff\xff") },
		"length of 0":                           func(b []byte) { clear(b[at[0].Byte : at[0].Byte+4]) },
		"zeros to the middle of a later header": func(b []byte) { clear(b[at[0].Byte : at[1].Byte+9]) },
		"unknown kind":                          func(b []byte) { b[at[0].Byte+4] = 0x77 },
		"pad":                                   func(b []byte) { b[at[0].Byte+6] = 1 },
	} {
		b := slices.Clone(whole)
		spoil(b)
		mustWrite(t, fsys, segFile(1), b)
		c := wantCorrupt(t, fsys, name)
		if c.Segment != 1 || c.UUID != at[0].UUID || c.Offset != at[0].Byte || c.Reason == "" {
			t.Errorf("%s: the error does not say where: %+v", name, c)
		}
	}
}

// K43: every bit of the header and the body of a frame that was synced is
// flipped, in the middle and, with index.json as the witness, at the very end:
// typed corruption, nothing cut.
func TestK43EveryBitFlipOfASyncedFrame(t *testing.T) {
	fsys := powercut.New()
	at := written(t, fsys, "one", "two", "three")
	whole := mustRead(t, fsys, segFile(1))
	for name, span := range map[string][2]int64{
		"first": {segment.HeaderBytes, at[0].Byte}, // SegmentStart and the first row
		"last":  {at[1].Byte, at[2].Byte},
	} {
		for bit := int(span[0]) * 8; bit < int(span[1])*8; bit++ {
			mustWrite(t, fsys, segFile(1), flip(whole, bit))
			wantCorrupt(t, fsys, fmt.Sprintf("%s frame, byte %d bit %d", name, bit/8, bit%8))
		}
	}
	noIndex(t, fsys)
	for bit := int(at[0].Byte) * 8; bit < int(at[1].Byte)*8; bit++ {
		mustWrite(t, fsys, segFile(1), flip(whole, bit))
		wantCorrupt(t, fsys, fmt.Sprintf("without index.json, byte %d bit %d", bit/8, bit%8))
	}
}

// K43 in a sealed segment that another one follows, its Seal and its header
// included.
func TestK43EveryBitFlipOfAnOlderSegment(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	mustPut(t, l, "one")
	mustSeal(t, l)
	mustPut(t, l, "two")
	mustClose(t, l)
	whole := mustRead(t, fsys, segFile(1))
	for bit := range len(whole) * 8 {
		mustWrite(t, fsys, segFile(1), flip(whole, bit))
		wantCorrupt(t, fsys, fmt.Sprintf("byte %d bit %d", bit/8, bit%8))
	}
}

// K45: a torn tail is cut and kept aside before anything is appended, at every
// length that a torn write can have.
func TestK45TornTailIsCutKeptAsideAndAppendedAfter(t *testing.T) {
	base := powercut.New()
	at := written(t, base, "one", "torn away")
	noIndex(t, base)
	whole := mustRead(t, base, segFile(1))
	for size := at[0].Byte + 1; size < at[1].Byte; size++ {
		fsys := base.Cut(0)
		mustWrite(t, fsys, segFile(1), whole[:size])
		noIndex(t, fsys)
		l, r := open(t, fsys)
		wantRows(t, r, "one")
		kept := mustRead(t, fsys, tornFile(1))
		if want := strings.TrimRight(string(whole[at[0].Byte:size]), "\x00"); string(kept) != want {
			t.Fatalf("size %d: kept %q aside, want %q", size, kept, want)
		}
		mustPut(t, l, "two")
		mustClose(t, l)
		l, r = open(t, fsys.Cut(0))
		wantRows(t, r, "one", "two")
		mustClose(t, l)
	}
}

// K45: what was kept aside of an earlier tear stays; the file is capped.
func TestK45SecondTearKeepsTheFirst(t *testing.T) {
	fsys := powercut.New()
	at := written(t, fsys, "one")
	for _, tear := range []string{"\x40\x00\x00\x00\x01\x00\x00\x00first", "\x40\x00\x00\x00\x01\x00\x00\x00second"} {
		b := mustRead(t, fsys, segFile(1))
		mustWrite(t, fsys, segFile(1), append(b, tear+strings.Repeat("\x07", 20)...))
		l, r := open(t, fsys)
		wantRows(t, r, "one")
		mustClose(t, l)
	}
	if kept := string(mustRead(t, fsys, tornFile(1))); !strings.Contains(kept, "first") || !strings.Contains(kept, "second") {
		t.Fatalf("kept %q", kept)
	}
	if b := mustRead(t, fsys, segFile(1)); int64(len(b)) != at[0].Byte {
		t.Fatalf("segment is %d bytes, %d were valid", len(b), at[0].Byte)
	}
}

// K47: the length is under a checksum of its own: no length, whatever it is
// changed to, makes a synced frame look like a torn tail.
func TestK47LengthIsChecksummed(t *testing.T) {
	fsys := powercut.New()
	at := written(t, fsys, "one", "two", "three")
	noIndex(t, fsys)
	whole := mustRead(t, fsys, segFile(1))
	for _, length := range []uint32{0, 1, 2, 255, 4096, segment.MaxFrameBytes, segment.MaxFrameBytes + 1, 1 << 31, 1<<32 - 1} {
		b := slices.Clone(whole)
		for i := range 4 {
			b[at[0].Byte+int64(i)] = byte(length >> (8 * i))
		}
		mustWrite(t, fsys, segFile(1), b)
		wantCorrupt(t, fsys, fmt.Sprintf("length %d", length))
	}
}

// index.json is a witness: it knows the last row, so its loss is not a torn tail.
func TestIndexWitnessesTheLastFrame(t *testing.T) {
	fsys := powercut.New()
	at := written(t, fsys, "one", "two")
	whole := mustRead(t, fsys, segFile(1))
	mustWrite(t, fsys, segFile(1), whole[:at[0].Byte])
	wantCorrupt(t, fsys, "segment cut short")
	mustWrite(t, fsys, segFile(1), whole[:at[0].Byte+5])
	wantCorrupt(t, fsys, "segment torn")
	// What index.json does not say a person may still decide: without it the tail
	// is torn.
	noIndex(t, fsys)
	l, r := open(t, fsys)
	wantRows(t, r, "one")
	mustClose(t, l)
}

// A damaged index.json is as good as none.
func TestDamagedIndexIsIgnored(t *testing.T) {
	fsys := powercut.New()
	written(t, fsys, "one", "two")
	name := shardDir + "/" + segment.IndexFile
	b := mustRead(t, fsys, name)
	for _, bad := range [][]byte{nil, b[:len(b)/2], make([]byte, len(b)), flip(b, len(b)*4)} {
		mustWrite(t, fsys, name, bad)
		l, r := open(t, fsys)
		wantRows(t, r, "one", "two")
		mustClose(t, l)
	}
}

// The newest file of every size up to its first row's end: moved aside while it
// is headless, a segment from then on. Never corruption, never in the way.
func TestNewestFileOfEverySize(t *testing.T) {
	base := powercut.New()
	l := fresh(t, base)
	mustPut(t, l, "one")
	mustSeal(t, l)
	off := mustPut(t, l, "two")
	mustClose(t, l)
	noIndex(t, base)
	whole := mustRead(t, base, segFile(2))
	for size := range off.Byte {
		for name, b := range map[string][]byte{
			"cut":   whole[:size],
			"zeros": make([]byte, size),
		} {
			fsys := base.Cut(0)
			noIndex(t, fsys)
			mustWrite(t, fsys, segFile(2), b)
			l, r := open(t, fsys)
			wantRows(t, r, "one")
			mustPut(t, l, "three")
			if s := l.State(); s.Segment != 2 {
				t.Fatalf("%s %d: goes on in segment %d", name, size, s.Segment)
			}
			mustClose(t, l)
			l, r = open(t, fsys.Cut(0))
			wantRows(t, r, "one", "three")
			mustClose(t, l)
		}
	}
}

// A headless newest file that index.json knows is no crash between create and
// fdatasync.
func TestHeadlessFileThatTheIndexKnowsIsCorruption(t *testing.T) {
	fsys := powercut.New()
	written(t, fsys, "one")
	mustWrite(t, fsys, segFile(1), nil)
	wantCorrupt(t, fsys, "emptied segment")
	noIndex(t, fsys)
	l, _ := open(t, fsys)
	if s := l.State(); s.Segment != 0 {
		t.Fatalf("state %+v", s)
	}
	begin(t, l)
	mustPut(t, l, "again")
	mustClose(t, l)
}

func threeSegments(t testing.TB) *powercut.FS {
	t.Helper()
	fsys := powercut.New()
	l := fresh(t, fsys)
	for _, p := range []string{"one", "two", "three"} {
		mustPut(t, l, p)
		mustSeal(t, l)
	}
	mustPut(t, l, "four")
	mustClose(t, l)
	return fsys
}

func TestChainFaultsAreCorruption(t *testing.T) {
	other := threeSegments(t)
	for name, spoil := range map[string]func(*powercut.FS){
		"first missing":  func(f *powercut.FS) { must(t, f.Remove(segFile(1))) },
		"middle missing": func(f *powercut.FS) { must(t, f.Remove(segFile(2))) },
		"two missing":    func(f *powercut.FS) { must(t, f.Remove(segFile(2))); must(t, f.Remove(segFile(3))) },
		"newest missing": func(f *powercut.FS) { must(t, f.Remove(segFile(4))) },
		"all missing": func(f *powercut.FS) {
			for id := range segment.ID(4) {
				must(t, f.Remove(segFile(id+1)))
			}
		},
		"another chain's":    func(f *powercut.FS) { mustWrite(t, f, segFile(2), mustRead(t, other, segFile(2))) },
		"swapped":            func(f *powercut.FS) { mustWrite(t, f, segFile(3), mustRead(t, f, segFile(2))) },
		"older not sealed":   func(f *powercut.FS) { b := mustRead(t, f, segFile(2)); mustWrite(t, f, segFile(2), b[:len(b)-44]) },
		"older torn in Seal": func(f *powercut.FS) { b := mustRead(t, f, segFile(2)); mustWrite(t, f, segFile(2), b[:len(b)-1]) },
		"older with a tail":  func(f *powercut.FS) { b := mustRead(t, f, segFile(2)); mustWrite(t, f, segFile(2), append(b, 0)) },
		"older empty":        func(f *powercut.FS) { mustWrite(t, f, segFile(2), nil) },
		"bad CHECKPOINT":     func(f *powercut.FS) { mustWrite(t, f, shardDir+"/CHECKPOINT", make([]byte, 32)) },
		"short CHECKPOINT":   func(f *powercut.FS) { mustWrite(t, f, shardDir+"/CHECKPOINT", nil) },
		"bad reclaim":        func(f *powercut.FS) { mustWrite(t, f, shardDir+"/reclaim.json", []byte("{}")) },
		"bad IDENTITY":       func(f *powercut.FS) { mustWrite(t, f, shardDir+"/IDENTITY", []byte("{}")) },
	} {
		fsys := threeSegments(t)
		spoil(fsys)
		wantCorrupt(t, fsys, name)
		// An open that reads nothing through finds all of these too.
		if l, err := wal.Open(t.Context(), shardDir, config(fsys), nil); !errors.Is(err, segment.ErrCorrupt) {
			t.Errorf("%s: without a replay: %v", name, err)
			if err == nil {
				stop(l)
			}
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLeftoversBelowReclaimAreUnlinkedUnread(t *testing.T) {
	fsys := threeSegments(t)
	b, err := segment.EncodeReclaim(segment.Reclaim{Seq: 2, Segment: 2})
	must(t, err)
	mustWrite(t, fsys, shardDir+"/reclaim.json", b)
	mustWrite(t, fsys, segFile(1), []byte("garbage that is never read"))
	l, err := wal.Open(t.Context(), shardDir, config(fsys), (&recorder{}).take)
	must(t, err)
	mustClose(t, l)
	for id, there := range map[segment.ID]bool{1: false, 2: false, 3: true, 4: true} {
		if _, err := fsys.ReadFile(segFile(id)); (err == nil) != there {
			t.Errorf("segment %d: %v", id, err)
		}
	}
	must(t, fsys.Remove(segFile(3)))
	wantCorrupt(t, fsys, "a segment above the reclaim point is missing")
}

// An error of reading is never a verdict: nothing is cut, moved or unlinked.
func TestReadErrorIsNoVerdict(t *testing.T) {
	base := threeSegments(t)
	before := base.Dump()
	for nth := 1; ; nth++ {
		fsys := base.Cut(0)
		hit := fsys.FailNth(powercut.KindRead, nth, syscall.EIO)
		l, err := wal.Open(t.Context(), shardDir, config(fsys), (&recorder{}).take)
		if !hit() {
			must(t, err)
			mustClose(t, l)
			if nth < 8 {
				t.Fatalf("an open made only %d reads", nth)
			}
			break
		}
		if !errors.Is(err, syscall.EIO) || errors.Is(err, segment.ErrCorrupt) {
			t.Fatalf("read %d: %v", nth, err)
		}
		for name, b := range fsys.Dump() {
			if strings.HasSuffix(name, ".seg") && string(b) != string(before[name]) {
				t.Fatalf("read %d: %s was changed", nth, name)
			}
		}
		if n := len(fsys.Dump()); n < len(before) {
			t.Fatalf("read %d: a file is gone", nth)
		}
	}
}

// A sink's error ends the open and comes back as it is, even one that looks like
// a verdict.
func TestSinkErrorIsReturned(t *testing.T) {
	fsys := threeSegments(t)
	before := fsys.Dump()
	for _, want := range []error{errors.New("mine"), &segment.InvalidFrameError{Offset: 3}} {
		n := 0
		_, err := wal.Open(t.Context(), shardDir, config(fsys), func(wal.Replayed) error {
			if n++; n == 5 {
				return want
			}
			return nil
		})
		if !errors.Is(err, want) {
			t.Fatalf("open: %v", err)
		}
		sameFiles(t, before, fsys.Dump(), "sink error")
	}
}

// Crashes during recovery: cut after every change that an open makes, and open
// again.
func TestPowerCutDuringRecovery(t *testing.T) {
	base := powercut.New()
	at := written(t, base, "one", "torn away")
	noIndex(t, base)
	b := mustRead(t, base, segFile(1))
	mustWrite(t, base, segFile(1), b[:at[1].Byte-3])
	for step := 0; ; step++ {
		for seed := range uint64(8) {
			fsys := base.Cut(0)
			fsys.PowerOffAfter(step)
			l, err := wal.Open(t.Context(), shardDir, config(fsys), (&recorder{}).take)
			if err == nil {
				fsys.PowerOffAfter(-1)
				mustClose(t, l)
				if step < 8 {
					t.Fatalf("recovery took only %d changes", step)
				}
				return
			}
			l, r := open(t, fsys.Cut(seed))
			wantRows(t, r, "one")
			mustPut(t, l, "two")
			mustClose(t, l)
		}
	}
}

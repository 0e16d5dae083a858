package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Scenario RFC0008.4: a torn tail on the newest segment is the end of the log: no
// error, cut once, and the next append begins where the torn frame did. On an
// older segment it is corruption.
func TestRFC0008_4_TornTail(t *testing.T) {
	t.Run("torn at random offsets", rfc4Random)
	t.Run("newest file without a header", rfc4Headless)
	t.Run("older segment torn", rfc4Older)
}

// rfc4Log is a sealed segment and an open one, whose last frame begins at begin
// and ends at end.
type rfc4Log struct {
	fsys       *powercut.FS
	rows       []string
	begin, end wal.Offset
	file       []byte // the open segment's, as long as it is
}

func newRFC4Log(t *testing.T, rng *rand.Rand) rfc4Log {
	t.Helper()
	x := rfc4Log{fsys: powercut.New()}
	l := fresh(t, x.fsys)
	add := func() wal.Offset {
		p := fmt.Sprintf("%d.", len(x.rows))
		for range rng.IntN(400) { // nothing that stale bytes could complete
			p += fmt.Sprintf("%016x ", rng.Uint64())
		}
		x.rows = append(x.rows, p)
		return mustPut(t, l, p)
	}
	add()
	mustSeal(t, l)
	for range 1 + rng.IntN(4) {
		x.begin = add()
	}
	x.end = add()
	mustClose(t, l)
	noIndex(t, x.fsys)
	x.file = mustRead(t, x.fsys, segFile(2))
	return x
}

// tails are what may stand behind the bytes that reached the disk: nothing, zeros
// of a file that was filled ahead, another segment's bytes in a recycled one.
func (x rfc4Log) tails(t *testing.T, at int64) map[string][]byte {
	t.Helper()
	prefix := x.file[:at]
	long := max(len(x.file), int(x.end.Byte)+5000)
	zeros := append(slices.Clone(prefix), make([]byte, long-int(at))...)
	stale := slices.Clone(zeros)
	old := mustRead(t, x.fsys, segFile(1))
	for i := int(at); i < len(stale); i++ {
		stale[i] = old[i%len(old)]
	}
	return map[string][]byte{"short": prefix, "zeros": zeros, "stale": stale}
}

func rfc4Random(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		x := newRFC4Log(t, rng)
		at := x.begin.Byte + 1 + rng.Int64N(x.end.Byte-x.begin.Byte-1)
		if seed%3 == 0 { // within the frame's header
			at = x.begin.Byte + 1 + rng.Int64N(segment.FrameHeaderBytes-1)
		}
		for name, file := range x.tails(t, at) {
			about := fmt.Sprintf("seed %d, torn %d bytes into the frame, then %s", seed, at-x.begin.Byte, name)
			fsys := x.fsys.Cut(0)
			noIndex(t, fsys)
			mustWrite(t, fsys, segFile(2), file)
			x.heals(t, fsys, about)
			// What looks like a frame of this segment is evidence: kept, to the byte.
			torn := bytes.TrimRight(x.file[x.begin.Byte:at], "\x00")
			kept, err := fsys.ReadFile(tornFile(2))
			if name == "short" && !bytes.Equal(kept, torn) || name != "stale" && len(kept) > len(torn) {
				t.Fatalf("%s: %d bytes kept aside, %v; want the %d torn ones", about, len(kept), err, len(torn))
			}
		}
	}
}

// heals opens what is torn, twice, the second time after a power cut, and then
// appends.
func (x rfc4Log) heals(t *testing.T, fsys *powercut.FS, about string) {
	t.Helper()
	survive := x.rows[:len(x.rows)-1]
	l, r := open(t, fsys)
	wantRows(t, r, survive...)
	mustClose(t, l)
	fsys = fsys.Cut(0) // the cut was durable before the open returned
	kept, keptErr := fsys.ReadFile(tornFile(2))
	ro, err := wal.OpenReadOnly(t.Context(), shardDir, config(fsys), nil)
	must(t, err)
	if tail := ro.Tail(); len(tail.Kept) != 0 || tail.End != x.begin.Byte {
		t.Fatalf("%s: after the cut the tail is %+v, want it to end at %d", about, tail, x.begin.Byte)
	}
	l, r = open(t, fsys)
	wantRows(t, r, survive...)
	if again, err := fsys.ReadFile(tornFile(2)); !bytes.Equal(again, kept) || (err == nil) != (keptErr == nil) {
		t.Fatalf("%s: the second open cut again", about)
	}
	b := batch("behind the cut")
	ticket, err := l.AppendBatch(t.Context(), b)
	must(t, err)
	end, err := ticket.Wait(t.Context())
	must(t, err)
	if begin := end.Byte - int64(segment.FrameHeaderBytes+segment.BatchBytes(b)); begin != x.begin.Byte || end.Segment != 2 {
		t.Fatalf("%s: the next frame begins at %d of segment %d, want %d of 2", about, begin, end.Segment, x.begin.Byte)
	}
	mustClose(t, l)
	l, r = open(t, fsys.Cut(0))
	wantRows(t, r, append(slices.Clone(survive), "behind the cut")...)
	mustClose(t, l)
}

// rfc4Headless: 0 to 23 bytes of a header, of zeros, and of the one over the
// other: the file never became a segment.
func rfc4Headless(t *testing.T) {
	x := newRFC4Log(t, rand.New(rand.NewPCG(1, 4)))
	for size := range segment.HeaderBytes {
		half := slices.Clone(x.file[:size])
		clear(half[size/2:])
		for name, b := range map[string][]byte{"cut": x.file[:size], "zeros": make([]byte, size), "half zeros": half} {
			fsys := x.fsys.Cut(0)
			noIndex(t, fsys)
			mustWrite(t, fsys, segFile(2), b)
			l, r := open(t, fsys)
			wantRows(t, r, x.rows[0])
			mustClose(t, l)
			fsys = fsys.Cut(0)
			if _, err := fsys.ReadFile(segFile(2)); err == nil {
				t.Fatalf("%s of %d bytes: the file still stands as segment 2", name, size)
			}
			l, r = open(t, fsys)
			wantRows(t, r, x.rows[0])
			if end := mustPut(t, l, "goes on"); end.Segment != 2 {
				t.Fatalf("%s of %d bytes: goes on in segment %d", name, size, end.Segment)
			}
			mustClose(t, l)
			l, r = open(t, fsys.Cut(0))
			wantRows(t, r, x.rows[0], "goes on")
			mustClose(t, l)
		}
	}
}

// rfc4Older: what is a torn tail on the newest segment is corruption on an older
// one, whatever index.json says.
func rfc4Older(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 44))
		x := newRFC4Log(t, rng)
		l, _ := open(t, x.fsys)
		mustSeal(t, l)
		mustPut(t, l, "newest")
		mustClose(t, l)
		file := mustRead(t, x.fsys, segFile(2))
		at := x.begin.Byte + rng.Int64N(int64(len(file))-x.begin.Byte)
		if seed%4 == 0 {
			at = rng.Int64N(segment.HeaderBytes) // headless
		}
		for _, witness := range []bool{true, false} {
			fsys := x.fsys.Cut(0)
			if !witness {
				noIndex(t, fsys)
			}
			mustWrite(t, fsys, segFile(2), file[:at])
			c := wantCorrupt(t, fsys, fmt.Sprintf("seed %d, cut at %d of %d", seed, at, len(file)))
			named := c.UUID == x.begin.UUID || at < segment.HeaderBytes // else nobody can know it
			if c.Segment != 2 || !named || c.Offset > at {
				t.Fatalf("cut at %d: %v", at, c)
			}
			if _, err := wal.OpenReadOnly(t.Context(), shardDir, config(fsys), nil); !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("cut at %d: read-only open: %v", at, err)
			}
		}
	}
}

package wal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// rfc5Log is three segments of four rows each, the last one open, and where each
// frame lies: at[id] has the ends of SegmentStart and of the rows.
type rfc5Log struct {
	fsys *powercut.FS
	at   map[segment.ID][]wal.Offset
}

func newRFC5Log(t testing.TB) rfc5Log {
	t.Helper()
	x := rfc5Log{powercut.New(), map[segment.ID][]wal.Offset{}}
	l := fresh(t, x.fsys)
	for id := segment.ID(1); id <= 3; id++ {
		for i := range 4 {
			b := batch(fmt.Sprintf("%d.%d", id, i))
			ticket, err := l.AppendBatch(bg, b)
			must(t, err)
			end, err := ticket.Wait(bg)
			must(t, err)
			if i == 0 {
				start := end
				start.Byte -= int64(segment.FrameHeaderBytes + segment.BatchBytes(b))
				x.at[id] = append(x.at[id], start)
			}
			x.at[id] = append(x.at[id], end)
		}
		if id < 3 {
			mustSeal(t, l)
		}
	}
	mustClose(t, l)
	return x
}

// frame is where row n of a segment lies, from 0.
func (x rfc5Log) frame(id segment.ID, n int) (from, to wal.Offset) { return x.at[id][n], x.at[id][n+1] }

// halts spoils a segment and wants the open to end there: the error names the
// place, nothing behind it was delivered, nothing on disk is changed, and the
// next open finds the same.
func (x rfc5Log) halts(t testing.TB, fsys *powercut.FS, id segment.ID, file []byte, at [2]int64, about string) *segment.CorruptionError {
	t.Helper()
	mustWrite(t, fsys, segFile(id), file)
	var c *segment.CorruptionError
	for range 2 {
		before := fsys.Dump()
		r := &recorder{}
		l, err := wal.Open(bg, shardDir, config(fsys), r.take)
		if err == nil {
			stop(l)
			t.Fatalf("%s: opened without an error", about)
		}
		if !errors.As(err, &c) {
			t.Fatalf("%s: %v, want a *segment.CorruptionError", about, err)
		}
		if c.Segment != id || c.UUID != x.at[id][0].UUID || c.Offset < at[0] || c.Offset > at[1] || c.Reason == "" {
			t.Fatalf("%s: %v; want segment %d, %s, offset %d to %d", about, err, id, x.at[id][0].UUID, at[0], at[1])
		}
		for _, o := range r.offsets {
			if o.Segment > id || o.Segment == id && o.Byte > at[0] {
				t.Fatalf("%s: delivered up to byte %d of segment %d", about, o.Byte, o.Segment)
			}
		}
		sameFiles(t, before, fsys.Dump(), about)
	}
	return c
}

// Scenario RFC0008.5: each kind of corruption is a typed error that names
// segment, UUID and offset; the replay stops there for all segments; nothing on
// disk is changed.
func TestRFC0008_5_CorruptFrame(t *testing.T) {
	t.Run("payload CRC on a closed segment", rfc5PayloadCRC)
	t.Run("written fields", rfc5Written)
	t.Run("torn on a closed segment", rfc5Torn)
	t.Run("each bit of a synced frame", rfc5EachBit)
}

func rfc5PayloadCRC(t *testing.T) {
	x := newRFC5Log(t)
	whole := mustRead(t, x.fsys, segFile(2))
	rng := rand.New(rand.NewPCG(5, 5))
	for range 40 {
		n := rng.IntN(4)
		from, to := x.frame(2, n)
		bit := int(from.Byte+segment.FrameHeaderBytes)*8 + rng.IntN(int(to.Byte-from.Byte-segment.FrameHeaderBytes)*8)
		fsys := x.fsys.Cut(0)
		c := x.halts(t, fsys, 2, flip(whole, bit), [2]int64{from.Byte, from.Byte}, fmt.Sprintf("payload of row %d, bit %d", n, bit))
		if !strings.Contains(c.Reason, "payload CRC") {
			t.Fatalf("reason %q", c.Reason)
		}
	}
}

// rfc5Written: fields that no build of this version writes, under checksums that
// are right: on a closed segment and at the end of the newest one.
func rfc5Written(t *testing.T) {
	x := newRFC5Log(t)
	for name, field := range map[string]struct {
		set    func(frame []byte)
		reason string
	}{
		"kind 0":          {func(f []byte) { f[4] = 0 }, "kind"},
		"kind 2":          {func(f []byte) { f[4] = 2 }, "kind"},
		"kind 8":          {func(f []byte) { f[4] = 8 }, "kind"},
		"kind 255":        {func(f []byte) { f[4] = 255 }, "kind"},
		"pad, first":      {func(f []byte) { f[5] = 1 }, "pad"},
		"pad, last":       {func(f []byte) { f[7] = 0x80 }, "pad"},
		"length over cap": {func(f []byte) { binary.LittleEndian.PutUint32(f, segment.MaxFrameBytes+1) }, "over the cap"},
		"length of 4 GiB": {func(f []byte) { binary.LittleEndian.PutUint32(f, 1<<32-1) }, "over the cap"},
	} {
		for _, id := range []segment.ID{2, 3} {
			for n := range 4 {
				from, to := x.frame(id, n)
				file := mustRead(t, x.fsys, segFile(id))
				frame := file[from.Byte:to.Byte]
				synced := binary.LittleEndian.Uint32(frame[12:])
				field.set(frame)
				segment.SealFrameHeader(frame, from.UUID, from.Byte, synced)
				fsys := x.fsys.Cut(0)
				about := fmt.Sprintf("%s in row %d of segment %d", name, n, id)
				c := x.halts(t, fsys, id, file, [2]int64{from.Byte, from.Byte}, about)
				if !strings.Contains(c.Reason, field.reason) {
					t.Errorf("%s: reason %q", about, c.Reason)
				}
				noIndex(t, fsys)
				x.halts(t, fsys, id, file, [2]int64{from.Byte, from.Byte}, about+", no index.json")
			}
		}
	}
}

func rfc5Torn(t *testing.T) {
	x := newRFC5Log(t)
	whole := mustRead(t, x.fsys, segFile(2))
	for n := range 4 {
		from, to := x.frame(2, n)
		for name, size := range map[string]int64{
			"before the header": from.Byte,
			"in the header":     from.Byte + 7,
			"after the header":  from.Byte + segment.FrameHeaderBytes,
			"in the payload":    to.Byte - 3,
		} {
			x.halts(t, x.fsys.Cut(0), 2, whole[:size], [2]int64{from.Byte, size}, fmt.Sprintf("row %d torn %s", n, name))
		}
	}
}

// rfc5EachBit flips each bit of a synced frame, header and payload: in a closed
// segment, in the middle of the newest one without a witness, and in its last
// frame with index.json as the witness.
func rfc5EachBit(t *testing.T) {
	x := newRFC5Log(t)
	for _, place := range []struct {
		id      segment.ID
		row     int
		witness bool
	}{{1, 0, false}, {2, 3, false}, {3, 0, false}, {3, 2, false}, {3, 3, true}} {
		fsys := x.fsys.Cut(0)
		mustWrite(t, fsys, shardDir+"/"+segment.IndexFile, mustRead(t, x.fsys, shardDir+"/"+segment.IndexFile))
		if !place.witness {
			noIndex(t, fsys)
		}
		whole := mustRead(t, fsys, segFile(place.id))
		from, to := x.frame(place.id, place.row)
		for bit := int(from.Byte) * 8; bit < int(to.Byte)*8; bit++ {
			about := fmt.Sprintf("segment %d, row %d, byte %d, bit %d", place.id, place.row, bit/8-int(from.Byte), bit%8)
			x.halts(t, fsys, place.id, flip(slices.Clone(whole), bit), [2]int64{from.Byte, from.Byte}, about)
		}
	}
}

package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// judge runs recovery's decision over a newest segment: the end of the valid
// prefix and what JudgeTail says, or the scanner's verdict.
func judge(t testing.TB, seg []byte, known int64) (Tail, error) {
	t.Helper()
	end, u, err := validPrefix(t, seg)
	var inv *InvalidFrameError
	if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &inv) {
		return Tail{}, err
	}
	return JudgeTail(bytes.NewReader(seg), int64(len(seg)), u, end, known)
}

func TestCleanTail(t *testing.T) {
	b := smallSegment(t)
	size := int64(len(b.b))
	for _, known := range []int64{0, size, size - 10} {
		if tail, err := judge(t, b.b, known); err != nil || tail.Torn || tail.End != size || tail.Cut != 0 || tail.Kept != nil {
			t.Errorf("known %d: %+v, %v", known, tail, err)
		}
	}
	if _, err := judge(t, b.b, size+1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("index.json knows more: %v", err)
	}
}

// K44, K45: zeros and torn frames behind the last valid frame are the end of the
// log; what looks like a frame of ours is kept.
func TestK45TornTail(t *testing.T) {
	b := smallSegment(t)
	size := int64(len(b.b))
	b.batch("tenant-a", row(1, strings.Repeat("torn", 50)))
	whole := bytes.Clone(b.b)
	frame := whole[size:]
	for what, c := range map[string]struct {
		tail []byte
		kept int
	}{
		"zeros":               {make([]byte, 5000), 0},
		"a byte of a header":  {frame[:1], 1},
		"half a header":       {frame[:10], 9},
		"a header":            {frame[:20], 20},
		"half a payload":      {frame[:70], 70},
		"payload zeroed":      {append(bytes.Clone(frame[:70]), make([]byte, len(frame)-70+100)...), 70},
		"header never landed": {append(make([]byte, 20), frame[20:]...), 0},
	} {
		seg := append(bytes.Clone(whole[:size]), c.tail...)
		tail, err := judge(t, seg, size)
		if err != nil || !tail.Torn || tail.End != size || tail.Cut != int64(len(c.tail)) {
			t.Errorf("%s: %+v, %v", what, tail, err)
		}
		if len(bytes.TrimRight(tail.Kept, "\x00")) != len(tail.Kept) || len(tail.Kept) != len(bytes.TrimRight(c.tail, "\x00")) && c.kept > 0 || (len(tail.Kept) > 0) != (c.kept > 0) {
			t.Errorf("%s: %d bytes kept", what, len(tail.Kept))
		}
	}
}

// A group write of several frames whose pages reached the disk in any order is
// a torn tail: none of them was acknowledged.
func TestGroupWriteInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := smallSegment(t)
	b.sync()
	size := int64(len(b.b))
	for range 30 {
		b.batch("tenant-a", randomRows(rng, 3)...)
	}
	for range 200 {
		seg := bytes.Clone(b.b)
		lost := false
		for at := size; at < int64(len(seg)); at += 512 {
			if rng.IntN(3) == 0 {
				clear(seg[at:min(at+512, int64(len(seg)))])
				lost = true
			}
		}
		tail, err := judge(t, seg, size)
		if err != nil || tail.End < size || lost != tail.Torn {
			t.Fatalf("lost %t: %+v, %v", lost, tail, err)
		}
	}
}

// K42: damage in the middle is not a torn tail, for a valid frame behind it was
// written when it was synced.
func TestK42DamageInTheMiddle(t *testing.T) {
	b := smallSegment(t)
	for i, at := range b.starts[:len(b.starts)-1] {
		seg := bytes.Clone(b.b)
		clear(seg[at : at+FrameHeaderBytes])
		_, err := judge(t, seg, 0)
		// The last group was never followed by a frame that knew it synced.
		if acked := at < int64(b.synced); errors.Is(err, ErrCorrupt) != acked {
			t.Errorf("frame %d: %v", i, err)
		}
	}
}

// K43, K47: every bit of every frame that a later frame knows to be synced.
// Nothing is ever cut: the finding is corruption, with its place.
func TestK43EveryBitOfASegment(t *testing.T) {
	b := smallSegment(t)
	for bit := HeaderBytes * 8; bit < int(b.synced)*8; bit++ {
		seg := bytes.Clone(b.b)
		seg[bit/8] ^= 1 << (bit % 8)
		tail, err := judge(t, seg, 0)
		var c *CorruptionError
		if !errors.As(err, &c) || c.UUID != b.u {
			t.Fatalf("bit %d (byte %d): %+v, %v", bit, bit/8, tail, err)
		}
		at := b.starts[0]
		for _, s := range b.starts {
			if s <= int64(bit/8) {
				at = s
			}
		}
		if c.Offset != at {
			t.Fatalf("bit %d (byte %d): reported at %d, the frame stands at %d", bit, bit/8, c.Offset, at)
		}
	}
}

// K47: a flipped bit in a length makes the frame reach beyond the file or end
// within itself. Seeds 000 and 001 took that for a torn tail.
func TestK47LengthFlipped(t *testing.T) {
	b := smallSegment(t)
	for i, at := range b.starts[1:] {
		for bit := range 32 {
			seg := bytes.Clone(b.b)
			seg[at+int64(bit/8)] ^= 1 << (bit % 8)
			end, _, err := validPrefix(t, seg)
			var inv *InvalidFrameError
			if !errors.As(err, &inv) || inv.Fault != FaultHeaderCRC || end != at {
				t.Fatalf("frame %d, bit %d: %v", i+1, bit, err)
			}
			if _, err := judge(t, seg, int64(len(seg))); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("frame %d, bit %d: %v", i+1, bit, err)
			}
		}
	}
}

// The last synced batch has no later frame to speak for it; index.json does.
func TestIndexSpeaksForTheLastBatch(t *testing.T) {
	b := smallSegment(t)
	size := int64(len(b.b))
	last := b.starts[len(b.starts)-1]
	for bit := int(last) * 8; bit < int(size)*8; bit++ {
		seg := bytes.Clone(b.b)
		seg[bit/8] ^= 1 << (bit % 8)
		if _, err := judge(t, seg, size); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d: %v", bit, err)
		}
		if tail, err := judge(t, seg, last); err != nil || tail.End != last || len(tail.Kept) == 0 {
			t.Fatalf("bit %d, index.json behind: %+v, %v", bit, tail, err)
		}
	}
}

// Two damages: the later frame's payload is torn too, but its header proves that
// the first was synced.
func TestTornWitness(t *testing.T) {
	b := smallSegment(t)
	seg := bytes.Clone(b.b)
	clear(seg[b.starts[1] : b.starts[1]+FrameHeaderBytes])
	end := len(seg)
	for i := range b.starts[2:] {
		at := b.starts[i+2] + FrameHeaderBytes
		if i+2 < len(b.starts)-1 {
			at = b.starts[i+2] + 4 // spoil its header as well
		}
		seg[at] ^= 0xff
	}
	if _, err := judge(t, seg[:end], 0); !errors.Is(err, ErrCorrupt) {
		t.Errorf("cut although a header behind was written when it was synced: %v", err)
	}
}

// Rows whose payload is a segment, of this one's own UUID even, are no frames of
// it: the offset is part of the seed.
func TestPayloadIsNoFrame(t *testing.T) {
	b := smallSegment(t)
	b.sync()
	inner := newBuilder(t, b.u, plainStart())
	inner.batch("x", row(1, "x"))
	inner.synced = 1 << 20 // claims more than it could know
	inner.batch("x", row(1, "x"))
	size := int64(len(b.b))
	b.batch("tenant-a", Row{Payload: inner.b})
	seg := bytes.Clone(b.b)
	seg[size+4] = 9 // its header is torn
	if tail, err := judge(t, seg, 0); err != nil || tail.End != size {
		t.Fatalf("%+v, %v", tail, err)
	}
}

// Stale bytes of a recycled file carry another UUID.
func TestRecycledFile(t *testing.T) {
	old := newBuilder(t, uuidOf(40), plainStart())
	for range 200 {
		old.sync()
		old.batch("tenant-a", row(1, strings.Repeat("old", 20)))
	}
	b := smallSegment(t)
	size := int64(len(b.b))
	seg := append(bytes.Clone(b.b), old.b[size:]...)
	tail, err := judge(t, seg, size)
	if err != nil || !tail.Torn || tail.End != size || len(tail.Kept) != 0 {
		t.Fatalf("%d kept, %+v, %v", len(tail.Kept), tail.End, err)
	}
}

// A kind that a newer build wrote is never cut off.
func TestNewerKindIsNoTornTail(t *testing.T) {
	b := smallSegment(t)
	b.frame(Kind(0x20), []byte("news"))
	if _, err := judge(t, b.b, 0); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
}

// Keeping is bounded.
func TestKeptIsCapped(t *testing.T) {
	b := smallSegment(t)
	size := int64(len(b.b))
	b.batch("tenant-a", row(1, "torn"))
	seg := append(b.b[:len(b.b)-1], bytes.Repeat([]byte{1}, TornKeepMax+5000)...)
	tail, err := judge(t, seg, 0)
	if err != nil || len(tail.Kept) != TornKeepMax || tail.Cut != int64(len(seg))-size {
		t.Fatal(len(tail.Kept), tail.Cut, err)
	}
}

func headless(seg []byte) error { return JudgeHeadless(bytes.NewReader(seg), int64(len(seg))) }

// A newest file of 0 to 23 bytes, and every other cut before its first fdatasync.
func TestHeadlessIsMovedAside(t *testing.T) {
	b := newBuilder(t, uuidOf(2), plainStart())
	for n := range b.b {
		if err := headless(b.b[:n]); err != nil {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	for what, seg := range map[string][]byte{
		"zeros":             make([]byte, 1<<20),
		"header, zeros":     append(AppendHeader(nil, uuidOf(2)), make([]byte, 4096)...),
		"zeros, then start": append(make([]byte, HeaderBytes), b.b[HeaderBytes:]...),
	} {
		if err := headless(seg); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	st := plainStart()
	for i := range 200 {
		st.Consumers = append(st.Consumers, Consumer{strings.Repeat("c", 20) + string(rune('A'+i%26)) + string(rune('a'+i/26)), 1})
	}
	big := newBuilder(t, uuidOf(2), st).b
	for at := 512; at < len(big); at += 512 {
		seg := bytes.Clone(big)
		clear(seg[at:min(at+512, len(seg))])
		if err := headless(seg); err != nil {
			t.Errorf("sector at %d lost: %v", at, err)
		}
	}
}

func TestHeadlessIsCorruption(t *testing.T) {
	b := smallSegment(t)
	if err := headless(b.b); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a whole segment: %v", err)
	}
	// Header or SegmentStart damaged under frames that know of synced bytes.
	for bit := range int(b.starts[1]) * 8 {
		seg := bytes.Clone(b.b)
		seg[bit/8] ^= 1 << (bit % 8)
		if err := headless(seg); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	seg := bytes.Clone(b.b)
	clear(seg[HeaderBytes : b.starts[1]-3])
	if err := headless(seg); !errors.Is(err, ErrCorrupt) {
		t.Errorf("SegmentStart zeroed: %v", err)
	}
	seg = bytes.Clone(b.b)
	clear(seg[:b.starts[1]])
	if err := headless(seg); !errors.Is(err, ErrCorrupt) {
		t.Errorf("header and SegmentStart zeroed: %v", err)
	}
	// Bytes made to look like frames everywhere do not make the search long.
	mine := make([]byte, 1<<20)
	for at := HeaderBytes + 512; at+20 < len(mine); at += 20 {
		binary.LittleEndian.PutUint32(mine[at:], uint32(min(MaxFrameBytes, len(mine)-at-20)))
		mine[at+4], mine[at+12] = byte(KindBatch), 1
	}
	if err := headless(mine); !errors.Is(err, ErrCorrupt) {
		t.Errorf("would-be frames: %v", err)
	}
}

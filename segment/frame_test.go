package segment

import (
	"bytes"
	"errors"
	"testing"
)

func TestHeader(t *testing.T) {
	b := AppendHeader(nil, uuidOf(2))
	if h, err := ParseHeader(b); err != nil || h.UUID != uuidOf(2) || len(b) != HeaderBytes {
		t.Fatal(h, err)
	}
	for what, at := range map[string]int{"magic": 0, "version": 4, "flags": 6} {
		c := bytes.Clone(b)
		c[at] ^= 0x40
		_, err := ParseHeader(c)
		if !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) != (what == "version") || !IsStructural(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ParseHeader(b[:23]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("short: %v", err)
	}
}

func TestFrameRoundTrip(t *testing.T) {
	u := uuidOf(2)
	prefix := []byte("before")
	b, err := AppendFrame(bytes.Clone(prefix), u, 1000, KindAck, 900, []byte("payload"))
	if err != nil || !bytes.HasPrefix(b, prefix) {
		t.Fatal(err)
	}
	b = b[len(prefix):]
	f, n, err := ParseFrame(append(b, "behind"...), u, 1000)
	if err != nil || n != len(b) || f.Kind != KindAck || f.Synced != 900 || f.Offset != 1000 || string(f.Payload) != "payload" || f.Bytes() != int64(n) {
		t.Fatal(f, n, err)
	}
	in, mark := BeginFrame(nil)
	in, err = EndFrame(append(in, "payload"...), mark, u, 1, KindAck, 0)
	if err != nil {
		t.Fatal(err)
	}
	SealFrameHeader(in, u, 1000, 900)
	if !bytes.Equal(in, b) {
		t.Errorf("encoded in place and sealed late: % x, want % x", in, b)
	}
	if _, _, err := ParseChunkFrame(in); err != nil {
		t.Errorf("as a chunk's frame: %v", err)
	}
}

func TestFrameTooLarge(t *testing.T) {
	big := make([]byte, MaxFrameBytes+1)
	if b, err := AppendFrame([]byte("x"), uuidOf(1), 0, KindBatch, 0, big); !errors.Is(err, ErrTooLarge) || string(b) != "x" {
		t.Error(len(b), err)
	}
	in, mark := BeginFrame([]byte("x"))
	if b, err := EndFrame(append(in, big...), mark, uuidOf(1), 0, KindBatch, 0); !errors.Is(err, ErrTooLarge) || string(b) != "x" {
		t.Error(len(b), err)
	}
	b, err := AppendFrame(nil, uuidOf(1), 0, KindBatch, 0, big[1:])
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ParseFrame(b, uuidOf(1), 0); err != nil {
		t.Errorf("exactly the cap: %v", err)
	}
}

// K43, K47: whichever bit of a frame is flipped, the length's included, it does
// not validate, and neither does it elsewhere or in another segment.
func TestK43FrameBitFlips(t *testing.T) {
	u := uuidOf(2)
	b := mustDo(AppendFrame(nil, u, 1000, KindBatch, 900, []byte("a payload of some bytes")))(t)
	for i := range len(b) * 8 {
		c := append(bytes.Clone(b), make([]byte, 64)...)
		c[i/8] ^= 1 << (i % 8)
		_, _, err := ParseFrame(c, u, 1000)
		var inv *InvalidFrameError
		if !errors.As(err, &inv) || inv.Offset != 1000 || !IsStructural(err) {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
		if want := i/8 < FrameHeaderBytes; (inv.Fault == FaultHeaderCRC) != want || !want && inv.Fault != FaultPayloadCRC {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
	}
	if _, _, err := ParseFrame(b, u, 1001); err == nil {
		t.Error("validates at another offset")
	}
	if _, _, err := ParseFrame(b, uuidOf(3), 1000); err == nil {
		t.Error("validates in another segment")
	}
	for n := range b {
		if _, _, err := ParseFrame(b[:n], u, 1000); err == nil {
			t.Errorf("validates cut to %d bytes", n)
		}
	}
}

// In a chunk nothing but the payload CRC speaks for kind, pad and payload.
func TestChunkFrameBitFlips(t *testing.T) {
	b := mustDo(AppendFrame(nil, uuidOf(2), 1000, KindBatch, 900, []byte("a payload of some bytes")))(t)
	for i := range len(b) * 8 {
		if at := i / 8; at >= 12 && at < FrameHeaderBytes {
			continue // synced and header CRC belong to the segment
		}
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		if _, _, err := ParseChunkFrame(c); err == nil {
			t.Fatalf("bit %d flipped and not seen", i)
		}
	}
}

// What a right header CRC vouches for and this build refuses was written so.
func TestWrittenFaults(t *testing.T) {
	u := uuidOf(2)
	for _, c := range []struct {
		fault FrameFault
		spoil func(b []byte)
	}{
		{FaultKind, func(b []byte) { b[4] = 2 }},
		{FaultKind, func(b []byte) { b[4] = 8 }},
		{FaultKind, func(b []byte) { b[4] = 0 }},
		{FaultPad, func(b []byte) { b[7] = 1 }},
		{FaultLength, func(b []byte) { b[3] = 2 }},
		{FaultSynced, func(b []byte) { le.PutUint32(b[12:], 1001) }},
	} {
		b := mustDo(AppendFrame(nil, u, 1000, KindBatch, 900, []byte("payload")))(t)
		c.spoil(b)
		SealFrameHeader(b, u, 1000, le.Uint32(b[12:]))
		_, _, err := ParseFrame(b, u, 1000)
		var inv *InvalidFrameError
		if !errors.As(err, &inv) || inv.Fault != c.fault || !inv.Fault.Written() {
			t.Errorf("%v: got %v", c.fault, err)
		}
	}
}

func TestEncodeAllocatesNothing(t *testing.T) {
	rows := make([]Row, 16)
	for i := range rows {
		rows[i] = Row{Time: int64(i), Txn: []byte("t"), Payload: make([]byte, 256)}
	}
	b := Batch{Stream: "tenant-a", First: 5, Producer: "p", Sequence: 3, Rows: rows}
	buf := make([]byte, 0, 1<<16)
	u := uuidOf(2)
	allocs := testing.AllocsPerRun(100, func() {
		out, mark := BeginFrame(buf)
		out, err := AppendBatch(out, &b)
		if err == nil {
			out, err = EndFrame(out, mark, u, 4096, KindBatch, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		SealFrameHeader(out[mark:], u, 8192, 4096)
	})
	if allocs != 0 {
		t.Errorf("%v allocations a frame", allocs)
	}
}

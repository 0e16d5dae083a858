package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// seeds adds inputs, which are committed under testdata/fuzz as well (-update
// writes them), beside whatever the fuzzer once found.
func seeds(f *testing.F, inputs ...[]byte) {
	f.Helper()
	for i, b := range inputs {
		seed(f, i, b)
	}
}

// seed adds one input of any number of arguments.
func seed(f *testing.F, i int, args ...any) {
	f.Helper()
	f.Add(args...)
	if !*update {
		return
	}
	text := "go test fuzz v1\n"
	for _, a := range args {
		switch v := a.(type) {
		case string, []byte:
			text += fmt.Sprintf("%T(%q)\n", v, v)
		default:
			text += fmt.Sprintf("%T(%v)\n", v, v)
		}
	}
	text = strings.ReplaceAll(text, "[]uint8(", "[]byte(")
	dir := filepath.Join("testdata", "fuzz", f.Name())
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, fmt.Sprintf("seed-%d", i)), []byte(text), 0o644))
	if err != nil {
		f.Fatal(err)
	}
}

// canonical holds a decoder against its encoder: what decodes encodes to the
// same bytes, and what does not is structural.
func canonical[T any](t *testing.T, b []byte, dec func([]byte) (T, error), enc func(*T) ([]byte, error)) {
	t.Helper()
	v, err := dec(b)
	if err != nil {
		if !IsStructural(err) {
			t.Fatalf("not structural: %v", err)
		}
		return
	}
	again, err := enc(&v)
	if err != nil || !bytes.Equal(again, b) {
		t.Fatalf("% x decodes to %+v, which encodes to % x (%v)", b, v, again, err)
	}
}

func FuzzBatch(f *testing.F) {
	seeds(f,
		mustDo(AppendBatch(nil, &Batch{Stream: "tenant-a", First: 3, Rows: []Row{row(1, "x"), row(-1, "")}}))(f),
		mustDo(AppendBatch(nil, &Batch{Stream: AuditStream(1), First: 1 << 60, Producer: "p", Sequence: 9, Rows: []Row{{Txn: []byte("t")}}}))(f),
		[]byte{0, 1, 'a', 1, 0x80, 0x80, 0x80, 0x01, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical(t, b, DecodeBatch, func(v *Batch) ([]byte, error) { return AppendBatch(nil, v) })
		v, err := DecodeBatch(b)
		if err != nil {
			return
		}
		s, first, rows, err := BatchSpan(b)
		if err != nil || s != v.Stream || first != v.First || rows != len(v.Rows) || BatchBytes(&v) != len(b) {
			t.Fatal(s, first, rows, err)
		}
		if got, err := rowsOf(Frame{Payload: b}); err != nil || !reflect.DeepEqual(got, v.Rows) {
			t.Fatal(got, err)
		}
	})
}

func FuzzStart(f *testing.F) {
	st := plainStart()
	plain := mustDo(AppendStart(nil, &st))(f)
	st.Consumers, st.Producers = []Consumer{{"a", 1}, {"b", 1 << 50}}, []Producer{{"p", 7, 8, 9}}
	seeds(f, plain, mustDo(AppendStart(nil, &st))(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical(t, b, DecodeStart, func(v *Start) ([]byte, error) { return AppendStart(nil, v) })
	})
}

func FuzzSeal(f *testing.F) {
	seeds(f, AppendSeal(nil, Seal{3, 104, 5}))
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical(t, b, DecodeSeal, func(v *Seal) ([]byte, error) { return AppendSeal(nil, *v), nil })
	})
}

func FuzzConsumer(f *testing.F) {
	seeds(f, mustDo(AppendConsumer(nil, Consumer{"billing", 104}))(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical(t, b, DecodeConsumer, func(v *Consumer) ([]byte, error) { return AppendConsumer(nil, *v) })
	})
}

func FuzzHeader(f *testing.F) {
	seeds(f, AppendHeader(nil, uuidOf(1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > HeaderBytes {
			b = b[:HeaderBytes]
		}
		canonical(t, b, ParseHeader, func(v *Header) ([]byte, error) { return AppendHeader(nil, v.UUID), nil })
	})
}

func FuzzCheckpoint(f *testing.F) {
	seeds(f, EncodeCheckpoint(Checkpoint{uuidOf(1), 4096}))
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical(t, b, DecodeCheckpoint, func(v *Checkpoint) ([]byte, error) { return EncodeCheckpoint(*v), nil })
	})
}

// FuzzFrame also parses frames whose CRCs are put right, to get behind them.
func FuzzFrame(f *testing.F) {
	seeds(f, mustDo(AppendFrame(nil, uuidOf(1), 77, KindAck, 50, []byte("payload")))(f), make([]byte, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		for range 2 {
			fr, n, err := ParseFrame(b, uuidOf(1), 77)
			if err != nil {
				if !IsStructural(err) {
					t.Fatal(err)
				}
			} else {
				again, err := AppendFrame(nil, uuidOf(1), 77, fr.Kind, fr.Synced, fr.Payload)
				if err != nil || !bytes.Equal(again, b[:n]) {
					t.Fatalf("% x parses to % x, %v", b, again, err)
				}
				if c, m, err := ParseChunkFrame(b); err != nil || m != n || !bytes.Equal(c.Payload, fr.Payload) {
					t.Fatal(err)
				}
			}
			if len(b) < FrameHeaderBytes {
				return
			}
			b = bytes.Clone(b)
			le.PutUint32(b[8:], payloadCRC(b, b[FrameHeaderBytes:min(int64(len(b)), max(FrameHeaderBytes, FrameLen(b)))]))
			SealFrameHeader(b, uuidOf(1), 77, le.Uint32(b[12:]))
		}
	})
}

// FuzzSegment gives a file of any bytes to all that read one.
func FuzzSegment(f *testing.F) {
	seeds(f, smallSegment(f).b, smallSegment(f).seal(), newBuilder(f, uuidOf(3), plainStart()).seal(), make([]byte, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		size := int64(len(b))
		end, u, err := validPrefix(t, b)
		if err != nil && !errors.Is(err, io.EOF) && !IsStructural(err) {
			t.Fatal(err)
		}
		if end > 0 {
			tail, err := JudgeTail(bytes.NewReader(b), size, u, end, 0)
			if err != nil && !IsStructural(err) || err == nil && tail.End != end {
				t.Fatal(tail, err)
			}
		}
		if err := JudgeHeadless(bytes.NewReader(b), size); err != nil && !IsStructural(err) {
			t.Fatal(err)
		}
		if _, err := DescribeSegment(bytes.NewReader(b), size, 10); err != nil {
			t.Fatal(err)
		}
		if _, err := PlanBundle(bytes.NewReader(b), size); err != nil && !IsStructural(err) {
			t.Fatal(err)
		}
	})
}

// FuzzBundle reads its input as frames to write: kind, length, payload. What
// seals must come back from its slot byte for byte.
func FuzzBundle(f *testing.F) {
	script := func(parts ...any) (b []byte) {
		for i := 0; i < len(parts); i += 2 {
			p := parts[i+1].([]byte)
			b = append(append(b, byte(parts[i].(Kind)), byte(len(p))), p...)
		}
		return b
	}
	batch := func(s string, first Seq) []byte {
		return mustDo(AppendBatch(nil, &Batch{Stream: s, First: first, Rows: []Row{row(1, "x")}}))(f)
	}
	ack := mustDo(AppendConsumer(nil, Consumer{"c", 1}))(f)
	seeds(f, nil, script(KindBatch, batch("a", 100), KindAck, ack, KindBatch, batch("b", 101), KindBatch, batch("a", 102)),
		script(KindConsumerCreate, ack, KindConsumerRemove, ack))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newBuilder(t, uuidOf(1), plainStart())
		for len(b) >= 2 {
			n := min(int(b[1]), len(b)-2)
			k, p := Kind(b[0]), b[2:2+n]
			b = b[2+n:]
			if _, first, rows, err := BatchSpan(p); k == KindBatch && err == nil && first == w.next {
				w.next += Seq(rows)
			}
			w.frame(k, p)
		}
		seg := w.seal()
		p, err := PlanBundle(bytes.NewReader(seg), int64(len(seg)))
		if err != nil {
			if !IsStructural(err) {
				t.Fatal(err)
			}
			return
		}
		var out bytes.Buffer
		if _, err := p.WriteTo(&out, BundleOptions{}); err != nil {
			// A batch whose head is right and whose rows are not is seen only here.
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		fo := reopen(t, out.Bytes())
		var back memFile
		if err := RestoreSegment(fo, rawOf(out.Bytes(), fo), &back); err != nil || !bytes.Equal(back.b, seg) {
			t.Fatal("came back different", err)
		}
	})
}

func FuzzFooter(f *testing.F) {
	_, slot := smallSlot(f)
	pack := &Footer{Kind: ObjPack, Chunks: []Chunk{
		{Stream: "a", Epoch: 1, Shard: 2, First: 5, Last: 9, Rows: 3, Stored: 50, Raw: 100, Codec: CodecZstd, MinTime: -3, MaxTime: 4},
		{Stream: "ab", Epoch: 1, Shard: 2, First: 6, Last: 8, Rows: 2, Offset: 50, Stored: 64, Raw: 64},
	}}
	seeds(f, mustDo(EncodeFooter(slot))(f), mustDo(EncodeFooter(pack))(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical(t, b, DecodeFooter, func(v **Footer) ([]byte, error) { return EncodeFooter(*v) })
		// The same as the tail of an object, whose chunks end where it begins.
		fo, err := DecodeFooter(b)
		if err != nil || fo.ChunksEnd() > 1<<40 {
			return
		}
		tail := AppendTrailer(bytes.Clone(b), trailerOf(b, fo.ChunksEnd()))
		d, need, err := DescribeObject(tail, fo.ChunksEnd()+int64(len(tail)), 10)
		if err != nil || need != 0 || d.Problem != "" {
			t.Fatal(d, need, err)
		}
	})
}

func FuzzTail(f *testing.F) {
	obj, _ := smallSlot(f)
	seeds(f, obj, obj[len(obj)-TrailerBytes:], obj[:len(obj)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, size := range []int64{int64(len(b)), int64(len(b)) + 1000} {
			fo, need, err := OpenTail(b, size)
			if (fo != nil) == (err != nil) != (need > 0) || need > size {
				t.Fatal(fo, need, err)
			}
			if err != nil && !IsStructural(err) {
				t.Fatal(err)
			}
		}
	})
}

// FuzzRestore gives the bytes of an object, its tail put right, to the way back.
func FuzzRestore(f *testing.F) {
	obj, slot := smallSlot(f)
	seeds(f, obj[:slot.ChunksEnd()])
	f.Fuzz(func(t *testing.T, b []byte) {
		var back memFile
		err := RestoreSegment(slot, func(i int) ([]byte, error) {
			c := &slot.Chunks[i]
			raw := b[min(c.Offset, int64(len(b))):min(c.End(), int64(len(b)))]
			if c.Codec == CodecZstd {
				return decompress(nil, raw, c.Raw)
			}
			return raw, nil
		}, &back)
		if err == nil && !bytes.Equal(back.b, smallSegment(t).seal()) {
			t.Fatal("another segment was proven")
		}
	})
}

func FuzzDecompress(f *testing.F) {
	seeds(f, compress(nil, []byte("some bytes, some bytes, some bytes")), compress(nil, make([]byte, 1<<20)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, want := range []int64{0, 34, 1 << 20} {
			c := Chunk{Stream: "s", Codec: CodecZstd, Stored: int64(len(b)), Raw: want, CRC: crcUpdate(0, b)}
			if _, err := DecodeChunk(&c, b); err == nil {
				t.Fatal("taken with a wrong digest")
			}
			raw, err := decompress(nil, b, want)
			if err == nil && int64(len(raw)) != want {
				t.Fatal(len(raw))
			}
		}
	})
}

// FuzzCutRows also cuts frames whose CRCs are put right.
func FuzzCutRows(f *testing.F) {
	raw := chunkOf(f, "s", []Row{{Seq: 5}, {Seq: 6}, {Seq: 7}}, []Row{{Seq: 9, Payload: []byte("x")}})
	seed(f, 0, raw, uint64(6), uint64(9))
	seed(f, 1, raw, uint64(0), uint64(5))
	f.Fuzz(func(t *testing.T, raw []byte, from, to uint64) {
		raw = bytes.Clone(raw)
		for off := 0; off+FrameHeaderBytes <= len(raw) && FrameLen(raw[off:]) <= int64(len(raw)-off); off += int(FrameLen(raw[off:])) {
			fr := raw[off:][:FrameLen(raw[off:])]
			le.PutUint32(fr[8:], payloadCRC(fr, fr[FrameHeaderBytes:]))
		}
		out, tally, err := CutRows(raw, Seq(from), Seq(to))
		if err != nil {
			if !IsStructural(err) {
				t.Fatal(err)
			}
			return
		}
		again, err := TallyFrames(out)
		if err != nil || again != tally || tally.Rows > 0 && (tally.First < Seq(from) || tally.Last > Seq(to)) {
			t.Fatalf("%+v, counted again %+v, %v", tally, again, err)
		}
	})
}

func FuzzDocuments(f *testing.F) {
	var inputs [][]byte
	for _, name := range []string{"reclaim", "index", "identity", "head", "stamp", "topology", "trim"} {
		inputs = append(inputs, documents(f)[name].bytes)
	}
	seeds(f, inputs...)
	f.Fuzz(func(t *testing.T, b []byte) {
		// The digest is put right, to get behind it.
		if n := len(b) - digestTail; n > 0 && string(b[n:n+len(digestField)]) == digestField {
			b = resigned(string(b[:n]) + "}")
		}
		for name, d := range documents(t) {
			again, err := d.again(b)
			if err != nil && !IsStructural(err) {
				t.Fatalf("%s: %v", name, err)
			}
			if err == nil && !bytes.Equal(again, b) {
				t.Fatalf("%s: %q encodes to %q", name, b, again)
			}
		}
	})
}

func FuzzMeta(f *testing.F) {
	m := SlotMeta{uuidOf(1), 2, 3}.Map()
	seed(f, 0, m[MetaSegmentUUID], m[MetaSegmentDigest], m[MetaSegmentBytes])
	f.Fuzz(func(t *testing.T, u, d, n string) {
		m, err := ParseMeta(map[string]string{MetaSegmentUUID: u, MetaSegmentDigest: d, MetaSegmentBytes: n})
		if err != nil {
			if !IsStructural(err) {
				t.Fatal(err)
			}
			return
		}
		if got := m.Map(); got[MetaSegmentUUID] != u || got[MetaSegmentDigest] != d || got[MetaSegmentBytes] != n {
			t.Fatal(got)
		}
	})
}

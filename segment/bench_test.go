package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func benchRows(n, size int) []Row {
	rng := rand.New(rand.NewPCG(1, 1))
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{Seq: Seq(i + 1), Time: int64(i) * 1000, Payload: logLine(rng, size)}
	}
	return rows
}

// logLine looks like a structured log record: it compresses about fourfold.
func logLine(rng *rand.Rand, size int) []byte {
	b := fmt.Appendf(nil, `{"ts":"2026-01-02T03:04:05.%09dZ","level":"info","tenant":"tenant-%04d","trace":"%016x%016x","msg":"request served","path":"/v1/streams/%d/rows","status":200,"ms":%d`,
		rng.IntN(1e9), rng.IntN(500), rng.Uint64(), rng.Uint64(), rng.IntN(10000), rng.IntN(900))
	for len(b) < size {
		b = fmt.Appendf(b, `,"k%d":"%x"`, rng.IntN(20), rng.Uint32())
	}
	return b[:size]
}

// BenchmarkEncodeBatch is the append path: payload in place, header, and the
// header again at write time.
func BenchmarkEncodeBatch(b *testing.B) {
	for _, c := range []struct{ rows, size int }{{1, 256}, {1, 1024}, {16, 1024}, {100, 256}} {
		b.Run(fmt.Sprintf("rows=%d/size=%d", c.rows, c.size), func(b *testing.B) {
			batch := Batch{Stream: "tenant-a", First: 5, Rows: benchRows(c.rows, c.size)}
			buf := make([]byte, 0, 1<<20)
			b.SetBytes(int64(c.rows * c.size))
			b.ReportAllocs()
			for b.Loop() {
				out, mark := BeginFrame(buf)
				out, err := AppendBatch(out, &batch)
				if err == nil {
					out, err = EndFrame(out, mark, uuidOf(1), 4096, KindBatch, 0)
				}
				if err != nil {
					b.Fatal(err)
				}
				SealFrameHeader(out[mark:], uuidOf(1), 8192, 4096)
			}
		})
	}
}

func BenchmarkDecodeBatch(b *testing.B) {
	batch := Batch{Stream: "tenant-a", First: 5, Rows: benchRows(100, 256)}
	p := mustDo(AppendBatch(nil, &batch))(b)
	var into Batch
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeBatchInto(p, &into); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSealFrameHeader(b *testing.B) {
	f := mustDo(AppendFrame(nil, uuidOf(1), 0, KindBatch, 0, make([]byte, 1024)))(b)
	b.ReportAllocs()
	for b.Loop() {
		SealFrameHeader(f, uuidOf(1), 8192, 4096)
	}
}

func benchSegment(b *testing.B, streams, rowBytes, total int) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	s := newBuilder(b, uuidOf(1), plainStart())
	for len(s.b) < total {
		s.batch(fmt.Sprintf("tenant-%05d", rng.IntN(streams)), Row{Time: int64(len(s.b)), Payload: logLine(rng, rowBytes)})
	}
	return s.seal()
}

func BenchmarkScan(b *testing.B) {
	seg := benchSegment(b, 100, 1024, 64<<20)
	b.SetBytes(int64(len(seg)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := validPrefix(b, seg); !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
}

// BenchmarkJudgeTail goes through a torn tail of zeros, of text, and of bytes
// that look like headers until their CRC is seen.
func BenchmarkJudgeTail(b *testing.B) {
	base := smallSegment(b).b
	near := bytes.Repeat([]byte{1, 0, 0, 0}, 16<<18)
	for name, tail := range map[string][]byte{"zeros": make([]byte, 16<<20), "text": randomBytes(rand.New(rand.NewPCG(1, 1)), 16<<20), "near": near} {
		b.Run(name, func(b *testing.B) {
			seg := append(bytes.Clone(base), tail...)
			b.SetBytes(int64(len(tail)))
			for b.Loop() {
				if _, err := JudgeTail(bytes.NewReader(seg), int64(len(seg)), uuidOf(2), int64(len(base)), 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBundle(b *testing.B) {
	for _, streams := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			seg := benchSegment(b, streams, 1024, 64<<20)
			b.SetBytes(int64(len(seg)))
			b.ReportAllocs()
			for b.Loop() {
				p := mustDo(PlanBundle(bytes.NewReader(seg), int64(len(seg))))(b)
				mustDo(p.WriteTo(io.Discard, BundleOptions{}))(b)
			}
		})
	}
}

func BenchmarkRestore(b *testing.B) {
	seg := benchSegment(b, 100, 1024, 64<<20)
	obj, f := bundle(b, seg, BundleOptions{})
	file := memFile{make([]byte, len(seg))}
	b.SetBytes(int64(len(seg)))
	b.ReportAllocs()
	for b.Loop() {
		if err := RestoreSegment(f, rawOf(obj, f), &file); err != nil {
			b.Fatal(err)
		}
	}
}

func benchChunk(b *testing.B) []byte {
	rows := benchRows(8000, 1024)
	var batches [][]Row
	for i := 0; i < len(rows); i += 4 {
		batches = append(batches, rows[i:i+4])
	}
	return chunkOf(b, "tenant-a", batches...)
}

// BenchmarkSettle is what settle does to a chunk: decode, cut, tally, encode.
func BenchmarkSettle(b *testing.B) {
	raw := benchChunk(b)
	meta := Chunk{Stream: "tenant-a", Epoch: 1, Shard: 1}
	meta.SetTally(mustDo(TallyFrames(raw))(b))
	var src bytes.Buffer
	o := NewObjectWriter(&src, &Footer{Kind: ObjStream})
	if err := o.AddChunk(meta, raw); err != nil {
		b.Fatal(err)
	}
	c := mustDo(o.Finish())(b).Chunks[0]
	b.Logf("%d raw, %d stored", c.Raw, c.Stored)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	b.ResetTimer()
	var room []byte
	for b.Loop() {
		got, err := DecodeChunkInto(room, &c, src.Bytes()[:c.Stored])
		if err != nil {
			b.Fatal(err)
		}
		room = got
		out, tally, err := CutRows(got, 0, ^Seq(0))
		if err != nil {
			b.Fatal(err)
		}
		m := meta
		m.SetTally(tally)
		w := NewObjectWriter(io.Discard, &Footer{Kind: ObjStream})
		if err := w.AddChunk(m, out); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTallyFrames(b *testing.B) {
	raw := benchChunk(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		mustDo(TallyFrames(raw))(b)
	}
}

// BenchmarkZstd is where the level was chosen.
func BenchmarkZstd(b *testing.B) {
	raw := benchChunk(b)
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression} {
		for _, lit := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/lit=%t", level, lit), func(b *testing.B) {
				e := must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level), zstd.WithWindowSize(zstdWindow),
					zstd.WithSingleSegment(true), zstd.WithAllLitEntropyCompression(lit)))
				var out []byte
				b.SetBytes(int64(len(raw)))
				for b.Loop() {
					out = e.EncodeAll(raw, out[:0])
				}
				b.ReportMetric(float64(len(raw))/float64(len(out)), "ratio")
			})
		}
	}
	b.Run("decode", func(b *testing.B) {
		packed := compress(nil, raw)
		room := make([]byte, 0, len(raw))
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			mustDo(decompress(room, packed, int64(len(raw))))(b)
		}
	})
}

func BenchmarkFooter(b *testing.B) {
	seg := newBuilder(b, uuidOf(1), plainStart())
	for i := range 50_000 {
		seg.batch(fmt.Sprintf("tenant-%08d", i), Row{Payload: []byte("0123456789")})
	}
	_, f := bundle(b, seg.seal(), BundleOptions{})
	enc := mustDo(EncodeFooter(f))(b)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mustDo(EncodeFooter(f))(b)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mustDo(DecodeFooter(enc))(b)
		}
	})
}

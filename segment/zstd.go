package segment

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// zstdWindow bounds what a decoder must keep, and an encoder looks back.
	zstdWindow = 4 << 20
	// zstdBlockMax is the most that one block decodes to, zstdBlockMin the bytes
	// its header takes: together they bound what stored bytes can ask for.
	zstdBlockMax = 128 << 10
	zstdBlockMin = 3
)

// The pools keep coders for reuse: building one costs more than a small chunk.
// They hold no state that outlives a call, and start no goroutines.
var (
	zstdEncoders = coders[*zstd.Encoder]{pool: sync.Pool{New: func() any { return newEncoder() }}}
	zstdDecoders = coders[*zstd.Decoder]{pool: sync.Pool{New: func() any { return newDecoder() }}}
)

// coders is a pool, with some that it keeps for good if KeepCoders says so.
type coders[T any] struct {
	pool sync.Pool

	mu   sync.Mutex // below
	kept []T
	keep int
}

func (c *coders[T]) get() T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.kept); n > 0 {
		v := c.kept[n-1]
		c.kept = c.kept[:n-1]
		return v
	}
	return c.pool.Get().(T)
}

func (c *coders[T]) put(v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) < c.keep {
		c.kept = append(c.kept, v)
		return
	}
	c.pool.Put(v)
}

// KeepCoders makes n compressors and decompressors now and keeps that many for good. It is
// for runs in bubbles of testing/synctest, one after the other: a coder has a channel, and
// one that was made inside a bubble is no use to the next. It is called once, before them.
func KeepCoders(n int) {
	zstdEncoders.fill(n, newEncoder, func(e *zstd.Encoder) { e.EncodeAll([]byte{0}, nil) })
	zstdDecoders.fill(n, newDecoder, func(*zstd.Decoder) {})
}

func (c *coders[T]) fill(n int, build func() T, first func(T)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.keep = n; len(c.kept) < n; {
		v := build()
		first(v) // an encoder makes its channel with its first call
		c.kept = append(c.kept, v)
	}
}

// newEncoder makes an encoder for EncodeAll. A single segment makes it state the
// content's size also when that is small, so that a decoder knows before it
// begins; literals are entropy-coded also where nothing repeats, for rows full
// of hex or base64. Level: measured in BenchmarkZstd;
// SpeedFastest keeps settle above its goal of 150 MB/s on half a machine, and
// the next level saves a few per cent more at less than two thirds of the speed.
func newEncoder() *zstd.Encoder {
	return must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
		zstd.WithSingleSegment(true), zstd.WithAllLitEntropyCompression(true)))
}

// newDecoder makes a decoder for DecodeAll that never writes beyond the room it
// was given.
func newDecoder() *zstd.Decoder {
	return must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(ChunkRawMax), zstd.WithDecoderMaxWindow(ChunkRawMax),
		zstd.WithDecodeAllCapLimit(true)))
}

// must is for constructors whose only errors are wrong constants above.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// compress appends raw, compressed, to dst[:0].
func compress(dst, raw []byte) []byte {
	e := zstdEncoders.get()
	defer zstdEncoders.put(e)
	return e.EncodeAll(raw, dst[:0])
}

// decompress decodes stored, which must give exactly want bytes. It allocates
// want bytes, and only if stored could hold them.
func decompress(dst, stored []byte, want int64) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(stored); err != nil {
		return nil, fmt.Errorf("zstd header: %w", err)
	}
	if h.Skippable || !h.HasFCS || h.FrameContentSize != uint64(want) {
		return nil, fmt.Errorf("zstd frame says %d bytes (given: %t), the chunk table %d", h.FrameContentSize, h.HasFCS, want)
	}
	if want > int64(len(stored)/zstdBlockMin)*zstdBlockMax {
		return nil, fmt.Errorf("%d stored bytes cannot hold %d", len(stored), want)
	}
	if int64(cap(dst)) < want {
		dst = make([]byte, 0, want)
	}
	d := zstdDecoders.get()
	defer zstdDecoders.put(d)
	raw, err := d.DecodeAll(stored, dst[:0:want])
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	if int64(len(raw)) != want {
		return nil, fmt.Errorf("zstd gave %d bytes, the chunk table says %d", len(raw), want)
	}
	return raw, nil
}

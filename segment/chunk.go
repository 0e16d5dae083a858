package segment

import (
	"errors"
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"
)

// EncodeChunk makes the stored bytes of a chunk: raw compressed, if that saves at
// least 12 %, else raw itself. meta says what the rows are; Raw, Stored, Codec, CRC
// and Sum are filled in here, Offset is not. The bytes alias raw or *room, which is
// kept for the next call.
func EncodeChunk(room *[]byte, meta *Chunk, raw []byte) (stored []byte, err error) {
	if len(raw) == 0 || len(raw) > ChunkRawMax {
		return nil, fmt.Errorf("%w: chunk of %d raw bytes, 1 to %d", ErrTooLarge, len(raw), ChunkRawMax)
	}
	stored, meta.Codec = raw, CodecNone
	*room = compress(*room, raw)
	if saves(len(*room), len(raw)) {
		stored, meta.Codec = *room, CodecZstd
	}
	meta.Raw, meta.Stored = int64(len(raw)), int64(len(stored))
	meta.CRC, meta.Sum = checksums(stored)
	return stored, nil
}

// saves says whether compression is worth its decompression: at least 12 %.
func saves(packed, raw int) bool { return int64(packed)*100 <= int64(raw)*88 }

// DecodeChunk verifies the stored bytes of a chunk against its entry and returns
// the raw ones. raw may alias stored. Every error is a *CorruptionError, except
// that stored bytes of another length than the entry's are a read that came
// short: never a verdict.
func DecodeChunk(c *Chunk, stored []byte) (raw []byte, err error) {
	return DecodeChunkInto(nil, c, stored)
}

// DecodeChunkInto is DecodeChunk that decompresses into the room of dst if that
// is enough.
func DecodeChunkInto(dst []byte, c *Chunk, stored []byte) (raw []byte, err error) {
	if int64(len(stored)) != c.Stored {
		return nil, fmt.Errorf("chunk at %d (stream %q): %d bytes were read of %d stored", c.Offset, c.Stream, len(stored), c.Stored)
	}
	if c.Raw < 0 || c.Raw > ChunkRawMax {
		return nil, c.corrupt(nil, "raw length %d, at most %d", c.Raw, ChunkRawMax)
	}
	crc, sum := checksums(stored)
	if crc != c.CRC {
		return nil, c.corrupt(nil, "stored bytes have CRC %08x, %08x wanted", crc, c.CRC)
	}
	if sum != c.Sum {
		return nil, c.corrupt(nil, "stored bytes have digest %016x, %016x wanted", sum, c.Sum)
	}
	switch c.Codec {
	case CodecNone:
		if c.Raw != c.Stored {
			return nil, c.corrupt(nil, "%d bytes stored, not compressed, of %d raw", c.Stored, c.Raw)
		}
		return stored, nil
	case CodecZstd:
		if raw, err = decompress(dst, stored, c.Raw); err != nil {
			return nil, c.corrupt(err, "stored bytes do not decompress")
		}
		return raw, nil
	}
	return nil, c.corrupt(nil, "unknown %s", c.Codec)
}

// checksumBlock stays in a core's first-level cache (32 KiB and more) between its two sums.
const checksumBlock = 16 << 10

// checksums are the CRC-32C and the XxHash64 of stored bytes, by one way through memory.
func checksums(p []byte) (crc uint32, sum uint64) {
	var d xxhash.Digest
	d.Reset()
	for len(p) > 0 {
		b := p[:min(len(p), checksumBlock)]
		p = p[len(b):]
		crc = crcUpdate(crc, b)
		mustWrite(&d, b)
	}
	return crc, d.Sum64()
}

func (c *Chunk) corrupt(cause error, format string, args ...any) error {
	e := corrupt(c.Offset, format, args...)
	e.Reason = fmt.Sprintf("chunk of stream %q: %s", c.Stream, e.Reason)
	e.Err = cause
	return e
}

// Frames yields the batches in a chunk's raw bytes, in order. It verifies each
// frame's payload CRC, that nothing is left over, and that seqs ascend. Rows
// alias raw. An error ends the sequence and comes with an empty batch.
func Frames(raw []byte) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		var last Seq
		for off := 0; off < len(raw); {
			f, n, err := nextBatch(raw, off)
			if err != nil {
				yield(Batch{}, err)
				return
			}
			b, err := DecodeBatch(f.Payload)
			if err == nil && b.First <= last {
				err = corrupt(0, "batch begins at seq %d after seq %d", b.First, last)
			}
			if err != nil {
				yield(Batch{}, placed(err, UUID{}, 0, int64(off)))
				return
			}
			if last = b.Last(); !yield(b, nil) {
				return
			}
			off += n
		}
	}
}

// nextBatch parses the batch frame at off in a chunk's raw bytes.
func nextBatch(raw []byte, off int) (Frame, int, error) {
	f, n, err := parseChunkFrame(raw[off:], int64(off))
	if err != nil {
		return f, 0, chunkFault(err)
	}
	if f.Kind != KindBatch {
		return f, 0, corrupt(int64(off), "a %s frame in a chunk of rows", f.Kind)
	}
	return f, n, nil
}

// chunkFault is the verdict on a frame that does not validate in a chunk: there
// is no torn tail in an object.
func chunkFault(err error) error {
	var inv *InvalidFrameError
	if errors.As(err, &inv) {
		return inv.Corruption(UUID{}, 0)
	}
	return err
}

// TallyFrames counts a chunk's raw bytes and verifies them as Frames does; that
// all rows are of one stream, too.
func TallyFrames(raw []byte) (Tally, error) {
	var t tallier
	for off := 0; off < len(raw); {
		f, n, err := nextBatch(raw, off)
		if err != nil {
			return Tally{}, err
		}
		if err := t.add(f.Payload); err != nil {
			return Tally{}, placed(err, UUID{}, 0, int64(off))
		}
		off += n
	}
	t.Raw = int64(len(raw))
	return t.Tally, nil
}

// tallier counts batch payloads of one stream without allocating for rows.
type tallier struct {
	Tally
	stream []byte
	row    Row
}

func (t *tallier) add(payload []byte) error {
	h, rows := openBatch(payload)
	if rows.r.err != nil {
		return rows.r.err
	}
	if t.Rows > 0 {
		if string(h.stream) != string(t.stream) {
			return corrupt(0, "rows of stream %q in a chunk of %q", h.stream, t.stream)
		}
		if h.first <= t.Last {
			return corrupt(0, "batch begins at seq %d after seq %d", h.first, t.Last)
		}
	}
	t.stream = h.stream
	for rows.Next(&t.row) {
		t.addRow(&t.row)
	}
	return rows.Err()
}

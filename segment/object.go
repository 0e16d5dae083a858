package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// ObjectWriter writes an object front to back: chunks in the table's order, then
// footer and trailer. It is used by the bundle and by settle. A failed write is
// final. It may be used by one goroutine.
type ObjectWriter struct {
	w      io.Writer
	f      Footer
	off    int64
	pack   []byte  // room for compressed bytes, used again
	ratio  float64 // raw to stored, of the last chunk that was compressed here
	failed error
	done   bool
}

// NewObjectWriter begins an object. f says everything but the chunks; it is
// copied. Created, Writer and Object are the caller's, for this package knows no
// clock.
func NewObjectWriter(w io.Writer, f *Footer) *ObjectWriter {
	o := &ObjectWriter{w: w, f: *f, ratio: 1}
	o.f.Chunks = nil
	return o
}

// Offset is the object's length so far.
func (o *ObjectWriter) Offset() int64 { return o.off }

// AddChunk encodes raw as EncodeChunk does, writes it, and enters it in the
// table. meta says what the rows are; the rest is filled in here.
func (o *ObjectWriter) AddChunk(meta Chunk, raw []byte) error {
	stored, err := EncodeChunk(&o.pack, &meta, raw)
	if err != nil {
		return err
	}
	o.ratio = float64(len(raw)) / float64(len(stored))
	return o.add(meta, stored)
}

// AddStored writes a chunk whose bytes are stored already, with its checksums
// carried forward: Raw, Stored, Codec, CRC and Sum are the source's. The bytes
// are verified against them.
func (o *ObjectWriter) AddStored(meta Chunk, stored []byte) error {
	if int64(len(stored)) != meta.Stored {
		return fmt.Errorf("chunk of stream %q: %d bytes were read of %d stored", meta.Stream, len(stored), meta.Stored)
	}
	if crcUpdate(0, stored) != meta.CRC || xxhash.Sum64(stored) != meta.Sum {
		return meta.corrupt(nil, "stored bytes do not match their CRC and digest")
	}
	return o.add(meta, stored)
}

// AddCopied enters a chunk whose bytes the store copies by itself: nothing is
// written, only the offset advances.
func (o *ObjectWriter) AddCopied(meta Chunk) error { return o.add(meta, nil) }

func (o *ObjectWriter) add(meta Chunk, stored []byte) error {
	if o.failed != nil || o.done {
		return errors.Join(errors.New("object writer is finished"), o.failed)
	}
	meta.Offset = o.off
	if o.f.Slot == nil {
		meta.Ordinals = nil
	}
	err := o.f.checkChunk(&meta)
	if n := len(o.f.Chunks); err == nil && n > 0 {
		err = checkOrder(&o.f.Chunks[n-1], &meta)
	}
	if err != nil {
		return fmt.Errorf("%w: chunk of stream %q: %w", ErrInvalid, meta.Stream, err)
	}
	if len(stored) > 0 {
		if _, err := o.w.Write(stored); err != nil {
			o.failed = fmt.Errorf("write chunk at %d: %w", o.off, err)
			return o.failed
		}
	}
	o.f.Chunks = append(o.f.Chunks, meta)
	o.off += meta.Stored
	return nil
}

// Finish writes footer and trailer and returns the footer as it stands.
func (o *ObjectWriter) Finish() (*Footer, error) {
	if o.failed != nil || o.done {
		return nil, errors.Join(errors.New("object writer is finished"), o.failed)
	}
	b, err := EncodeFooter(&o.f)
	if err != nil {
		return nil, err
	}
	o.done = true
	b = AppendTrailer(b, trailerOf(b, o.off))
	if _, err := o.w.Write(b); err != nil {
		o.failed = fmt.Errorf("write footer at %d: %w", o.off, err)
		return nil, o.failed
	}
	o.off += int64(len(b))
	return &o.f, nil
}

// RawTarget is how many raw bytes the next chunk should hold to be about
// ChunkStoredTarget stored, going by the last chunk if that is of the same
// stream; a caller that joins frames stops there.
func (o *ObjectWriter) RawTarget(stream string) int64 {
	n := len(o.f.Chunks)
	if n == 0 || o.f.Chunks[n-1].Stream != stream {
		return ChunkStoredTarget
	}
	return int64(min(max(o.ratio*ChunkStoredTarget, ChunkStoredTarget), ChunkRawMax))
}

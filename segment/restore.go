package segment

import (
	"errors"
	"fmt"
	"io"
)

// SegmentFile is what a segment is restored into; *os.File is one.
type SegmentFile interface {
	io.WriterAt
	io.ReaderAt
}

// restoreKeep is how many raw bytes RestoreSegment keeps between its two passes
// rather than ask for the chunks again: a segment of the default size.
const restoreKeep = ChunkRawMax

// RestoreSegment writes the segment file that a slot was made of, byte for byte,
// and proves it: what it wrote is read back through a Scanner, and length and
// digest must be those in the footer. chunk returns the raw bytes of a chunk
// (DecodeChunk) and leaves them to RestoreSegment; it is called once for each
// chunk, and a second time if the segment has more than 64 MiB. The caller syncs.
func RestoreSegment(f *Footer, chunk func(i int) (raw []byte, err error), w SegmentFile) error {
	if f.Kind != ObjSlot || f.Slot == nil {
		return fmt.Errorf("%w: a %s object holds no segment", ErrInvalid, f.Kind)
	}
	r := restorer{f: f, chunk: chunk}
	if err := r.measure(); err != nil {
		return InFile(err, "", f.Slot.ID)
	}
	if err := r.write(w); err != nil {
		return InFile(err, "", f.Slot.ID)
	}
	return InFile(r.prove(w), "", f.Slot.ID)
}

type restorer struct {
	f     *Footer
	chunk func(i int) ([]byte, error)
	kept  map[int][]byte
	ends  []uint32 // by ordinal: first the frame's length, then its end in the file
}

func (r *restorer) raw(i int) ([]byte, error) {
	if b, ok := r.kept[i]; ok {
		return b, nil
	}
	b, err := r.chunk(i)
	if err != nil {
		return nil, err
	}
	c := &r.f.Chunks[i]
	if int64(len(b)) != c.Raw {
		return nil, fmt.Errorf("chunk %d (stream %q): %d raw bytes given of %d", i, c.Stream, len(b), c.Raw)
	}
	if r.f.Slot.Length <= restoreKeep {
		r.kept[i] = b
	}
	return b, nil
}

// measure is the first pass: it takes every frame's length by its ordinal, so
// that the second knows where each goes.
func (r *restorer) measure() error {
	frames := int64(0)
	for i := range r.f.Chunks {
		frames += r.f.Chunks[i].Ordinals.Len()
	}
	// Justified: a frame has 20 bytes, and the chunks' raw lengths add up to the
	// segment's (Footer.check).
	if frames*FrameHeaderBytes > r.f.Slot.Length {
		return corrupt(0, "%d frames in a segment of %d bytes", frames, r.f.Slot.Length)
	}
	r.kept, r.ends = map[int][]byte{}, make([]uint32, frames)
	for i := range r.f.Chunks {
		if err := r.measureChunk(i); err != nil {
			return err
		}
	}
	end := uint32(HeaderBytes)
	for ord, n := range r.ends {
		if n == 0 {
			return corrupt(0, "no chunk holds frame %d", ord)
		}
		end += n
		r.ends[ord] = end
	}
	return nil
}

func (r *restorer) measureChunk(i int) error {
	c := &r.f.Chunks[i]
	return r.eachFrame(i, func(ord uint32, frame []byte) error {
		if int64(ord) >= int64(len(r.ends)) || r.ends[ord] != 0 {
			return c.corrupt(nil, "frame %d of %d stands twice or not at all", ord, len(r.ends))
		}
		r.ends[ord] = uint32(len(frame))
		return nil
	})
}

// eachFrame calls fn with the ordinal and the whole bytes of each frame.
func (r *restorer) eachFrame(i int, fn func(ord uint32, frame []byte) error) error {
	c := &r.f.Chunks[i]
	raw, err := r.raw(i)
	if err != nil {
		return err
	}
	if i == 0 {
		h, err := ParseHeader(raw)
		if err != nil || h.UUID != r.f.Slot.UUID {
			return c.corrupt(err, "begins with no header of segment %s", r.f.Slot.UUID)
		}
		raw = raw[HeaderBytes:]
	}
	for ord := range c.Ordinals.All() {
		_, n, err := parseChunkFrame(raw, c.Raw-int64(len(raw)))
		if err != nil {
			return c.corrupt(err, "frame %d does not validate", ord)
		}
		if err := fn(ord, raw[:n]); err != nil {
			return err
		}
		raw = raw[n:]
	}
	if len(raw) > 0 {
		return c.corrupt(nil, "%d bytes after its last frame", len(raw))
	}
	return nil
}

// write is the second pass: every frame goes to its place. Frames that were
// neighbours in the segment are neighbours in the chunk and go out together.
func (r *restorer) write(w io.WriterAt) error {
	if _, err := w.WriteAt(AppendHeader(nil, r.f.Slot.UUID), 0); err != nil {
		return fmt.Errorf("write segment header: %w", err)
	}
	for i := range r.f.Chunks {
		run := runWriter{w: w}
		err := r.eachFrame(i, func(ord uint32, frame []byte) error {
			return run.add(int64(r.ends[ord])-int64(len(frame)), frame)
		})
		if err = errors.Join(err, run.flush()); err != nil {
			return err
		}
	}
	return nil
}

// runWriter joins slices that lie side by side both in memory and in the file.
type runWriter struct {
	w       io.WriterAt
	off     int64
	pending []byte // of one chunk's raw bytes, which go on behind it
}

func (r *runWriter) add(off int64, frame []byte) error {
	if len(r.pending) > 0 && r.off+int64(len(r.pending)) == off {
		r.pending = r.pending[:len(r.pending)+len(frame)]
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	r.off, r.pending = off, frame
	return nil
}

func (r *runWriter) flush() error {
	if len(r.pending) == 0 {
		return nil
	}
	if _, err := r.w.WriteAt(r.pending, r.off); err != nil {
		return fmt.Errorf("write %d bytes at %d: %w", len(r.pending), r.off, err)
	}
	r.pending = nil
	return nil
}

// prove reads back what was written.
func (r *restorer) prove(w io.ReaderAt) error {
	want := r.f.Slot
	s, err := NewScanner(w, want.Length)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = s.Next()
	}
	if !errors.Is(err, io.EOF) {
		return unsealed(err, s)
	}
	if s.Sealed() == nil || s.Digest() != want.Digest || s.UUID() != want.UUID {
		return placed(corrupt(0, "restored segment %s has digest %016x (sealed: %t), %016x of %s wanted",
			s.UUID(), s.Digest(), s.Sealed() != nil, want.Digest, want.UUID), want.UUID, want.ID, 0)
	}
	return nil
}

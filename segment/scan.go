package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// scanWindow is how much a Scanner reads at a time. It grows to the largest
// frame met, so a Scanner never holds more than a largest frame and a window.
const scanWindow = 256 << 10

// Scanner reads a segment file from the front, in bounded memory: recovery,
// publish and inspect all read through it. It checks every frame, that the
// first is a SegmentStart and no other is, that batches follow each other
// without a gap, and that a Seal's count, next seq and digest are those of what
// stands before it. It may be used by one goroutine.
type Scanner struct {
	src    window
	uuid   UUID
	off    int64         // of the next frame
	hash   xxhash.Digest // of the bytes before `hashed`, which is at or before off
	hashed int64
	// place is a frame's header, the UUID and the offset side by side: what a
	// header's CRC covers, in one call of it.
	place [16 + 16 + 8]byte

	start  Start
	seal   *Seal
	frames uint32
	next   Seq
	failed error
}

// NewScanner reads the header of a segment file of size bytes. A header that is
// not one is a *CorruptionError; see JudgeHeadless.
func NewScanner(r io.ReaderAt, size int64) (*Scanner, error) {
	if size > MaxSegmentBytes {
		return nil, corrupt(0, "segment of %d bytes, at most %d", size, int64(MaxSegmentBytes))
	}
	s := &Scanner{src: window{r: r, size: size}}
	b, err := s.src.at(0, HeaderBytes)
	if err != nil {
		return nil, err
	}
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	s.uuid, s.off = h.UUID, HeaderBytes
	copy(s.place[16:], h.UUID[:])
	s.hash.Reset()
	mustWrite(&s.hash, b)
	s.hashed = HeaderBytes
	return s, nil
}

// UUID is the segment's identity.
func (s *Scanner) UUID() UUID { return s.uuid }

// Offset is the end of the last valid frame.
func (s *Scanner) Offset() int64 { return s.off }

// Start is the SegmentStart, once the first frame was read.
func (s *Scanner) Start() Start { return s.start }

// Sealed is the Seal, once its frame was read, or nil.
func (s *Scanner) Sealed() *Seal { return s.seal }

// Frames is how many frames were read.
func (s *Scanner) Frames() uint32 { return s.frames }

// NextSeq is the chain's next seq after what was read.
func (s *Scanner) NextSeq() Seq { return s.next }

// Digest is the XxHash64 of every byte up to Offset.
func (s *Scanner) Digest() uint64 {
	s.digest()
	return s.hash.Sum64()
}

// digest takes in the frames since the last time: all of them still stand in the
// window, for it is called before the window moves on. Many small frames at once
// cost less than one by one.
func (s *Scanner) digest() {
	if s.hashed < s.off {
		mustWrite(&s.hash, s.src.buf[s.hashed-s.src.start:s.off-s.src.start])
		s.hashed = s.off
	}
}

// at is the window's, behind the digest.
func (s *Scanner) at(off, n int64) ([]byte, error) {
	if s.src.holds(off, n) {
		return s.src.buf[off-s.src.start:][:min(n, s.src.size-off)], nil
	}
	s.digest()
	return s.src.at(off, n)
}

// Next returns the next frame; its payload is valid until the next call. io.EOF
// means that the last frame ended exactly at the file's end. Where no frame
// validates it is an *InvalidFrameError, and Offset is the end of what is
// valid; a frame that validates and cannot stand there is a *CorruptionError.
// Errors of reading pass through. Every error but io.EOF is final.
func (s *Scanner) Next() (Frame, error) {
	var f Frame
	if err := s.NextInto(&f); err != nil {
		return Frame{}, err
	}
	return f, nil
}

// NextInto is Next with a frame used again, which an error leaves without meaning.
func (s *Scanner) NextInto(f *Frame) error {
	if s.failed == nil {
		s.failed = s.read(f)
	}
	return s.failed
}

func (s *Scanner) read(f *Frame) error {
	if s.off >= s.src.size {
		return io.EOF
	}
	b, err := s.at(s.off, FrameHeaderBytes)
	if err != nil {
		return err
	}
	invalid, err := s.parse(f, b)
	switch {
	case err != nil:
		return err
	case s.seal != nil:
		return s.afterSeal(invalid)
	case invalid != nil:
		return invalid
	}
	if err := s.accept(f); err != nil {
		return placed(err, s.uuid, s.start.ID, s.off)
	}
	s.off += f.Bytes()
	s.frames++
	return nil
}

// parse validates the frame whose header is b; err is one of reading. The length is
// trusted only after the header CRC, so a flipped length never makes the window grow.
func (s *Scanner) parse(f *Frame, b []byte) (invalid *InvalidFrameError, err error) {
	if len(b) == FrameHeaderBytes && s.headerFits(b) && plausible(b) {
		if b, err = s.at(s.off, FrameLen(b)); err != nil {
			return nil, err
		}
		return parsePlaced(f, b, s.off), nil
	}
	return parseFrame(f, b, s.uuid, s.off), nil
}

// headerFits checks a header's CRC.
func (s *Scanner) headerFits(b []byte) bool {
	copy(s.place[:], b[:16])
	le.PutUint64(s.place[32:], uint64(s.off))
	return le.Uint32(b[16:]) == crcUpdate(0, s.place[:])
}

// afterSeal tells leftovers behind a Seal, which a crash between writing it and
// truncating leaves in a recycled file, from a frame that was written there.
func (s *Scanner) afterSeal(invalid *InvalidFrameError) error {
	if invalid == nil {
		return placed(corrupt(0, "a frame of this segment stands after its Seal"), s.uuid, s.start.ID, s.off)
	}
	return &InvalidFrameError{Offset: s.off, Fault: FaultAfterSeal}
}

// accept looks at what a valid frame says, in its place.
func (s *Scanner) accept(f *Frame) error {
	if (f.Kind == KindStart) != (s.frames == 0) {
		return corrupt(0, "frame %d is a %s: SegmentStart is the first frame and no other", s.frames, f.Kind)
	}
	switch f.Kind {
	case KindStart:
		st, err := DecodeStart(f.Payload)
		if err != nil {
			return err
		}
		s.start, s.next = st, st.Base
	case KindBatch:
		r := newReader(f.Payload, "batch")
		h := readBatchHead(&r)
		if r.err != nil {
			return r.err
		}
		if h.first != s.next {
			return corrupt(0, "batch begins at seq %d, %d follows", h.first, s.next)
		}
		s.next = h.last() + 1
		f.rows = rowsAt{h.first, uint32(h.rows), uint32(r.off)}
	case KindSeal:
		return s.acceptSeal(f.Payload)
	default:
		_, err := DecodeConsumer(f.Payload)
		return err
	}
	return nil
}

func (s *Scanner) acceptSeal(payload []byte) error {
	seal, err := DecodeSeal(payload)
	if err != nil {
		return err
	}
	if want := (Seal{Frames: s.frames, Next: s.next, Digest: s.Digest()}); seal != want {
		return corrupt(0, "Seal says %d frames, next seq %d, digest %016x; the file holds %d, %d, %016x",
			seal.Frames, seal.Next, seal.Digest, want.Frames, want.Next, want.Digest)
	}
	s.seal = &seal
	return nil
}

// placed puts a payload's error at its frame.
func placed(err error, u UUID, id ID, off int64) error {
	var c *CorruptionError
	if errors.As(err, &c) {
		c.UUID, c.Segment, c.Offset = u, id, off
	}
	return err
}

// mustWrite feeds a digest, whose Write never fails.
func mustWrite(d *xxhash.Digest, p []byte) {
	_, _ = d.Write(p) // documented to return len(p), nil
}

// window is a buffer over a file that only moves forward.
type window struct {
	r     io.ReaderAt
	size  int64
	buf   []byte
	start int64 // of buf in the file
}

// holds says that at need not read.
func (w *window) holds(off, n int64) bool {
	n = min(n, w.size-off)
	return off >= w.start && off+n <= w.start+int64(len(w.buf))
}

// at returns the n bytes at off, fewer only at the end of the file. They are
// valid until the next call.
func (w *window) at(off, n int64) ([]byte, error) {
	n = min(n, w.size-off)
	if w.holds(off, n) {
		return w.buf[off-w.start:][:n], nil
	}
	want := min(max(n, scanWindow), w.size-off)
	if int64(cap(w.buf)) < want {
		w.buf = make([]byte, want)
	}
	w.buf, w.start = w.buf[:want], off
	if err := readFull(w.r, w.buf, off); err != nil {
		w.buf = w.buf[:0]
		return nil, err
	}
	return w.buf[:n], nil
}

// readFull reads all of p at off. A file that ends before the size its caller
// gave is an error of reading, never a finding.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(p), off, err)
}

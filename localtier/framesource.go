package localtier

import (
	"errors"
	"fmt"
	"io"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

const (
	// nearBytes is the first read of a frame: its header and, usually, all of it.
	nearBytes = 4 << 10
	// aheadBytes caps what one read takes in of a run of frames: a larger one gains
	// little, and a row that is kept keeps all of it.
	aheadBytes = 256 << 10
)

// frameSource reads frames of one segment in rising order. While they lie close to each
// other it reads ahead, ever further; a far one costs a small read. Its buffers are never
// used again, since rows that were given out lie in them.
type frameSource struct {
	file  *wal.SegmentReader
	id    segment.ID
	buf   []byte
	start int64 // of buf in the file
	ahead int64
}

// batch reads the batch frame at off and holds it against the index: b.Stream and first.
// It is verified as recovery does it. b's rows are used again.
func (s *frameSource) batch(off uint32, b *segment.Batch, first segment.Seq) error {
	at, stream := int64(off), b.Stream
	head, err := s.read(at, segment.FrameHeaderBytes)
	if err != nil {
		return err
	}
	n := segment.FrameLen(head)
	if n > min(segment.FrameHeaderBytes+segment.MaxFrameBytes, s.file.Size()-at) {
		return misread(s.file, s.id, at, "a length of %d, which cannot be", n)
	}
	buf, err := s.read(at, n)
	if err != nil {
		return err
	}
	frame, _, err := segment.ParseFrame(buf, s.file.UUID, at)
	if err != nil {
		return misread(s.file, s.id, at, "%v", err)
	}
	if frame.Kind != segment.KindBatch {
		return misread(s.file, s.id, at, "a %s stands where rows of stream %q were", frame.Kind, stream)
	}
	if err := segment.DecodeBatchInto(frame.Payload, b); err != nil {
		return segment.InFile(err, segment.FileName(s.id), s.id)
	}
	if b.Stream != stream || b.First != first {
		return misread(s.file, s.id, at, "it holds stream %q from seq %d, not %q from %d", b.Stream, b.First, stream, first)
	}
	return nil
}

// read gives n bytes at off. Fewer than a frame needs are an error of reading, never a
// finding: the index has only frames that were durable.
func (s *frameSource) read(off, n int64) ([]byte, error) {
	end := s.start + int64(len(s.buf))
	if off >= s.start && off+n <= end {
		return s.buf[off-s.start:][:n:n], nil
	}
	if s.buf != nil && off <= end+nearBytes {
		s.ahead = min(2*s.ahead, aheadBytes)
	} else {
		s.ahead = nearBytes
	}
	want := min(max(n, s.ahead), s.file.Size()-off)
	if want < n {
		return nil, fmt.Errorf("read a frame of segment %d at %d: %w", s.id, off, io.ErrUnexpectedEOF)
	}
	buf := make([]byte, want)
	if got, err := s.file.ReadAt(buf, off); int64(got) < want {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read a frame of segment %d at %d: %w", s.id, off, err)
	}
	s.buf, s.start = buf, off
	return buf[:n:n], nil
}

package wal

import (
	"errors"
	"fmt"
	"io"

	"github.com/strandline/strandline/segment"
)

// SegmentReader reads the durable bytes of one local segment, as they were when
// it was opened. It keeps them readable though housekeeping unlinks the file.
type SegmentReader struct {
	file File
	size int64
	UUID segment.UUID
	done func() // tells the log; nil once closed, or if there is none to tell
}

// Size is how many bytes there are to read.
func (s *SegmentReader) Size() int64 { return s.size }

// ReadAt reads durable bytes only.
func (s *SegmentReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= s.size {
		return 0, io.EOF
	}
	if int64(len(p)) <= s.size-off {
		return s.file.ReadAt(p, off)
	}
	n, err := s.file.ReadAt(p[:s.size-off], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// Close gives the file back.
func (s *SegmentReader) Close() error {
	if s.done != nil {
		s.done()
		s.done = nil
	}
	return s.file.Close()
}

// OpenSegment opens a segment that stands here, sealed or open. ErrNotFound if
// it does not, or no longer: the shared tier has it.
func (l *Log) OpenSegment(id segment.ID) (*SegmentReader, error) {
	l.mu.Lock()
	u, size := findSegment(l.sealed, l.durable, id)
	l.readers[id]++ // from here on its file is not overwritten
	l.mu.Unlock()
	s, err := openSegment(l.fs, segmentPath(l.dir, id), id, u, size)
	if err != nil {
		l.doneReading(id)
		return nil, err
	}
	s.done = func() { l.doneReading(id) }
	return s, nil
}

func (l *Log) doneReading(id segment.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers[id]--; l.readers[id] == 0 {
		delete(l.readers, id)
	}
}

// findSegment gives a segment's identity and durable length, 0 if it is not here.
func findSegment(sealed []SealedSegment, durable position, id segment.ID) (segment.UUID, int64) {
	// Also when its Seal is durable and it is not listed as sealed yet.
	if durable.start.ID == id {
		return durable.uuid, durable.end
	}
	for _, s := range sealed {
		if s.ID == id {
			return s.UUID, s.Bytes
		}
	}
	return segment.UUID{}, 0
}

func openSegment(fsys FS, path string, id segment.ID, u segment.UUID, size int64) (*SegmentReader, error) {
	if size == 0 {
		return nil, fmt.Errorf("segment %d: %w", id, ErrNotFound)
	}
	f, err := fsys.Open(path)
	if vanished(err) {
		return nil, fmt.Errorf("segment %d: %w", id, errors.Join(ErrNotFound, err))
	}
	if err != nil {
		return nil, err
	}
	return &SegmentReader{file: f, size: size, UUID: u}, nil
}

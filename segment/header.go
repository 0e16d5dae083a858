package segment

import "fmt"

const (
	segmentMagic   = "OWAL"
	segmentVersion = 2
)

// Header stands at the front of a segment file. The UUID is the segment's
// identity; its position is in the file's name and in its SegmentStart.
type Header struct {
	UUID UUID
}

// AppendHeader appends the 24 bytes of a segment file's header.
func AppendHeader(dst []byte, u UUID) []byte {
	dst = append(dst, segmentMagic...)
	dst = le.AppendUint16(dst, segmentVersion)
	dst = le.AppendUint16(dst, 0)
	return append(dst, u[:]...)
}

// ParseHeader reads the first 24 bytes of b.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderBytes {
		return Header{}, corrupt(0, "segment header is %d bytes, %d wanted", len(b), HeaderBytes)
	}
	if string(b[:4]) != segmentMagic {
		return Header{}, corrupt(0, "segment magic is %q, %q wanted", b[:4], segmentMagic)
	}
	if v := le.Uint16(b[4:]); v != segmentVersion {
		return Header{}, badVersion(4, "segment", uint64(v), segmentVersion)
	}
	if f := le.Uint16(b[6:]); f != 0 {
		return Header{}, corrupt(6, "segment header flags are %#x, 0 wanted", f)
	}
	return Header{UUID: UUID(b[8:24])}, nil
}

func (h Header) String() string { return fmt.Sprintf("segment v%d %s", segmentVersion, h.UUID) }

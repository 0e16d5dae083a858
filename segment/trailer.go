package segment

import (
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

const (
	trailerMagic   = "SLO1"
	trailerVersion = 1
)

// Trailer locates and vouches for an object's footer. It is the object's last
// 48 bytes.
type Trailer struct {
	FooterOffset int64
	FooterLen    uint32
	FooterCRC    uint32
	ObjectLen    int64
	FooterSum    uint64
}

// AppendTrailer appends the 48 bytes of a trailer.
func AppendTrailer(dst []byte, t Trailer) []byte {
	dst = le.AppendUint64(dst, uint64(t.FooterOffset))
	dst = le.AppendUint32(dst, t.FooterLen)
	dst = le.AppendUint32(dst, t.FooterCRC)
	dst = le.AppendUint64(dst, uint64(t.ObjectLen))
	dst = le.AppendUint64(dst, t.FooterSum)
	dst = le.AppendUint64(dst, 0)
	dst = le.AppendUint16(dst, trailerVersion)
	dst = le.AppendUint16(dst, 0)
	return append(dst, trailerMagic...)
}

// ParseTrailer reads the last 48 bytes of an object of objectLen bytes. An
// object that is shorter is ErrShortObject; every other error is a
// *CorruptionError. All of these are structural.
// Too few bytes given of a longer object are a read that came short.
func ParseTrailer(b []byte, objectLen int64) (Trailer, error) {
	if objectLen < TrailerBytes {
		return Trailer{}, fmt.Errorf("%w: %d bytes; its upload never completed", ErrShortObject, objectLen)
	}
	if len(b) < TrailerBytes {
		// A read that came short is never a verdict on the object.
		return Trailer{}, fmt.Errorf("trailer: %d of %d bytes were read: %w", len(b), TrailerBytes, io.ErrUnexpectedEOF)
	}
	b = b[len(b)-TrailerBytes:]
	at := objectLen - TrailerBytes
	if string(b[44:48]) != trailerMagic {
		return Trailer{}, corrupt(at+44, "object magic is %q, %q wanted", b[44:48], trailerMagic)
	}
	if v := le.Uint16(b[40:]); v != trailerVersion {
		return Trailer{}, badVersion(at+40, "object", uint64(v), trailerVersion)
	}
	if f := le.Uint16(b[42:]); f != 0 {
		return Trailer{}, corrupt(at+42, "trailer flags are %#x, 0 wanted", f)
	}
	if v := le.Uint64(b[32:]); v != 0 {
		return Trailer{}, corrupt(at+32, "reserved field is %#x, 0 wanted", v)
	}
	t := Trailer{
		FooterOffset: int64(le.Uint64(b)),
		FooterLen:    le.Uint32(b[8:]),
		FooterCRC:    le.Uint32(b[12:]),
		ObjectLen:    int64(le.Uint64(b[16:])),
		FooterSum:    le.Uint64(b[24:]),
	}
	if t.ObjectLen != objectLen || t.FooterOffset < 0 || t.FooterOffset != at-int64(t.FooterLen) {
		return Trailer{}, corrupt(at, "trailer says footer of %d bytes at %d in an object of %d bytes, which has %d",
			t.FooterLen, t.FooterOffset, t.ObjectLen, objectLen)
	}
	return t, nil
}

// trailerOf makes the trailer that follows a footer at off.
func trailerOf(footer []byte, off int64) Trailer {
	return Trailer{
		FooterOffset: off,
		FooterLen:    uint32(len(footer)),
		FooterCRC:    crcUpdate(0, footer),
		ObjectLen:    off + int64(len(footer)) + TrailerBytes,
		FooterSum:    xxhash.Sum64(footer),
	}
}

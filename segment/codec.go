package segment

import (
	"encoding/binary"
	"math"
)

// reader takes fields off the front of a payload or footer. Its first error
// sticks, so that a decoder reads straight down and looks once.
type reader struct {
	b    []byte
	off  int // of b[0] in the whole
	what string
	err  error
}

func newReader(b []byte, what string) reader { return reader{b: b, what: what} }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		e := corrupt(int64(r.off), format, args...)
		e.Reason = r.what + ": " + e.Reason
		r.err = e
	}
	r.b = nil
}

// take returns the next n bytes, aliasing the input, or nil after an error.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("ends early: %d more bytes wanted, %d left", n, len(r.b))
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	r.off += int(n)
	return p
}

func (r *reader) u8() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.take(4); p != nil {
		return le.Uint32(p)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if p := r.take(8); p != nil {
		return le.Uint64(p)
	}
	return 0
}

func (r *reader) uuid() (u UUID) {
	copy(u[:], r.take(16))
	return u
}

// uvarint reads a varint in its one shortest form: a value has one encoding, so
// that equal content means equal bytes.
func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := uint64(r.b[0])
		r.b = r.b[1:]
		r.off++
		return v
	}
	v, n := binary.Uvarint(r.b)
	switch {
	case n == 0:
		r.fail("ends early within a varint")
		return 0
	case n < 0:
		r.fail("varint beyond 64 bits")
		return 0
	case r.b[n-1] == 0:
		r.fail("varint is not in its shortest form")
		return 0
	}
	r.b = r.b[n:]
	r.off += n
	return v
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// upTo reads a varint that must not pass limit.
func (r *reader) upTo(limit uint64, what string) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail("%s is %d, at most %d", what, v, limit)
		return 0
	}
	return v
}

func (r *reader) varU32(what string) uint32 { return uint32(r.upTo(math.MaxUint32, what)) }

// count reads a number of items of which each takes at least size bytes, so
// that an allocation for them is justified by the input.
func (r *reader) count(size int, what string) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.fail("%d %s cannot fit in %d bytes", n, what, len(r.b))
		return 0
	}
	return int(n)
}

// text reads a length and that many bytes, aliasing the input.
func (r *reader) text(limit uint64, what string) []byte {
	n := r.uvarint()
	if n > limit {
		r.fail("%s of %d bytes, at most %d", what, n, limit)
		return nil
	}
	return r.take(n)
}

// done refuses bytes that nothing asked for.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	return r.err
}

func appendVarint(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v)<<1^uint64(v>>63))
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func varintLen(v int64) int { return uvarintLen(uint64(v)<<1 ^ uint64(v>>63)) }

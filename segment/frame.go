package segment

import (
	"fmt"
	"math"
)

// Kind is what a frame holds.
type Kind uint8

// The frame kinds. 0x02 was seed 001's audit record; those are rows of a
// reserved stream now, and the number stays unused.
const (
	KindBatch          Kind = 0x01
	KindStart          Kind = 0x03
	KindConsumerCreate Kind = 0x04
	KindAck            Kind = 0x05
	KindSeal           Kind = 0x06
	KindConsumerRemove Kind = 0x07
)

func (k Kind) known() bool { return k == KindBatch || (k >= KindStart && k <= KindConsumerRemove) }

func (k Kind) String() string {
	switch k {
	case KindBatch:
		return "batch"
	case KindStart:
		return "start"
	case KindConsumerCreate:
		return "consumer-create"
	case KindAck:
		return "ack"
	case KindSeal:
		return "seal"
	case KindConsumerRemove:
		return "consumer-remove"
	}
	return fmt.Sprintf("kind(%#02x)", uint8(k))
}

// Frame is one unit of a segment file.
type Frame struct {
	Kind    Kind
	Offset  int64  // of its header in the segment file; in a chunk, in the raw bytes
	Synced  uint32 // the offset known to be fsynced when it was written
	Payload []byte // aliases what was parsed

	rows rowsAt // of a batch that a Scanner read
}

// rowsAt is where a batch's rows begin and what is known of them by then. body is 0 if
// that is not known.
type rowsAt struct {
	first Seq
	n     uint32
	body  uint32 // in the payload
}

// Rows reads the rows of a batch frame. A Scanner has read what stands before them.
func (f *Frame) Rows() RowReader {
	if f.rows.body == 0 {
		_, rows := openBatch(f.Payload)
		return rows
	}
	r := reader{b: f.Payload[f.rows.body:], off: int(f.rows.body), what: "batch"}
	return RowReader{r: r, seq: f.rows.first, left: int(f.rows.n)}
}

// Bytes is the frame's whole length.
func (f Frame) Bytes() int64 { return FrameHeaderBytes + int64(len(f.Payload)) }

// FrameFault is why a frame does not validate.
type FrameFault uint8

// The faults, in the order in which they are looked for.
const (
	FaultShortHeader FrameFault = iota + 1
	FaultHeaderCRC
	FaultKind
	FaultPad
	FaultLength
	FaultSynced
	FaultShortPayload
	FaultPayloadCRC
	FaultAfterSeal
)

func (f FrameFault) String() string {
	switch f {
	case FaultShortHeader:
		return "ends within the frame header"
	case FaultHeaderCRC:
		return "frame header CRC does not match"
	case FaultKind:
		return "unknown frame kind"
	case FaultPad:
		return "frame pad is not zero"
	case FaultLength:
		return "frame length over the cap"
	case FaultSynced:
		return "frame claims a synced offset beyond its own"
	case FaultShortPayload:
		return "ends within the frame payload"
	case FaultPayloadCRC:
		return "frame payload CRC does not match"
	case FaultAfterSeal:
		return "bytes after the Seal frame"
	}
	return "frame fault"
}

// Written says that the frame's header carries a right CRC and yet holds what
// this build refuses: no torn write looks like that.
func (f FrameFault) Written() bool {
	return f == FaultKind || f == FaultPad || f == FaultLength || f == FaultSynced
}

// InvalidFrameError says that no frame validates at Offset. In an older segment
// or in an object that is corruption; in the newest segment JudgeTail decides.
type InvalidFrameError struct {
	Offset int64
	Fault  FrameFault
	Detail string
}

// Reason is the fault and what was found, in words.
func (e *InvalidFrameError) Reason() string {
	if e.Detail == "" {
		return e.Fault.String()
	}
	return e.Fault.String() + " (" + e.Detail + ")"
}

func (e *InvalidFrameError) Error() string {
	return fmt.Sprintf("no valid frame at offset %d: %s", e.Offset, e.Reason())
}

// Corruption is the verdict that this is damage.
func (e *InvalidFrameError) Corruption(u UUID, id ID) *CorruptionError {
	return &CorruptionError{Segment: id, UUID: u, Offset: e.Offset, Reason: e.Reason()}
}

// BeginFrame leaves room for a frame's header at the end of dst. The caller
// appends the payload to buf and calls EndFrame.
func BeginFrame(dst []byte) (buf []byte, mark int) {
	var room [FrameHeaderBytes]byte
	return append(dst, room[:]...), len(dst)
}

// EndFrame writes the header of the frame that began at mark. A payload over
// the cap is taken off again and refused. It allocates nothing.
func EndFrame(buf []byte, mark int, u UUID, off int64, kind Kind, synced uint32) ([]byte, error) {
	n := len(buf) - mark - FrameHeaderBytes
	if n > MaxFrameBytes {
		return buf[:mark], fmt.Errorf("%w: frame of %d bytes, at most %d; append fewer rows at once", ErrTooLarge, n, MaxFrameBytes)
	}
	sealFrame(buf[mark:], kind)
	SealFrameHeader(buf[mark:], u, off, synced)
	return buf, nil
}

// AppendFrame appends a frame whose header will stand at off in the file.
func AppendFrame(dst []byte, u UUID, off int64, kind Kind, synced uint32, payload []byte) ([]byte, error) {
	if len(payload) > MaxFrameBytes {
		return dst, fmt.Errorf("%w: frame of %d bytes, at most %d; append fewer rows at once", ErrTooLarge, len(payload), MaxFrameBytes)
	}
	buf, mark := BeginFrame(dst)
	return EndFrame(append(buf, payload...), mark, u, off, kind, synced)
}

// sealFrame fills in what does not depend on the frame's place: length, kind,
// payload CRC.
func sealFrame(frame []byte, kind Kind) {
	payload := frame[FrameHeaderBytes:]
	le.PutUint32(frame, uint32(len(payload)))
	frame[4], frame[5], frame[6], frame[7] = byte(kind), 0, 0, 0
	le.PutUint32(frame[8:], payloadCRC(frame, payload))
}

// SealFrameHeader makes a frame's header final for its place: the committer
// knows offset and synced offset only when it writes. The payload is not
// touched or read.
func SealFrameHeader(frame []byte, u UUID, off int64, synced uint32) {
	le.PutUint32(frame[12:], synced)
	le.PutUint32(frame[16:], headerCRC(frame, u, off))
}

// FrameLen reads a frame's whole length from its header, without checking it.
func FrameLen(header []byte) int64 { return FrameHeaderBytes + int64(le.Uint32(header)) }

// ParseFrame validates the frame at the front of b, which stands at off in the
// segment u, and returns how many bytes it takes. Every error is an
// *InvalidFrameError.
func ParseFrame(b []byte, u UUID, off int64) (f Frame, n int, err error) {
	if e := parseFrame(&f, b, u, off); e != nil {
		return f, 0, e
	}
	return f, int(f.Bytes()), nil
}

func parseFrame(f *Frame, b []byte, u UUID, off int64) *InvalidFrameError {
	if len(b) < FrameHeaderBytes {
		return &InvalidFrameError{Offset: off, Fault: FaultShortHeader}
	}
	if le.Uint32(b[16:]) != headerCRC(b, u, off) {
		return &InvalidFrameError{Offset: off, Fault: FaultHeaderCRC}
	}
	return parsePlaced(f, b, off)
}

// parsePlaced is parseFrame behind the header's CRC.
func parsePlaced(f *Frame, b []byte, off int64) *InvalidFrameError {
	if s := le.Uint32(b[12:]); int64(s) > off {
		return &InvalidFrameError{Offset: off, Fault: FaultSynced, Detail: fmt.Sprint(s)}
	}
	return parseBody(f, b, off)
}

// ParseChunkFrame validates a frame in the raw bytes of a chunk: its header CRC
// belongs to a place in a segment and is not looked at, its payload CRC is. off
// only places the error.
func ParseChunkFrame(b []byte) (f Frame, n int, err error) { return parseChunkFrame(b, 0) }

func parseChunkFrame(b []byte, off int64) (f Frame, n int, err error) {
	if len(b) < FrameHeaderBytes {
		return f, 0, &InvalidFrameError{Offset: off, Fault: FaultShortHeader}
	}
	if e := parseBody(&f, b, off); e != nil {
		return f, 0, e
	}
	return f, int(f.Bytes()), nil
}

// parseBody fills f, which stays as it was if the frame does not validate.
func parseBody(f *Frame, b []byte, off int64) *InvalidFrameError {
	if e := checkFields(b, off); e != nil {
		return e
	}
	n := int(FrameLen(b))
	if n > len(b) {
		return &InvalidFrameError{Offset: off, Fault: FaultShortPayload, Detail: fmt.Sprintf("%d of %d bytes", len(b), n)}
	}
	payload := b[FrameHeaderBytes:n:n]
	if le.Uint32(b[8:]) != payloadCRC(b, payload) {
		return &InvalidFrameError{Offset: off, Fault: FaultPayloadCRC}
	}
	*f = Frame{Kind: Kind(b[4]), Offset: off, Synced: le.Uint32(b[12:]), Payload: payload}
	return nil
}

// checkFields looks at the header's fields, whatever CRC vouches for them.
func checkFields(b []byte, off int64) *InvalidFrameError {
	if k := Kind(b[4]); !k.known() {
		return &InvalidFrameError{Offset: off, Fault: FaultKind, Detail: k.String()}
	}
	if b[5]|b[6]|b[7] != 0 {
		return &InvalidFrameError{Offset: off, Fault: FaultPad, Detail: fmt.Sprintf("% x", b[5:8])}
	}
	if n := le.Uint32(b); n > MaxFrameBytes {
		return &InvalidFrameError{Offset: off, Fault: FaultLength, Detail: fmt.Sprint(n)}
	}
	return nil
}

// plausible is checkFields as a cheap question.
func plausible(b []byte) bool {
	return Kind(b[4]).known() && b[5]|b[6]|b[7] == 0 && le.Uint32(b) <= MaxFrameBytes
}

// The synced field must be able to hold any offset.
const _ = uint32(math.MaxUint32 - MaxSegmentBytes)

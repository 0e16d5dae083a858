package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/crc32"
)

// FrameBytes is the most of a frame: what a reader holds back until it is checked. 8
// bytes in 256 KiB are no cost, and four frames make a block of the cache.
const FrameBytes = 256 << 10

const frameHeader = 8

// ErrFrame: a body that is not the frames it has to be. It says nothing about the object.
var ErrFrame = errors.New("frames of the object cache went wrong")

// castagnoli is a constant table; nothing writes to it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seed begins the checksum of each frame of an object.
func Seed(key, etag string) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, []byte(key+"\x00")), castagnoli, []byte(etag))
}

func frameCRC(seed uint32, off int64, p []byte) uint32 {
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(off)) //nolint:gosec // offsets are positive
	return crc32.Update(crc32.Update(seed, castagnoli, at[:]), castagnoli, p)
}

// frameEnd is where the frame ends that begins at off.
func frameEnd(off, end int64) int64 { return min(end, (off/FrameBytes+1)*FrameBytes) }

// Length is how long the frames of bytes off to end are.
func Length(off, end int64) int64 {
	if end <= off {
		return 0
	}
	return end - off + frameHeader*((end-1)/FrameBytes-off/FrameBytes+1)
}

// Writer writes frames. Its pieces have to end at multiples of FrameBytes, or be the last.
type Writer struct {
	W    io.Writer
	Seed uint32
	Off  int64
}

func (w *Writer) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := int(frameEnd(w.Off, w.Off+int64(len(p)-done)) - w.Off)
		frame := p[done : done+n]
		var head [frameHeader]byte
		binary.LittleEndian.PutUint32(head[:], uint32(n)) //nolint:gosec // at most FrameBytes
		binary.LittleEndian.PutUint32(head[4:], frameCRC(w.Seed, w.Off, frame))
		if _, err := w.W.Write(head[:]); err != nil {
			return done, err
		}
		if _, err := w.W.Write(frame); err != nil {
			return done, err
		}
		done += n
		w.Off += int64(n)
	}
	return done, nil
}

// Reader reads the frames of bytes Off to End and gives only what was checked.
type Reader struct {
	R    io.Reader
	Seed uint32
	Off  int64 // of the next byte that Read gives
	End  int64

	buf  []byte
	left []byte // checked, not given yet
}

// Read gives io.EOF at End, and ErrFrame or the connection's error before.
func (r *Reader) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		if r.Off >= r.End {
			return 0, io.EOF
		}
		n := int(frameEnd(r.Off, r.End) - r.Off)
		if len(p) >= n { // straight to where it goes, checked there
			if err := r.frame(p[:n]); err != nil {
				return 0, err
			}
			r.Off += int64(n)
			return n, nil
		}
		if cap(r.buf) < n {
			r.buf = make([]byte, n)
		}
		if err := r.frame(r.buf[:n]); err != nil {
			return 0, err
		}
		r.left = r.buf[:n]
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	r.Off += int64(n)
	return n, nil
}

// frame reads the next frame, which has to fill p.
func (r *Reader) frame(p []byte) error {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r.R, head[:]); err != nil {
		return fmt.Errorf("%w at byte %d: %w", ErrFrame, r.Off, NoEOF(err))
	}
	if n := binary.LittleEndian.Uint32(head[:]); int64(n) != int64(len(p)) {
		return fmt.Errorf("%w at byte %d: %d bytes, not %d", ErrFrame, r.Off, n, len(p))
	}
	if _, err := io.ReadFull(r.R, p); err != nil {
		return fmt.Errorf("%w at byte %d: %w", ErrFrame, r.Off, NoEOF(err))
	}
	if want, got := binary.LittleEndian.Uint32(head[4:]), frameCRC(r.Seed, r.Off, p); want != got {
		return fmt.Errorf("%w at byte %d: checksum %08x, the bytes have %08x", ErrFrame, r.Off, want, got)
	}
	return nil
}

// NoEOF keeps an answer that was cut from looking like one that is over.
func NoEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

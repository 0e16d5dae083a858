package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The memory of a body, beside its bytes, as it counts in MaxBodiesBytes.
const (
	// maxWindow is the farthest that a zstd body may refer back; encoders' levels stay below.
	maxWindow = 8 << 20
	zstdRoom  = maxWindow + 1<<20
	gzipRoom  = 64 << 10
	// keptBuffer is what is kept for the next request; a larger one is the collector's.
	keptBuffer = 256 << 10
)

// errEncoding: a Content-Encoding that is none of ours.
var errEncoding = errors.New("content encoding is not supported")

// encodings are what a body may come in, as a 415 says.
const encodings = "gzip, zstd"

// unpackers keep what bodies are read into and unpacked by, for the next ones.
type unpackers struct {
	buffers sync.Pool // *[]byte of at most keptBuffer
	// decoders of zstd: each is some hundred KiB of tables; what they hold of a body goes.
	decoders sync.Pool
}

func (u *unpackers) buffer() *[]byte {
	if b, ok := u.buffers.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// body reads a request's body, unpacked, and no more than MaxBodyBytes of it however it is
// packed. done gives the bytes and their room back.
func (s *server) body(r *http.Request) (body []byte, held *room, done func(), err error) {
	held = &room{of: s.Bodies.free}
	buf := s.unpack.buffer()
	done = func() {
		held.release()
		if cap(*buf) <= keptBuffer {
			s.unpack.buffers.Put(buf)
		}
	}
	if body, err = s.unpack.read(r, held, (*buf)[:0]); err != nil {
		done()
		return nil, nil, nil, err
	}
	*buf = body
	return body, held, done, nil
}

func (u *unpackers) read(r *http.Request, held *room, buf []byte) ([]byte, error) {
	src, expect, extra, err := u.unpacking(r)
	if err != nil {
		return nil, err
	}
	if expect > MaxBodyBytes {
		return nil, errBodySize
	}
	if err := held.grow(extra + int64(cap(buf))); err != nil {
		return nil, err
	}
	// A byte more than what is announced: the read that finds the end needs one.
	buf, err = readAll(src, buf, int(expect)+1, func(n int) error { return held.grow(extra + int64(n)) })
	err = errors.Join(err, src.Close())
	held.shrink(int64(cap(buf))) // what unpacking and growing took
	return buf, err
}

// errBodySize is what net/http says, too.
var errBodySize error = &http.MaxBytesError{Limit: MaxBodyBytes}

// readAll reads src to its end. The buffer grows as bytes come, not as they are announced: a
// client that announces many and sends none holds none.
func readAll(src io.Reader, buf []byte, expect int, grow func(n int) error) ([]byte, error) {
	const least, step = 4 << 10, 1 << 20
	for {
		if len(buf) == cap(buf) {
			next := min(max(2*cap(buf), least), MaxBodyBytes+1)
			if expect > next && expect <= step {
				next = expect
			}
			if err := grow(next + cap(buf)); err != nil { // both, while one is copied into the other
				return nil, err
			}
			buf = append(make([]byte, 0, next), buf...)
		}
		n, err := src.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > MaxBodyBytes:
			return nil, errBodySize
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, fmt.Errorf("%w: read the body: %w", errBadRequest, err)
		}
	}
}

// unpacking is the body without its Content-Encoding, the length that it is known to have
// (0: none), and what unpacking takes.
func (u *unpackers) unpacking(r *http.Request) (src io.ReadCloser, expect, extra int64, err error) {
	coding := strings.Join(r.Header.Values("Content-Encoding"), ",")
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return r.Body, max(r.ContentLength, 0), 0, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, 0, 0, unpackError("gzip", err)
		}
		return &unpacked{z, "gzip", func() { _ = z.Close() }}, 0, gzipRoom, nil
	case "zstd":
		z, err := u.zstdReader(r.Body)
		if err != nil {
			return nil, 0, 0, unpackError("zstd", err)
		}
		return &unpacked{z, "zstd", func() { u.giveBack(z) }}, 0, zstdRoom, nil
	}
	return nil, 0, 0, fmt.Errorf("%w: %q: send %s, or the rows as they are", errEncoding, coding, encodings)
}

func (u *unpackers) zstdReader(r io.Reader) (*zstd.Decoder, error) {
	if z, ok := u.decoders.Get().(*zstd.Decoder); ok {
		return z, z.Reset(r)
	}
	// One goroutine, the caller's, and no more memory than was counted.
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

func (u *unpackers) giveBack(z *zstd.Decoder) {
	if z.Reset(nil) == nil { // it lets go of the body
		u.decoders.Put(z)
	}
}

// unpacked says of what its bytes are when they are damaged.
type unpacked struct {
	io.Reader
	coding string
	close  func()
}

func (u *unpacked) Close() error { u.close(); return nil }

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unpackError(u.coding, err)
	}
	return n, err
}

func unpackError(coding string, err error) error {
	if errors.Is(err, io.EOF) { // an error of its own, so that it is not taken for the end
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: unpack the %s body: %w", errBadRequest, coding, err)
}

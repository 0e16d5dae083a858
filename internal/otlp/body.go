package otlp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// readBody is the request's body, decompressed, within the bounds of one request and of all.
func readBody(w http.ResponseWriter, req *http.Request, mine *share) ([]byte, error) {
	plain := http.MaxBytesReader(w, req.Body, MaxBodyBytes)
	first := int64(firstRead)
	in, err := decompressor(req.Header.Values("Content-Encoding"), plain)
	if err != nil {
		return nil, err
	}
	if in == io.Reader(plain) && req.ContentLength >= 0 {
		if req.ContentLength > MaxBodyBytes {
			return nil, bodyTooLarge()
		}
		first = req.ContentLength + 1 // so that its end is seen without growing
	}
	if c, ok := in.(*zstd.Decoder); ok {
		defer c.Close()
	}
	return readPart(in, first, mine)
}

// readPart reads to the end, and says what is the matter in a way that has a verdict.
func readPart(in io.Reader, first int64, mine *share) ([]byte, error) {
	body, err := readAll(in, first, mine)
	var over *http.MaxBytesError
	var no *refusal
	var late interface{ Timeout() bool }
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &late) && late.Timeout():
		return nil, &refusal{http.StatusRequestTimeout, err.Error()}
	case errors.As(err, &over):
		return nil, bodyTooLarge()
	case errors.As(err, &no), errors.Is(err, errBusy):
		return nil, err
	}
	return nil, malformed("read the body: %v", err)
}

func bodyTooLarge() error {
	return tooLarge("the body is larger than %d bytes; send fewer records at once", MaxBodyBytes)
}

// decompressor undoes one Content-Encoding. Its memory is bounded: gzip has a window of
// 32 KiB, zstd is told.
func decompressor(encodings []string, in io.Reader) (io.Reader, error) {
	if len(encodings) == 0 {
		return in, nil
	}
	if len(encodings) == 1 {
		switch strings.ToLower(strings.TrimSpace(encodings[0])) {
		case "", "identity":
			return in, nil
		case "gzip":
			out, err := gzip.NewReader(in)
			if err != nil {
				return nil, bodyFault(err)
			}
			return out, nil
		case "zstd":
			out, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderMaxMemory(MaxBodyBytes))
			if err != nil {
				return nil, bodyFault(err)
			}
			return out, nil
		}
	}
	return nil, &refusal{http.StatusUnsupportedMediaType, fmt.Sprintf("content encoding %.100q: give gzip, zstd, or none", encodings)}
}

func bodyFault(err error) error {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return bodyTooLarge()
	}
	return malformed("read the body: %v", err)
}

// firstRead is what a body of unknown length is given first.
const firstRead = 64 << 10

// readAll reads to the end, and takes memory as it grows.
func readAll(in io.Reader, first int64, mine *share) ([]byte, error) {
	if err := mine.grow(first); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, first)
	for {
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > MaxBodyBytes:
			return nil, bodyTooLarge()
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		}
		if len(buf) == cap(buf) {
			if err := mine.grow(int64(cap(buf))); err != nil {
				return nil, err
			}
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
	}
}

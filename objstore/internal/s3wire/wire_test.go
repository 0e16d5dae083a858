package s3wire

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
)

func TestRangeHeader(t *testing.T) {
	for r, want := range map[objstore.Range]string{
		objstore.Whole:            "",
		{}:                        "",
		{Offset: 0, Length: 1}:    "bytes=0-0",
		{Offset: 7, Length: 10}:   "bytes=7-16",
		{Offset: 7, Length: -1}:   "bytes=7-",
		objstore.Suffix(16):       "bytes=-16",
		{Offset: -16, Length: 99}: "bytes=-16",
	} {
		if got, err := RangeHeader(r); err != nil || got != want {
			t.Errorf("%+v: %q %v, want %q", r, got, err, want)
		}
	}
	if _, err := RangeHeader(objstore.Range{Offset: 7}); !errors.Is(err, objstore.ErrRange) {
		t.Errorf("no bytes at 7: %v", err)
	}
}

// FuzzContentRange: whatever a server sends, an extent that is accepted lies within its
// object and is the range asked for.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-9/10", "bytes 0--1/0", "bytes 3-6/10", "bytes */10", "bytes 5-3/10", "bytes 0-9223372036854775807/9223372036854775807", "x"} {
		f.Add(s, int64(4), int64(3), int64(4))
	}
	f.Fuzz(func(t *testing.T, header string, length, off, n int64) {
		h := http.Header{"Content-Range": {header}, "Content-Length": {strconv.FormatInt(length, 10)}}
		e, err := ReadExtent(h, http.StatusPartialContent, objstore.Range{Offset: off, Length: n})
		if err != nil {
			return
		}
		if e.Offset < 0 || e.Length < 0 || e.Total < 0 || e.Offset > e.Total-e.Length || e.Length != length {
			t.Errorf("%q of %d: %+v", header, length, e)
		}
		if off > 0 && e.Length > 0 && e.Offset != off {
			t.Errorf("asked at %d, accepted %+v", off, e)
		}
	})
}

func TestSpace(t *testing.T) {
	for prefix, want := range map[string]string{"": "k", "p": "p/k", "/p/q/": "p/q/k"} {
		s, err := NewSpace("b", prefix)
		if err != nil || s.Full("k") != want || s.Strip(want) != "k" || s.After("") != "" {
			t.Errorf("prefix %q: %q %v", prefix, s.Full("k"), err)
		}
	}
	for _, prefix := range []string{"a//b", "a/./b", ".."} {
		if _, err := NewSpace("b", prefix); err == nil {
			t.Errorf("prefix %q taken", prefix)
		}
	}
	s, err := NewSpace("b", "p")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(objstore.OpPut, strings.Repeat("k", 1022)); err != nil {
		t.Error(err)
	}
	if err := s.Check(objstore.OpPut, strings.Repeat("k", 1023)); !errors.Is(err, objstore.ErrInvalid) {
		t.Errorf("1,025 bytes with the prefix: %v", err)
	}
}

// TestChecksum holds the header against the CRC-32C check value of its definition.
func TestChecksum(t *testing.T) {
	got, err := Checksum(strings.NewReader("123456789"), 9)
	if err != nil || got != "4waSgw==" { // 0xE3069283
		t.Errorf("%s %v", got, err)
	}
	if _, err := Checksum(strings.NewReader("123456789"), 8); err == nil {
		t.Error("a body of another size was taken")
	}
}

func TestTransportRefuses(t *testing.T) {
	if _, err := NewTransport(Options{CAFile: "no-such-file"}); err == nil {
		t.Error("a missing file of certificates was taken")
	}
	if _, err := NewTransport(Options{CAFile: "wire_test.go"}); err == nil {
		t.Error("a file without certificates was taken")
	}
	if _, err := NewTransport(Options{Concurrency: -1}); err == nil {
		t.Error("a negative concurrency was taken")
	}
}

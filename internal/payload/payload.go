package payload

import (
	"bytes"
	"hash/fnv"
	"strconv"
	"strings"
)

// Sizes are those of rows: some hundred bytes, but for the streams whose names begin with
// Fat, whose rows have Least bytes and up to Spread more, and get objects of their own.
type Sizes struct {
	Fat           string
	Least, Spread int
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// Row is row n of a stream.
func (z Sizes) Row(stream string, n uint64) []byte {
	b := append([]byte(stream), '|')
	b = strconv.AppendUint(b, n, 10)
	b = append(b, '|')
	h := fnv.New64a()
	_, _ = h.Write(b) // a hash takes everything
	x := h.Sum64() | 1
	size := 20 + int(x>>8%280)
	if strings.HasPrefix(stream, z.Fat) {
		size = z.Least + int(x>>8%uint64(z.Spread))
	}
	for range size {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b = append(b, alphabet[x&63])
	}
	return b
}

// Number is which row of a stream it is; false if its bytes are not what was sent.
func (z Sizes) Number(stream, p string) (n uint64, ok bool) {
	rest, ok := strings.CutPrefix(p, stream+"|")
	if !ok {
		return 0, false
	}
	digits, _, ok := strings.Cut(rest, "|")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && bytes.Equal(z.Row(stream, n), []byte(p))
}

package e2e

import (
	"bytes"
	"hash/fnv"
	"strconv"
	"strings"
)

// fatPrefix begins the names of streams with large rows, which get objects of their own.
const fatPrefix = "fat-"

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// payload is row n of a stream. It says what it is, and the rest of its bytes follow from
// that, so that any row can be held byte for byte against what was sent.
func payload(stream string, n uint64) []byte {
	b := append([]byte(stream), '|')
	b = strconv.AppendUint(b, n, 10)
	b = append(b, '|')
	h := fnv.New64a()
	_, _ = h.Write(b) // a hash takes everything
	x := h.Sum64() | 1
	size := 20 + int(x>>8%280)
	if strings.HasPrefix(stream, fatPrefix) {
		size = 2<<10 + int(x>>8%(4<<10))
	}
	for range size {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b = append(b, alphabet[x&63])
	}
	return b
}

// numberOf is the number of a row of a stream; false if its bytes are not what was sent.
func numberOf(stream string, p []byte) (n uint64, ok bool) {
	rest, ok := bytes.CutPrefix(p, []byte(stream+"|"))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte("|"))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return n, err == nil && bytes.Equal(payload(stream, n), p)
}

//go:build unix

package s3test

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
)

const otherETag = "00000000000000000000000000000000"

// findingsOfWrites: what conditional puts do.
func findingsOfWrites() []finding {
	return []finding{
		{name: "a create-once put of what exists is 412", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "first", cond{}))
			_, said := l.bare.put(l.key("k"), "second", cond{none: "*"})
			return said + ", " + l.holds(l.key("k"))
		}, want: same("412 PreconditionFailed, holds first")},

		{name: "of 8 create-once puts at once just one wins", see: func(l *lab) string {
			return l.rounds(5, func(k string, i int) string {
				_, said := l.bare.put(k, strconv.Itoa(i), cond{none: "*"})
				return said
			})
		}, want: same("7 412 PreconditionFailed, 1 ok")},

		{name: "a create-once put may name an ETag instead of *", see: func(l *lab) string {
			etag := l.must(l.bare.put(l.key("k"), "first", cond{}))
			_, own := l.bare.put(l.key("k"), "second", cond{none: etag})
			_, other := l.bare.put(l.key("k"), "third", cond{none: otherETag})
			return own + "; " + other
		}, want: each("412 PreconditionFailed; ok", "501 NotImplemented; 501 NotImplemented")},

		{name: "a put under a stale ETag is 412, under the right one ok", see: func(l *lab) string {
			etag := l.must(l.bare.put(l.key("k"), "first", cond{}))
			_, right := l.bare.put(l.key("k"), "second", cond{match: etag})
			_, stale := l.bare.put(l.key("k"), "third", cond{match: etag})
			return right + "; " + stale
		}, want: same("ok; 412 PreconditionFailed")},

		{name: "a put under an ETag where nothing stands is 404 (K33)", see: func(l *lab) string {
			_, said := l.bare.put(l.key("k"), "x", cond{match: otherETag})
			return said + ", " + l.holds(l.key("k"))
		}, want: same("404 NoSuchKey, 404 NoSuchKey")},

		{name: "a put under If-Match * of what exists", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "first", cond{}))
			_, said := l.bare.put(l.key("k"), "second", cond{match: "*"})
			return said
		}, want: each("ok", "412 PreconditionFailed")},

		{name: "8 puts at once under one ETag: just one wins", see: func(l *lab) string {
			etag := l.must(l.bare.put(l.key("k"), "first", cond{}))
			return tally(8, func(i int) string {
				_, said := l.bare.put(l.key("k"), strconv.Itoa(i), cond{match: etag})
				return said
			})
		}, want: same("7 412 PreconditionFailed, 1 ok")},

		{name: "an ETag is of the content: A, B, A, and If-Match A holds again", see: func(l *lab) string {
			first := l.must(l.bare.put(l.key("k"), "A", cond{}))
			l.must(l.bare.put(l.key("k"), "B", cond{}))
			l.must(l.bare.put(l.key("k"), "A", cond{}))
			_, said := l.bare.put(l.key("k"), "C", cond{match: first})
			return fmt.Sprintf("%s of %s", said, first)
		}, want: same("ok of 7fc56270e7a70fa81a5935b72eacbe29")},

		{name: "minio-go's PutObject above 16 MiB overwrites what arrives after it began", only: "minio-go", see: func(l *lab) string {
			// The competitor's object arrives when the library reads its first part.
			rival := readHook{r: bytes.NewReader(make([]byte, 17<<20)), hook: func() { l.must(l.bare.put(l.key("k"), "rival", cond{})) }}
			return l.highPut(&rival)
		}, want: same("ok, the rival is gone")},

		{name: "minio-go's PutObject above 16 MiB over what exists", only: "minio-go", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "rival", cond{}))
			return l.highPut(bytes.NewReader(make([]byte, 17<<20)))
		}, want: each("412 PreconditionFailed", "ok, the rival is gone")},
	}
}

// rounds lets 8 writers race for a key, again and again, and says what all rounds said.
func (l *lab) rounds(n int, write func(key string, i int) string) string {
	var first string
	for round := range n {
		k := l.key(fmt.Sprintf("race/%d", round))
		said := tally(8, func(i int) string { return write(k, i) })
		if round > 0 && said != first {
			return first + "; then " + said
		}
		first = said
	}
	return first
}

// readHook calls hook once, when it is first read.
type readHook struct {
	r    io.Reader
	hook func()
}

func (h *readHook) Read(p []byte) (int, error) {
	if h.hook != nil {
		h.hook()
		h.hook = nil
	}
	return h.r.Read(p)
}

// highPut writes 17 MiB create-once with minio-go's high-level call.
func (l *lab) highPut(body io.Reader) string {
	var o minio.PutObjectOptions
	o.SetMatchETagExcept("*")
	_, err := l.mini.Client.PutObject(l.ctx, l.to.Bucket, l.key("k"), body, 17<<20, o)
	if err != nil {
		return saidOf(err)
	}
	if strings.Contains(l.holds(l.key("k")), "rival") {
		return "ok, and the rival stands"
	}
	return "ok, the rival is gone"
}

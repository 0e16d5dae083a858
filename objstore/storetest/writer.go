package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/objstore"
)

func storeWriter(e *env) {
	part := e.partSize()
	s, _ := e.store(nil)
	for _, n := range []int{0, 1, part - 1, part, part + 1, 3*part + 5} {
		k := e.key(fmt.Sprintf("w/%d", n))
		body := noise(uint64(n), n)
		var ids, done []string
		info, err := writeAll(e, s, k, body, objstore.UploadOptions{
			Meta:     map[string]string{"what": "writer"},
			OnCreate: func(id string) error { ids = append(ids, id); return nil },
			OnDone:   func(id string) { done = append(done, id) },
		})
		if err != nil || info.Size != int64(n) {
			e.Fatalf("%d bytes: %+v, %v", n, info, err)
		}
		if plain := n <= part; plain != (len(ids) == 0) || !slices.Equal(ids, done) {
			e.Errorf("%d bytes: uploads created %q, done %q", n, ids, done)
		}
		got := e.holds(k, body)
		e.sameMeta(got.Meta, map[string]string{"what": "writer"})
	}
	e.noUploads()
}

// noUploads checks that no upload of this case is left, where that can be seen.
func (e *env) noUploads() {
	e.Helper()
	if !e.caps.ListUploads {
		return
	}
	ups, err := e.d.ListUploads(e.ctx(), e.prefix)
	if err != nil || len(ups) != 0 {
		e.Fatalf("uploads left: %+v, %v", ups, err)
	}
}

// storeWriterLost: the key is taken; the upload is aborted, and the object stands.
func storeWriterLost(e *env) {
	k := e.key("wl")
	s, _ := e.store(nil)
	e.mustPut(k, []byte("first"))
	body := noise(32, 2*e.partSize())
	var done int
	_, err := writeAll(e, s, k, body, objstore.UploadOptions{OnDone: func(string) { done++ }})
	e.wantKind("a large object over another", err, objstore.ErrExists)
	_, err = writeAll(e, s, k, body[:10], objstore.UploadOptions{})
	e.wantKind("a small object over another", err, objstore.ErrExists)
	e.holds(k, []byte("first"))
	if done != 1 {
		e.Errorf("OnDone called %d times", done)
	}
	e.noUploads()

	late := errors.New("the deadline has passed")
	k = e.key("wl2")
	for _, n := range []int{10, len(body)} {
		_, err = writeAll(e, s, k, body[:n], objstore.UploadOptions{BeforeComplete: func(context.Context) error { return late }})
		if !errors.Is(err, late) {
			e.Fatalf("BeforeComplete's error: %v", err)
		}
	}
	e.absent(k)
	e.noUploads()
}

// storeWriterCopies joins written bytes and ranges of every awkward length.
func storeWriterCopies(e *env) {
	part := int64(e.partSize())
	src := noise(33, int(e.caps.MinCopy+3*part+11))
	from := e.mustPut(e.key("wc/src"), src)
	small := noise(34, 77)
	tiny := e.mustPut(e.key("wc/tiny"), small)
	s, _ := e.store(nil)
	k := e.key("wc/dst")
	w := s.NewWriter(e.ctx(), k, objstore.UploadOptions{})
	var want []byte
	write := func(b []byte) {
		if _, err := w.Write(b); err != nil {
			e.Fatal(err)
		}
		want = append(want, b...)
	}
	join := func(info objstore.Info, body []byte, off, n int64) {
		if err := w.CopyRange(objstore.CopySource{Key: info.Key, ETag: info.ETag, Offset: off, Length: n}); err != nil {
			e.Fatalf("copy %d bytes at %d: %v", n, off, err)
		}
		want = append(want, body[off:off+n]...)
	}
	write([]byte("header"))
	join(from, src, 5, 3*part)      // head pulled through, the rest copied
	join(from, src, 0, part)        // straight
	join(tiny, small, 0, 77)        // small source
	join(from, src, 1, part+part/2) // remainder too short: all through
	join(from, src, 9, 0)
	write(noise(35, int(part)))
	join(from, src, 3, part-1) // below the minimum
	write([]byte("footer"))
	if _, err := w.Commit(); err != nil {
		e.Fatal(err)
	}
	e.holds(k, want)
	through, copied := w.Moved()
	if w.Size() != int64(len(want)) || through+copied != w.Size() {
		e.Errorf("size %d, moved %d and %d; want %d", w.Size(), through, copied, len(want))
	}
	if e.caps.RangeCopy != (copied > 0) {
		e.Errorf("%d bytes copied within the store", copied)
	}
	if got := s.Counters().BytesCopied; got != copied {
		e.Errorf("counted %d bytes copied, moved %d", got, copied)
	}
	e.noUploads()
}

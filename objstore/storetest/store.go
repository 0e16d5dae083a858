package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
)

// RunStore holds the promises of objstore.Store over a driver: its answers under
// lost responses, refusals, cut bodies and partial failures, all injected on the
// way to the real driver. open is as for Run.
func RunStore(t *testing.T, open func(t *testing.T) objstore.Driver) {
	for _, c := range []testCase{
		{"TestK31", storeK31},
		{"TestK32", storeK32},
		{"TestK35", storeK35},
		{"TestK13", storeK13},
		{"TestK38", storeK38},
		{"PutIfMatch", storePutIfMatch},
		{"Reads", storeReads},
		{"Writer", storeWriter},
		{"WriterLost", storeWriterLost},
		{"WriterCopies", storeWriterCopies},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(newEnv(t, open(t))) })
	}
}

// store is a Store with faults before the driver, and without pauses.
func (e *env) store(pick func(faultstore.Call) faultstore.Fault) (*objstore.Store, *faultstore.Driver) {
	e.Helper()
	d := faultstore.Wrap(e.d, pick)
	s, err := objstore.New(d, objstore.Config{
		PartSize: int64(e.partSize()), Concurrency: 2,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		e.Fatal(err)
	}
	return s, d
}

// nth injects f into the n-th call of op.
func nth(op objstore.Op, n int, f faultstore.Fault) func(faultstore.Call) faultstore.Fault {
	seen := 0
	return func(c faultstore.Call) faultstore.Fault {
		if c.Op != op {
			return faultstore.Fault{}
		}
		if seen++; seen == n {
			return f
		}
		return faultstore.Fault{}
	}
}

func (e *env) hit(d *faultstore.Driver) {
	e.Helper()
	if d.Hits() == 0 {
		e.Fatal("the fault was not hit")
	}
}

// storeK31: the answer of an own create is lost, the retry says "exists": mine.
func storeK31(e *env) {
	lost := nth(objstore.OpPut, 1, faultstore.Fault{Kind: faultstore.AnswerLost, Err: objstore.ErrUnavailable})
	s, d := e.store(lost)
	k := e.key("k31")
	info, err := s.PutOnce(e.ctx(), k, []byte("mine"), nil)
	if err != nil {
		e.Fatalf("own create, retried: %v", err)
	}
	e.hit(d)
	if got := e.holds(k, []byte("mine")); got.ETag != info.ETag {
		e.Errorf("ETag %q, the object has %q", info.ETag, got.ETag)
	}
	_, err = s.PutOnce(e.ctx(), k, []byte("mine"), nil)
	e.wantKind("another call with the same bytes", err, objstore.ErrExists)
}

// storeK32: a 409 is not "exists".
func storeK32(e *env) {
	s, d := e.store(nth(objstore.OpPut, 1, faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrConflict}))
	k := e.key("k32")
	if _, err := s.PutOnce(e.ctx(), k, []byte("x"), nil); err != nil {
		e.Fatalf("put after a 409: %v", err)
	}
	e.hit(d)
	e.holds(k, []byte("x"))
}

// storeK35: of 1,000 keys 3 fail inside an answer that says 200.
func storeK35(e *env) {
	keys := prefixed(e, 1000)
	bad := []string{keys[0], keys[500], keys[999]}
	for _, k := range bad {
		e.mustPut(k, []byte(k))
	}
	s, d := e.store(func(c faultstore.Call) faultstore.Fault {
		return faultstore.Fault{Kind: faultstore.DeleteFails, Err: objstore.ErrDenied, Keys: func(k string) bool { return slices.Contains(bad, k) }}
	})
	results, err := s.Delete(e.ctx(), keys)
	if err != nil || len(results) != 1000 {
		e.Fatalf("%d results, %v", len(results), err)
	}
	e.hit(d)
	var failed []string
	for i, r := range results {
		if r.Key != keys[i] {
			e.Fatalf("result %d is of %q, asked %q", i, r.Key, keys[i])
		}
		if r.Err != nil {
			e.wantKind(r.Key, r.Err, objstore.ErrDenied)
			failed = append(failed, r.Key)
		}
	}
	if !slices.Equal(failed, bad) {
		e.Fatalf("failed: %q, want %q", failed, bad)
	}
	for _, k := range bad {
		e.holds(k, []byte(k))
	}
}

// storeK13: an ambiguous commit is read back, not taken for failed.
func storeK13(e *env) {
	k := e.key("k13/put")
	s, d := e.store(nth(objstore.OpPut, 1, faultstore.Fault{Kind: faultstore.AnswerLost}))
	if _, err := s.PutOnce(e.ctx(), k, []byte("x"), nil); err != nil {
		e.Fatalf("ambiguous put: %v", err)
	}
	e.hit(d)
	e.holds(k, []byte("x"))
	if n := s.Counters().Requests[objstore.OpPut]; n != 1 {
		e.Errorf("%d puts, want the one", n)
	}

	k = e.key("k13/upload")
	s, d = e.store(nth(objstore.OpComplete, 1, faultstore.Fault{Kind: faultstore.AnswerLost}))
	body := noise(30, 2*e.partSize()+9)
	info, err := writeAll(e, s, k, body, objstore.UploadOptions{})
	if err != nil {
		e.Fatalf("ambiguous complete: %v", err)
	}
	e.hit(d)
	if got := e.holds(k, body); got.ETag != info.ETag {
		e.Errorf("ETag %q, the object has %q", info.ETag, got.ETag)
	}

	// Nothing can be read back: unknown, and nothing else.
	k = e.key("k13/unknown")
	s, d = e.store(func(c faultstore.Call) faultstore.Fault {
		if c.Op == objstore.OpPut {
			return faultstore.Fault{Kind: faultstore.AnswerLost}
		}
		return faultstore.Fault{Kind: faultstore.NotApplied}
	})
	_, err = s.PutOnce(e.ctx(), k, []byte("x"), nil)
	e.wantKind("no read-back", err, objstore.ErrAmbiguous)
	if errors.Is(err, objstore.ErrExists) || errors.Is(err, objstore.ErrUnavailable) {
		e.Errorf("the unknown outcome also claims another kind: %v", err)
	}
	e.hit(d)
}

func writeAll(e *env, s *objstore.Store, key string, body []byte, opts objstore.UploadOptions) (objstore.Info, error) {
	w := s.NewWriter(e.ctx(), key, opts)
	if _, err := w.Write(body); err != nil {
		return objstore.Info{}, errors.Join(err, w.Abort())
	}
	return w.Commit()
}

// storeK38: tear one stream down by its listing; its neighbours stand.
func storeK38(e *env) {
	names := []string{"x/1", "x/2", "x1/1", "x~1/1", "x-/1", "x=2/1", "X/1"}
	e.fill(names...)
	s, _ := e.store(nil)
	var doomed []string
	for info, err := range s.List(e.ctx(), e.key("x/"), "") {
		if err != nil {
			e.Fatal(err)
		}
		doomed = append(doomed, info.Key)
	}
	if _, err := s.Delete(e.ctx(), doomed); err != nil {
		e.Fatal(err)
	}
	for _, n := range names[:2] {
		e.absent(e.key(n))
	}
	for _, n := range names[2:] {
		e.holds(e.key(n), []byte(n))
	}
}

func storePutIfMatch(e *env) {
	k := e.rw("cas")
	s, _ := e.store(nil)
	one, err := s.PutIfMatch(e.ctx(), k, []byte("one"), "")
	if err != nil {
		e.Fatal(err)
	}
	_, err = s.PutIfMatch(e.ctx(), k, []byte("other"), "")
	e.wantKind("create again", err, objstore.ErrExists)

	lossy, d := e.store(nth(objstore.OpPut, 1, faultstore.Fault{Kind: faultstore.AnswerLost}))
	two, err := lossy.PutIfMatch(e.ctx(), k, []byte("two"), one.ETag)
	if err != nil {
		e.Fatalf("replace, answer lost: %v", err)
	}
	e.hit(d)
	e.holds(k, []byte("two"))

	_, err = s.PutIfMatch(e.ctx(), k, []byte("late"), one.ETag)
	e.wantKind("stale", err, objstore.ErrPrecondition)
	e.mustDelete(k)
	_, err = s.PutIfMatch(e.ctx(), k, []byte("gone"), two.ETag)
	e.wantKind("absent", err, objstore.ErrPrecondition)
	e.absent(k)
}

// storeReads: bodies are cut again and again; the bytes come whole, or not at all.
func storeReads(e *env) {
	k := e.key("reads")
	body := noise(31, 5000)
	e.mustPut(k, body)
	cut := func(c faultstore.Call) faultstore.Fault {
		if c.Op == objstore.OpGet && c.N%3 != 0 {
			return faultstore.Fault{Kind: faultstore.ShortBody, Keep: 700}
		}
		return faultstore.Fault{}
	}
	for what, read := range map[string]func(s *objstore.Store) ([]byte, objstore.Info, error){
		"range":  func(s *objstore.Store) ([]byte, objstore.Info, error) { return s.ReadRange(e.ctx(), k, 1000, 3000) },
		"suffix": func(s *objstore.Store) ([]byte, objstore.Info, error) { return s.ReadSuffix(e.ctx(), k, 3000) },
		"all":    func(s *objstore.Store) ([]byte, objstore.Info, error) { return s.ReadAll(e.ctx(), k, 5000) },
	} {
		s, d := e.store(cut)
		got, info, err := read(s)
		want := map[string][]byte{"range": body[1000:4000], "suffix": body[2000:], "all": body}[what]
		if err != nil || !bytes.Equal(got, want) || info.Size != 5000 {
			e.Errorf("%s: %d bytes, size %d, %v", what, len(got), info.Size, err)
		}
		e.hit(d)
	}
	s, _ := e.store(nil)
	_, _, err := s.ReadRange(e.ctx(), k, 4990, 11)
	e.wantKind("a byte too many", err, objstore.ErrRange)
	_, _, err = s.ReadAll(e.ctx(), k, 4999)
	e.wantKind("an object above the limit", err, objstore.ErrInvalid)
	if got, info, err := s.ReadSuffix(e.ctx(), k, 9999); err != nil || !bytes.Equal(got, body) || info.Size != 5000 {
		e.Errorf("suffix longer than the object: %d bytes, %+v, %v", len(got), info, err)
	}
	e.mustPut(e.key("empty"), nil)
	if got, info, err := s.ReadSuffix(e.ctx(), e.key("empty"), 10); err != nil || len(got) != 0 || info.Size != 0 {
		e.Errorf("suffix of an empty object: %q, %+v, %v", got, info, err)
	}
}

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
	if e.canCopy() != (copied > 0) {
		e.Errorf("%d bytes copied within the store", copied)
	}
	if got := s.Counters().BytesCopied; got != copied {
		e.Errorf("counted %d bytes copied, moved %d", got, copied)
	}
	e.noUploads()
}

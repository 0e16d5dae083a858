package storetest

import (
	"bytes"
	"context"
	"errors"
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
	RunStoreOver(t, func(t *testing.T) (objstore.Driver, objstore.Driver) {
		d := open(t)
		return d, d
	})
}

// RunStoreOver is RunStore with two ways to one bucket: Stores are put over the one,
// which may be faulty as far as a Store absorbs it, and what they did is seen by the
// other.
func RunStoreOver(t *testing.T, open func(t *testing.T) (over, steady objstore.Driver)) {
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
		t.Run(c.name, func(t *testing.T) {
			over, steady := open(t)
			e := newEnv(t, steady)
			e.over = over
			c.run(e)
		})
	}
}

// store is a Store with faults before the driver, and without pauses.
func (e *env) store(pick func(faultstore.Call) faultstore.Fault) (*objstore.Store, *faultstore.Driver) {
	e.Helper()
	d := faultstore.Wrap(e.over, pick)
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

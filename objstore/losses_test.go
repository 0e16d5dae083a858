package objstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// The rows of known-losses that this layer answers for, by number.

// TestK31: the first attempt was applied and called a failure; the retry is told
// "exists". It is our own.
func TestK31(t *testing.T) {
	m := mem(t, memstore.Options{})
	d := faultstore.Wrap(m, script(objstore.OpPut, faultstore.Fault{Kind: faultstore.AnswerLost, Err: objstore.ErrUnavailable}))
	s := newStore(t, d)
	if _, err := s.PutOnce(t.Context(), "a/slot", []byte("mine"), nil); err != nil {
		t.Fatalf("own create taken for another's: %v", err)
	}
	if c := s.Counters(); c.Requests[objstore.OpPut] != 2 || c.Requests[objstore.OpHead] != 1 {
		t.Errorf("requests %v: want two puts and a read-back", c.Requests)
	}
	_, err := newStore(t, m, func(c *objstore.Config) { c.Nonce = func() string { return "other" } }).
		PutOnce(t.Context(), "a/slot", []byte("mine"), nil)
	wantKind(t, err, objstore.ErrExists)
	wantBytes(t, m, "a/slot", []byte("mine"))
}

// TestK32: a 409 is retried, on a put; on a complete it comes back as itself.
func TestK32(t *testing.T) {
	m := mem(t, memstore.Options{})
	s := newStore(t, faultstore.Wrap(m, script(objstore.OpPut, conflict, conflict)))
	if _, err := s.PutOnce(t.Context(), "k", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	wantBytes(t, m, "k", []byte("x"))

	s = newStore(t, faultstore.Wrap(m, script(objstore.OpComplete, conflict)))
	w := s.NewWriter(t.Context(), "big", objstore.UploadOptions{})
	if _, err := w.Write(make([]byte, 250)); err != nil {
		t.Fatal(err)
	}
	_, err := w.Commit()
	wantKind(t, err, objstore.ErrConflict)
	noUploads(t, m)
	if _, stands := m.Dump()["big"]; stands {
		t.Error("the object stands")
	}
}

func noUploads(t *testing.T, m *memstore.Driver) {
	t.Helper()
	ups, err := m.ListUploads(context.Background(), "")
	if err != nil || len(ups) != 0 {
		t.Fatalf("uploads left: %v, %v", ups, err)
	}
}

// TestK35: 3 of 1,000 keys fail in an answer that came with 200.
func TestK35(t *testing.T) {
	m := mem(t, memstore.Options{})
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("seg/%03d", i))
		put(t, m, keys[i], []byte("x"))
	}
	bad := []string{keys[3], keys[333], keys[998]}
	var calls []int
	d := faultstore.Wrap(m, func(c faultstore.Call) faultstore.Fault {
		calls = append(calls, c.N)
		return faultstore.Fault{Kind: faultstore.DeleteFails, Keys: func(k string) bool { return slices.Contains(bad, k) }}
	})
	s := newStore(t, d)
	results, err := s.Delete(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	gone, failed := 0, 0
	for i, r := range results {
		switch {
		case r.Key != keys[i]:
			t.Fatalf("result %d is of %s", i, r.Key)
		case r.Err == nil:
			gone++
		default:
			failed++
			wantKind(t, r.Err, objstore.ErrUnavailable)
		}
	}
	if gone != 997 || failed != 3 {
		t.Errorf("%d gone and %d failed, want 997 and 3", gone, failed)
	}
	if left := m.Keys(); !slices.Equal(left, bad) {
		t.Errorf("left %q", left)
	}
	if len(calls) != objstore.DefaultAttempts {
		t.Errorf("%d calls, want %d: the failed keys are tried again", len(calls), objstore.DefaultAttempts)
	}
}

func put(t *testing.T, d objstore.Driver, key string, body []byte) objstore.Info {
	t.Helper()
	info, err := d.Put(t.Context(), key, bytes.NewReader(body), int64(len(body)), objstore.PutOptions{IfNoneMatch: true})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestK13: a commit whose outcome is unknown is read back; only what cannot be
// known stays unknown, and then nothing is cleaned up.
func TestK13(t *testing.T) {
	t.Run("put", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		s := newStore(t, faultstore.Wrap(m, script(objstore.OpPut, lost)))
		if _, err := s.PutOnce(t.Context(), "k", []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, m, "k", []byte("x"))
	})
	t.Run("put, not applied", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		s := newStore(t, faultstore.Wrap(m, script(objstore.OpPut, timedOut, timedOut)))
		if _, err := s.PutOnce(t.Context(), "k", []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, m, "k", []byte("x"))
	})
	t.Run("another's", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		put(t, m, "k", []byte("theirs"))
		s := newStore(t, faultstore.Wrap(m, script(objstore.OpPut, timedOut)))
		_, err := s.PutOnce(t.Context(), "k", []byte("x"), nil)
		wantKind(t, err, objstore.ErrExists)
	})
	t.Run("complete", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		s := newStore(t, faultstore.Wrap(m, script(objstore.OpComplete, lost)))
		done := 0
		w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{OnDone: func(string) { done++ }})
		if _, err := w.Write(make([]byte, 350)); err != nil {
			t.Fatal(err)
		}
		if info, err := w.Commit(); err != nil || info.Size != 350 || done != 1 {
			t.Fatalf("%+v, %v, done %d", info, err, done)
		}
		if n := s.Counters().Requests[objstore.OpAbort]; n != 0 {
			t.Errorf("%d aborts of a commit that stands", n)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		d := faultstore.Wrap(m, func(c faultstore.Call) faultstore.Fault {
			switch c.Op {
			case objstore.OpComplete:
				return timedOut
			case objstore.OpHead:
				return unavailable
			}
			return faultstore.Fault{}
		})
		s := newStore(t, d)
		done := 0
		w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{OnDone: func(string) { done++ }})
		if _, err := w.Write(make([]byte, 350)); err != nil {
			t.Fatal(err)
		}
		_, err := w.Commit()
		wantKind(t, err, objstore.ErrAmbiguous)
		if errors.Is(err, objstore.ErrUnavailable) {
			t.Errorf("unknown also says not applied: %v", err)
		}
		if err := w.Abort(); err != nil || done != 0 {
			t.Errorf("abort after an unknown commit: %v, done %d", err, done)
		}
		if ups, err := m.ListUploads(t.Context(), ""); err != nil || len(ups) != 1 {
			t.Errorf("the upload is to be left for the judge: %v, %v", ups, err)
		}
	})
}

// TestK38: at the Store, a listing with a prefix that ends inside a segment gives
// its neighbours too, one that ends in a slash does not, and a store that lists
// what was not asked is refused.
func TestK38(t *testing.T) {
	m := mem(t, memstore.Options{})
	for _, k := range []string{"a/1/x", "a/10/x", "a/1~1/x", "a/2/x"} {
		put(t, m, k, nil)
	}
	s := newStore(t, m)
	if got := keys(t, s, "a/1/"); !slices.Equal(got, []string{"a/1/x"}) {
		t.Errorf("a/1/ lists %q", got)
	}
	if got := keys(t, s, "a/1"); len(got) != 3 {
		t.Errorf("a/1 lists %q", got)
	}
	_, err := collect(newStore(t, loose{m}), t.Context(), "a/1/")
	wantKind(t, err, objstore.ErrCorrupt)
}

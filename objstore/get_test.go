package objstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// getter is a store whose Get a test rewrites.
type getter struct {
	*memstore.Driver
	get func(r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error)
}

func (g getter) Get(_ context.Context, _ string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	return g.get(r, ifMatch)
}

func numbers(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

func TestReadResumesUnderItsETag(t *testing.T) {
	m := mem(t, memstore.Options{})
	body := numbers(1000)
	etag := put(t, m, "k", body).ETag
	type ask struct {
		r       objstore.Range
		ifMatch string
	}
	var asked []ask
	g := getter{m, func(r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
		asked = append(asked, ask{r, ifMatch})
		rc, info, err := m.Get(t.Context(), "k", r, ifMatch)
		if err == nil && len(asked) < 3 {
			return io.NopCloser(io.LimitReader(rc, 100)), info, nil // ends without an error
		}
		return rc, info, err
	}}
	s := newStore(t, g)
	got, info, err := s.ReadSuffix(t.Context(), "k", 400)
	if err != nil || !bytes.Equal(got, body[600:]) || info.Size != 1000 || info.ETag != etag {
		t.Fatalf("%d bytes, %+v, %v", len(got), info, err)
	}
	want := []ask{{objstore.Suffix(400), ""}, {objstore.Range{Offset: 700, Length: 300}, etag}, {objstore.Range{Offset: 800, Length: 200}, etag}}
	if len(asked) != 3 || asked[0] != want[0] || asked[1] != want[1] || asked[2] != want[2] {
		t.Errorf("asked %v, want %v", asked, want)
	}
	if c := s.Counters(); c.BytesIn != 400 || c.Errors[objstore.OpGet] != 2 {
		t.Errorf("counters %+v", c)
	}
}

// TestReadOfAChangingObject: the object is replaced between a cut body and its
// rest. The read gives one version or the other, never both.
func TestReadOfAChangingObject(t *testing.T) {
	m := mem(t, memstore.Options{})
	old := put(t, m, "rw/k", bytes.Repeat([]byte("a"), 500))
	n := 0
	g := getter{m, func(r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
		rc, info, err := m.Get(t.Context(), "rw/k", r, ifMatch)
		if n++; n == 1 {
			if _, err := m.Put(t.Context(), "rw/k", bytes.NewReader(bytes.Repeat([]byte("b"), 300)), 300, objstore.PutOptions{IfMatch: old.ETag}); err != nil {
				t.Error(err)
			}
			return io.NopCloser(io.LimitReader(rc, 100)), info, err
		}
		return rc, info, err
	}}
	got, info, err := newStore(t, g).ReadAll(t.Context(), "rw/k", 1000)
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("b"), 300)) || info.Size != 300 {
		t.Fatalf("%.20q… %d bytes, %+v, %v", got, len(got), info, err)
	}
}

// TestOddAnswers: what servers and proxies were seen to do with ranges.
func TestOddAnswers(t *testing.T) {
	body := numbers(100)
	reply := func(m *memstore.Driver, b []byte, size int64) getter {
		return getter{m, func(objstore.Range, string) (io.ReadCloser, objstore.Info, error) {
			return io.NopCloser(bytes.NewReader(b)), objstore.Info{Size: size}, nil
		}}
	}
	t.Run("no size", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		put(t, m, "k", body)
		got, info, err := newStore(t, reply(m, body[90:], -1)).ReadSuffix(t.Context(), "k", 10)
		if err != nil || !bytes.Equal(got, body[90:]) || info.Size != 100 {
			t.Errorf("%q, %+v, %v", got, info, err)
		}
	})
	t.Run("416 for a suffix of an empty object", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		put(t, m, "k", nil)
		d := faultstore.Wrap(m, script(objstore.OpGet, faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrRange}))
		got, info, err := newStore(t, d).ReadSuffix(t.Context(), "k", 10)
		if err != nil || len(got) != 0 || info.Size != 0 || d.Hits() != 1 {
			t.Errorf("%q, %+v, %v", got, info, err)
		}
	})
	t.Run("range ignored", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		put(t, m, "k", body)
		_, _, err := newStore(t, reply(m, body, 100)).ReadRange(t.Context(), "k", 0, 10)
		wantKind(t, err, objstore.ErrUnsupported)
		_, _, err = newStore(t, reply(m, body, 100)).ReadSuffix(t.Context(), "k", 10)
		wantKind(t, err, objstore.ErrUnsupported)
	})
	t.Run("always short", func(t *testing.T) {
		m := mem(t, memstore.Options{})
		put(t, m, "k", body)
		got, _, err := newStore(t, reply(m, nil, 100)).ReadRange(t.Context(), "k", 0, 10)
		wantKind(t, err, objstore.ErrShort)
		if got != nil {
			t.Errorf("bytes beside the error: %q", got)
		}
	})
}

func TestReadArguments(t *testing.T) {
	m := mem(t, memstore.Options{})
	put(t, m, "k", numbers(10))
	s := newStore(t, m)
	for _, read := range []func() error{
		func() error { _, _, err := s.ReadRange(t.Context(), "k", -1, 5); return err },
		func() error { _, _, err := s.ReadRange(t.Context(), "k", 0, -5); return err },
		func() error { _, _, err := s.ReadSuffix(t.Context(), "k", -1); return err },
		func() error { _, _, err := s.ReadAll(t.Context(), "k", 9); return err },
		func() error { _, _, err := s.ReadAll(t.Context(), "../k", 9); return err },
	} {
		wantKind(t, read(), objstore.ErrInvalid)
	}
	if b, info, err := s.ReadRange(t.Context(), "k", 5, 0); err != nil || len(b) != 0 || info.Size != 10 {
		t.Errorf("%q %+v %v", b, info, err)
	}
	if b, info, err := s.ReadSuffix(t.Context(), "k", 0); err != nil || len(b) != 0 || info.Size != 10 {
		t.Errorf("%q %+v %v", b, info, err)
	}
	_, _, err := s.ReadRange(t.Context(), "k", 8, 3)
	wantKind(t, err, objstore.ErrRange)
	_, _, err = s.ReadRange(t.Context(), "none", 8, 3)
	wantKind(t, err, objstore.ErrNotFound)
}

// TestLongBodyOverABadLine: attempts are counted anew while bytes arrive.
func TestLongBodyOverABadLine(t *testing.T) {
	m := mem(t, memstore.Options{})
	body := numbers(4 << 20)
	put(t, m, "k", body)
	cut := func(keep int64) *faultstore.Driver {
		return faultstore.Wrap(m, func(c faultstore.Call) faultstore.Fault {
			return faultstore.Fault{Kind: faultstore.ShortBody, Keep: keep}
		})
	}
	got, _, err := newStore(t, cut(300<<10)).ReadAll(t.Context(), "k", 4<<20)
	if err != nil || !bytes.Equal(got, body) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	_, _, err = newStore(t, cut(100)).ReadAll(t.Context(), "k", 4<<20) // a trickle ends
	if !errors.Is(err, objstore.ErrShort) {
		t.Fatal(err)
	}
}

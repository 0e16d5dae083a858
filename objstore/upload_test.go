package objstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// parts records what an upload consists of: "p100" a written part, "c100" a copied.
type parts struct {
	*memstore.Driver
	log chan string
}

func (p parts) UploadPart(ctx context.Context, key, id string, n int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	p.log <- fmt.Sprintf("%02d:p%d", n, size)
	return p.Driver.UploadPart(ctx, key, id, n, body, size)
}

func (p parts) CopyPart(ctx context.Context, key, id string, n int, src objstore.CopySource) (objstore.Part, error) {
	p.log <- fmt.Sprintf("%02d:c%d", n, src.Length)
	return p.Driver.CopyPart(ctx, key, id, n, src)
}

// TestCopyRangePlan: which bytes pass through, and that no part but the last is
// below the minimum, which memstore enforces.
func TestCopyRangePlan(t *testing.T) {
	const least, size = 50, 100
	src := numbers(1000)
	w, c := func(n int64) int64 { return n }, func(n int64) int64 { return -n }
	for _, test := range []struct {
		name  string
		opts  memstore.Options
		steps []int64 // w: written, c: copied
		want  string
	}{
		{"straight", memstore.Options{MinPart: least, MinCopy: 60}, []int64{c(300)}, "01:c300"},
		{"short part takes the head", memstore.Options{MinPart: least}, []int64{w(20), c(300)}, "01:p50 02:c270"},
		{"long part goes as it is", memstore.Options{MinPart: least}, []int64{w(60), c(300)}, "01:p60 02:c300"},
		{"remainder too short", memstore.Options{MinPart: least}, []int64{w(20), c(79)}, "plain"},
		{"remainder just enough", memstore.Options{MinPart: least}, []int64{w(20), c(80)}, "01:p50 02:c50"},
		{"range too short", memstore.Options{MinPart: least}, []int64{w(60), c(49)}, "01:p100 02:p9"},
		{"small last part", memstore.Options{MinPart: least}, []int64{c(60), w(3)}, "01:c60 02:p3"},
		{"small part between", memstore.Options{MinPart: least}, []int64{c(60), w(3), c(100)}, "01:c60 02:p50 03:c53"},
		{"small source", memstore.Options{MinPart: least, MinCopy: 1000}, []int64{c(300)}, "01:p100 02:p100 03:p100"},
		{"source just large enough", memstore.Options{MinPart: least, MinCopy: 999}, []int64{c(300)}, "01:c300"},
		{"equal parts", memstore.Options{MinPart: least, EqualParts: true}, []int64{w(20), c(300)}, "01:p100 02:c100 03:c100 04:p20"},
		{"equal, straight", memstore.Options{EqualParts: true}, []int64{c(300), c(100)}, "01:c100 02:c100 03:c100 04:c100"},
		{"equal, a byte short of a part", memstore.Options{EqualParts: true}, []int64{w(1), c(198), w(1)}, "01:p100 02:p100"},
		{"equal, just a part behind the head", memstore.Options{EqualParts: true}, []int64{w(1), c(199), w(1)}, "01:p100 02:c100 03:p1"},
		{"equal, a full part before", memstore.Options{EqualParts: true}, []int64{w(100), c(250), c(250)}, "01:p100 02:c100 03:c100 04:p100 05:c100 06:c100"},
		{"equal, small source", memstore.Options{EqualParts: true, MinCopy: 1000}, []int64{w(20), c(300)}, "01:p100 02:p100 03:p100 04:p20"},
		{"equal, ranges below a part", memstore.Options{EqualParts: true}, []int64{c(99), c(99), c(99)}, "01:p100 02:p100 03:p97"},
		{"nothing to copy", memstore.Options{MinPart: least}, []int64{w(20), c(0)}, "plain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := mem(t, test.opts)
			from := put(t, m, "src", src)
			d := parts{m, make(chan string, 100)}
			s := newStore(t, d, func(c *objstore.Config) { c.PartSize, c.Concurrency = size, 1 })
			wr := s.NewWriter(t.Context(), "dst", objstore.UploadOptions{})
			var want []byte
			for i, n := range test.steps {
				if n > 0 {
					if _, err := wr.Write(numbers(int(n))); err != nil {
						t.Fatal(err)
					}
					want = append(want, numbers(int(n))...)
					continue
				}
				if err := wr.CopyRange(objstore.CopySource{Key: "src", ETag: from.ETag, Offset: int64(i), Length: -n}); err != nil {
					t.Fatal(err)
				}
				want = append(want, src[i:int64(i)-n]...)
			}
			if _, err := wr.Commit(); err != nil {
				t.Fatal(err)
			}
			wantBytes(t, m, "dst", want)
			close(d.log)
			got := "plain"
			var through, copied int64
			for p := range d.log {
				if n, _ := strconv.ParseInt(p[4:], 10, 64); p[3] == 'c' {
					copied += n
				} else {
					through += n
				}
				if got == "plain" {
					got = p
				} else {
					got += " " + p
				}
			}
			if got != test.want {
				t.Errorf("parts %s, want %s", got, test.want)
			}
			if got == "plain" {
				through = int64(len(want))
			}
			if a, b := wr.Moved(); a != through || b != copied || wr.Size() != int64(len(want)) {
				t.Errorf("moved %d and %d of %d, the parts say %d and %d", a, b, wr.Size(), through, copied)
			}
			noUploads(t, m)
		})
	}
}

func TestCopyRangeRefuses(t *testing.T) {
	m := mem(t, memstore.Options{MinPart: 50})
	from := put(t, m, "src", numbers(1000))
	for what, c := range map[string]struct {
		src  objstore.CopySource
		kind error
	}{
		"no ETag":     {objstore.CopySource{Key: "src", Length: 100}, objstore.ErrInvalid},
		"a bad key":   {objstore.CopySource{Key: "/src", ETag: "x", Length: 100}, objstore.ErrInvalid},
		"negative":    {objstore.CopySource{Key: "src", ETag: "x", Length: -1}, objstore.ErrInvalid},
		"wrong ETag":  {objstore.CopySource{Key: "src", ETag: "x", Length: 100}, objstore.ErrPrecondition},
		"wrong, thru": {objstore.CopySource{Key: "src", ETag: "x", Length: 10}, objstore.ErrPrecondition},
		"too long":    {objstore.CopySource{Key: "src", ETag: from.ETag, Offset: 950, Length: 100}, objstore.ErrRange},
		"absent":      {objstore.CopySource{Key: "none", ETag: "x", Length: 100}, objstore.ErrNotFound},
	} {
		t.Run(what, func(t *testing.T) {
			w := newStore(t, m).NewWriter(t.Context(), "dst", objstore.UploadOptions{})
			err := w.CopyRange(c.src)
			if err == nil { // a copy runs in the background
				_, err = w.Commit()
			}
			wantKind(t, err, c.kind)
			_, err = w.Commit()
			wantKind(t, err, c.kind)
			if _, stands := m.Dump()["dst"]; stands {
				t.Error("it was published")
			}
			noUploads(t, m)
		})
	}
}

// gate lets parts through one by one and counts those in flight.
type gate struct {
	*memstore.Driver
	enter   chan struct{}
	now, at atomic.Int64
}

func (g *gate) UploadPart(ctx context.Context, key, id string, n int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	if now := g.now.Add(1); now > g.at.Load() {
		g.at.Store(now)
	}
	<-g.enter
	defer g.now.Add(-1)
	return g.Driver.UploadPart(ctx, key, id, n, body, size)
}

// TestWriterIsBounded: with all parts stuck, a writer takes Concurrency+1 parts
// and no byte more.
func TestWriterIsBounded(t *testing.T) {
	m := mem(t, memstore.Options{})
	g := &gate{Driver: m, enter: make(chan struct{})}
	s := newStore(t, g, func(c *objstore.Config) { c.Concurrency = 3 })
	w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{})
	var taken atomic.Int64
	finished := make(chan error, 1)
	go func() {
		for range 1000 {
			n, err := w.Write(make([]byte, 10))
			if err != nil {
				finished <- err
				return
			}
			taken.Add(int64(n))
		}
		_, err := w.Commit()
		finished <- err
	}()
	for i := 0; ; i++ {
		select {
		case g.enter <- struct{}{}:
			if held := taken.Load() - int64(i+1)*100; held > 4*100 {
				t.Errorf("the writer took %d bytes beyond what is sent", held)
			}
			continue
		case err := <-finished:
			if err != nil {
				t.Fatal(err)
			}
		}
		break
	}
	if got := g.at.Load(); got > 3 {
		t.Errorf("%d parts at once", got)
	}
	wantBytes(t, m, "k", make([]byte, 10_000))
}

func TestWriterHooks(t *testing.T) {
	m := mem(t, memstore.Options{})
	s := newStore(t, m)
	boom := errors.New("cannot record")
	var done []string
	w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{
		OnCreate: func(string) error { return boom },
		OnDone:   func(id string) { done = append(done, id) },
	})
	_, err := w.Write(make([]byte, 250))
	wantKind(t, err, boom)
	_, err = w.Commit()
	wantKind(t, err, boom)
	if len(done) != 1 {
		t.Errorf("OnDone %q", done)
	}
	if n := s.Counters().Requests[objstore.OpUploadPart]; n != 0 {
		t.Errorf("%d parts sent of an upload that is not recorded", n)
	}
	if n := s.Counters().Requests[objstore.OpAbort]; n != 2 {
		t.Errorf("%d aborts, want two", n)
	}
	noUploads(t, m)
	if err := w.Abort(); err != nil || len(done) != 1 {
		t.Errorf("a second abort: %v, %q", err, done)
	}
	_, err = w.Write([]byte("x"))
	if err == nil {
		t.Error("a write after the end")
	}
}

func TestAbortThatFails(t *testing.T) {
	m := mem(t, memstore.Options{})
	put(t, m, "k", nil)
	d := faultstore.Wrap(m, func(c faultstore.Call) faultstore.Fault {
		if c.Op == objstore.OpAbort {
			return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrAmbiguous}
		}
		return faultstore.Fault{}
	})
	done := 0
	s := newStore(t, d)
	w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{OnDone: func(string) { done++ }})
	if _, err := w.Write(make([]byte, 300)); err != nil {
		t.Fatal(err)
	}
	_, err := w.Commit()
	wantKind(t, err, objstore.ErrExists)
	if errors.Is(err, objstore.ErrAmbiguous) {
		t.Errorf("the abort's kind leaks into the commit's: %v", err)
	}
	if done != 0 {
		t.Error("OnDone for an upload that stands")
	}
	if s.Counters().Errors[objstore.OpAbort] == 0 {
		t.Error("failed aborts are not counted")
	}
}

func TestTooManyParts(t *testing.T) {
	m := mem(t, memstore.Options{})
	s := newStore(t, m, func(c *objstore.Config) { c.PartSize = 1 })
	w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{})
	_, err := w.Write(make([]byte, 10_002))
	wantKind(t, err, objstore.ErrInvalid)
	_, err = w.Commit()
	wantKind(t, err, objstore.ErrInvalid)
	noUploads(t, m)
}

// noETag answers copies as SDKs do that decode an error body as success.
type noETag struct{ *memstore.Driver }

func (noETag) CopyPart(_ context.Context, _, _ string, n int, _ objstore.CopySource) (objstore.Part, error) {
	return objstore.Part{Number: n}, nil
}

func TestCopyWithoutETag(t *testing.T) {
	m := mem(t, memstore.Options{})
	from := put(t, m, "src", numbers(1000))
	w := newStore(t, noETag{m}).NewWriter(t.Context(), "k", objstore.UploadOptions{})
	err := w.CopyRange(objstore.CopySource{Key: "src", ETag: from.ETag, Length: 500})
	if err == nil {
		_, err = w.Commit()
	}
	wantKind(t, err, objstore.ErrUnavailable)
	noUploads(t, m)
}

// TestWriterSweep: one fault at each call of a multipart publish, in both forms.
// What is published is whole, what is not is gone, and no upload stays but those
// whose creation was never answered.
func TestWriterSweep(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		t.Run(fmt.Sprintf("sticky=%v", sticky), func(t *testing.T) {
			faultstore.Sweep(t, faultstore.SweepOptions{Sticky: sticky}, func(t *testing.T, f *faultstore.Injector) {
				m := mem(t, memstore.Options{MinPart: 50})
				src := numbers(1000)
				from := put(t, m, "src", src)
				s := newStore(t, f.Wrap(m), func(c *objstore.Config) { c.Concurrency = 1 })
				recorded := map[string]bool{}
				w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{
					OnCreate: func(id string) error { recorded[id] = true; return nil },
					OnDone:   func(id string) { delete(recorded, id) },
				})
				want := bytes.Join([][]byte{src[:130], src[5:305], src[:30]}, nil)
				err := publish(w, src, from.ETag)
				if err != nil && (!f.Hit() || !sticky) {
					t.Fatalf("one fault is to be withstood: %v", err)
				}
				f.Heal()
				got, stands := m.Dump()["k"]
				if stands && !bytes.Equal(got, want) {
					t.Error("the object is not what was written")
				}
				if err == nil != stands && !errors.Is(err, objstore.ErrAmbiguous) {
					t.Errorf("commit says %v, stands: %v", err, stands)
				}
				ups, lerr := m.ListUploads(t.Context(), "k")
				if lerr != nil {
					t.Fatal(lerr)
				}
				for _, u := range ups {
					if err == nil && recorded[u.ID] {
						t.Errorf("upload %s stands after its commit", u.ID)
					}
				}
			})
		})
	}
}

// TestBeforeCompleteIsAskedBeforeEachTry: a job whose time ran out between two tries
// sends no second completing request (K6).
func TestBeforeCompleteIsAskedBeforeEachTry(t *testing.T) {
	late := errors.New("too late")
	for op, size := range map[objstore.Op]int{objstore.OpPut: 50, objstore.OpComplete: 250} {
		for _, first := range []faultstore.Fault{unavailable, timedOut} {
			m := mem(t, memstore.Options{})
			s := newStore(t, faultstore.Wrap(m, script(op, first)))
			asked := 0
			w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{BeforeComplete: func(context.Context) error {
				if asked++; asked > 1 {
					return late
				}
				return nil
			}})
			if _, err := w.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			_, err := w.Commit()
			unknown := errors.Is(first.Err, objstore.ErrAmbiguous)
			if asked != 2 || errors.Is(err, objstore.ErrAmbiguous) != unknown || !unknown && !errors.Is(err, late) {
				t.Errorf("%s after %v: asked %d times, %v", op, first.Err, asked, err)
			}
			if n := s.Counters().Requests[op]; n != 1 {
				t.Errorf("%s after %v: %d requests", op, first.Err, n)
			}
			ups, err := m.ListUploads(t.Context(), "")
			if err != nil || (len(ups) != 0) != (unknown && op == objstore.OpComplete) {
				t.Errorf("%s after %v: uploads %v, %v; an unknown one is left for the judge, others are aborted", op, first.Err, ups, err)
			}
		}
	}
}

func publish(w *objstore.Writer, src []byte, etag string) error {
	if _, err := w.Write(src[:130]); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.CopyRange(objstore.CopySource{Key: "src", ETag: etag, Offset: 5, Length: 300}); err != nil {
		return errors.Join(err, w.Abort())
	}
	if _, err := w.Write(src[:30]); err != nil {
		return errors.Join(err, w.Abort())
	}
	_, err := w.Commit()
	return err
}

package objstore_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// friendly is what a store that can do everything declares, and poor one that can do
// nothing.
var (
	friendly = objstore.Capabilities{
		OrderedList: true, StartAfter: true, RangeCopy: true, ConditionalComplete: true, ListUploads: true, Append: true,
		MaxDeleteSet: 1000,
	}
	poor = objstore.Capabilities{DirectoryPrefix: true, EqualParts: true, MinCopy: 7 << 20, MinPart: 6 << 20, MaxDeleteSet: 1}
)

// declares is a driver with capabilities of the test's choice.
type declares struct {
	*memstore.Driver
	caps objstore.Capabilities
}

func (d declares) Capabilities() objstore.Capabilities { return d.caps }

// TestNarrowTakesEveryFieldBack and gives none: whatever field is added to
// Capabilities, Narrow knows it.
func TestNarrowTakesEveryFieldBack(t *testing.T) {
	for name, c := range map[string]struct{ declared, found, want objstore.Capabilities }{
		"all taken":     {friendly, poor, poor},
		"nothing given": {poor, friendly, poor},
		"as declared":   {friendly, friendly, friendly},
	} {
		s := newStore(t, declares{memstore.New(memstore.Options{}), c.declared}, func(c *objstore.Config) { c.PartSize = 8 << 20 })
		s.Narrow(c.found)
		if got := s.Capabilities(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	// The two differ in every field, so that a forgotten one shows above.
	f, p := reflect.ValueOf(friendly), reflect.ValueOf(poor)
	for i := range f.NumField() {
		if f.Field(i).Equal(p.Field(i)) {
			t.Errorf("%s is not tested", f.Type().Field(i).Name)
		}
	}
}

// TestNarrowIsObeyed: what was taken back is not used by what begins later.
func TestNarrowIsObeyed(t *testing.T) {
	m := mem(t, memstore.Options{})
	from := put(t, m, "src", numbers(1000))
	s := newStore(t, m)
	narrow := func(change func(*objstore.Capabilities)) {
		c := m.Capabilities()
		change(&c)
		s.Narrow(c)
	}
	join := func(key string) (through, copied int64) {
		w := s.NewWriter(t.Context(), key, objstore.UploadOptions{})
		if err := w.CopyRange(objstore.CopySource{Key: "src", ETag: from.ETag, Length: 500}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, m, key, numbers(500))
		return w.Moved()
	}
	if _, copied := join("a"); copied != 500 {
		t.Errorf("%d bytes copied before", copied)
	}
	narrow(func(c *objstore.Capabilities) { c.RangeCopy = false })
	if through, copied := join("b"); through != 500 || copied != 0 {
		t.Errorf("without range copies: %d bytes through, %d copied", through, copied)
	}
	narrow(func(c *objstore.Capabilities) { c.MinCopy = 1000 })
	if _, copied := join("c"); copied != 0 {
		t.Errorf("a source below the minimum: %d bytes copied", copied)
	}
	narrow(func(c *objstore.Capabilities) { c.MinPart = 300 }) // above Config.PartSize
	before := s.Counters()
	w := s.NewWriter(t.Context(), "d", objstore.UploadOptions{})
	if _, err := w.Write(numbers(301)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := s.Counters().Sub(before).Requests[objstore.OpUploadPart]; n != 2 {
		t.Errorf("%d parts for 301 bytes where the least is 300", n)
	}
	narrow(func(c *objstore.Capabilities) { c.MaxDeleteSet = 2 })
	if _, err := s.Delete(t.Context(), []string{"x/1", "x/2", "x/3"}); err != nil {
		t.Fatal(err)
	}
	narrow(func(c *objstore.Capabilities) { c.MaxDeleteSet = 0 }) // not found out: one by one
	if _, err := s.Delete(t.Context(), []string{"x/1", "x/2", "x/3"}); err != nil {
		t.Fatal(err)
	}
	if n := s.Counters().Sub(before).Requests[objstore.OpDelete]; n != 2+3 {
		t.Errorf("%d deletes, want 2 and 3", n)
	}
}

// TestEqualParts joins ranges and bytes of random lengths: every part but the last has
// the one length, each whole part within a range is copied by the store, and the bytes
// are right.
func TestEqualParts(t *testing.T) {
	const size = 100
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := mem(t, memstore.Options{EqualParts: true})
		src := numbers(2000)
		from := put(t, m, "src", src)
		d := parts{m, make(chan string, 1000)}
		s := newStore(t, d, func(c *objstore.Config) { c.PartSize = size })
		w := s.NewWriter(t.Context(), "dst", objstore.UploadOptions{})
		var want []byte
		var least int64 // what must be copied: the whole parts within each range
		for range 1 + rng.IntN(6) {
			n := rng.Int64N(450)
			if rng.IntN(3) == 0 {
				if _, err := w.Write(src[:n]); err != nil {
					t.Fatal(err)
				}
				want = append(want, src[:n]...)
				continue
			}
			off := rng.Int64N(1500)
			if err := w.CopyRange(objstore.CopySource{Key: "src", ETag: from.ETag, Offset: off, Length: n}); err != nil {
				t.Fatal(err)
			}
			begin := (int64(len(want)) + size - 1) / size * size
			want = append(want, src[off:off+n]...)
			if whole := (int64(len(want)) - begin) / size; whole > 0 {
				least += whole * size
			}
		}
		if _, err := w.Commit(); err != nil { // memstore refuses parts of unequal length
			t.Fatalf("seed %d: %v", seed, err)
		}
		wantBytes(t, m, "dst", want)
		through, copied := w.Moved()
		if copied != least || through+copied != int64(len(want)) {
			t.Errorf("seed %d: %d bytes through and %d copied of %d, want %d copied", seed, through, copied, len(want), least)
		}
		close(d.log)
		number := 0
		for p := range d.log {
			if number++; !strings.HasSuffix(p, "100") && !strings.HasPrefix(p, itoa2((len(want)+size-1)/size)) {
				t.Errorf("seed %d: part %s", seed, p)
			}
		}
		if number > 0 && number != (len(want)+size-1)/size {
			t.Errorf("seed %d: %d parts of %d bytes", seed, number, len(want))
		}
	}
}

// itoa2 is a part's number as the log of parts begins with it.
func itoa2(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10), ':'}) }

// TestNoConditionalComplete (K34): on a store that does not honour the condition of a
// complete, no upload is begun; what fits one part is a conditional PUT.
func TestNoConditionalComplete(t *testing.T) {
	for name, body := range map[string]func(*objstore.Writer, objstore.Info) error{
		"written": func(w *objstore.Writer, _ objstore.Info) error {
			_, err := w.Write(numbers(101))
			return err
		},
		"copied": func(w *objstore.Writer, src objstore.Info) error {
			return w.CopyRange(objstore.CopySource{Key: "src", ETag: src.ETag, Length: 500})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := mem(t, memstore.Options{BlindComplete: true})
			from := put(t, m, "src", numbers(1000))
			put(t, m, "taken", []byte("first"))
			s := newStore(t, m)
			w := s.NewWriter(t.Context(), "taken", objstore.UploadOptions{OnCreate: func(string) error {
				t.Error("an upload was begun")
				return nil
			}})
			err := body(w, from)
			if err == nil {
				_, err = w.Commit()
			}
			wantKind(t, err, objstore.ErrUnsupported)
			if !strings.Contains(err.Error(), "raise Config.PartSize") {
				t.Errorf("no next step in %v", err)
			}
			_, err = w.Commit()
			wantKind(t, err, objstore.ErrUnsupported)
			wantBytes(t, m, "taken", []byte("first"))
			noUploads(t, m)
			if n := s.Counters().Requests[objstore.OpCreateUpload]; n != 0 {
				t.Errorf("%d uploads begun", n)
			}
		})
	}
	m := mem(t, memstore.Options{BlindComplete: true})
	from := put(t, m, "src", numbers(1000))
	s := newStore(t, m)
	for _, key := range []string{"small", "small"} {
		w := s.NewWriter(t.Context(), key, objstore.UploadOptions{})
		if err := w.CopyRange(objstore.CopySource{Key: "src", ETag: from.ETag, Length: 100}); err != nil {
			t.Fatal(err)
		}
		_, err := w.Commit()
		if s.Counters().Requests[objstore.OpPut] > 1 {
			wantKind(t, err, objstore.ErrExists)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	wantBytes(t, m, "small", numbers(100))
}

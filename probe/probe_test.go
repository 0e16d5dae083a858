package probe

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

type refsOf func(key string) ([]catalog.LiveRef, error)

func (f refsOf) Liveness(_ context.Context, key string) ([]catalog.LiveRef, error) { return f(key) }

func refs(rs ...catalog.LiveRef) refsOf {
	return func(string) ([]catalog.LiveRef, error) { return rs, nil }
}

// world is one stream object of rows 1 to 3 behind a faulty driver.
type world struct {
	t     *testing.T
	mem   *memstore.Driver
	store *objstore.Store
	fault faultstore.Fault
	calls map[objstore.Op]int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, mem: memstore.New(memstore.Options{}), calls: map[objstore.Op]int{}}
	driver := faultstore.Wrap(w.mem, func(c faultstore.Call) faultstore.Fault {
		w.calls[c.Op]++
		return w.fault
	})
	store, err := objstore.New(driver, objstore.Config{Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	w.store = store
	return w
}

func (w *world) put(body []byte) {
	w.t.Helper()
	if _, err := w.store.PutOnce(w.t.Context(), key, body, nil); err != nil {
		w.t.Fatal(err)
	}
	clear(w.calls)
}

func (w *world) object() []byte {
	w.t.Helper()
	rows := []segment.Row{{Seq: 1, Payload: []byte("a")}, {Seq: 2, Payload: []byte("b")}, {Seq: 3, Payload: []byte("c")}}
	payload, err := segment.AppendBatch(nil, &segment.Batch{Stream: "s", First: 1, Rows: rows})
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := segment.AppendFrame(nil, uuid.New(), 0, segment.KindBatch, 0, payload)
	if err != nil {
		w.t.Fatal(err)
	}
	var buf bytes.Buffer
	o := segment.NewObjectWriter(&buf, &segment.Footer{Kind: segment.ObjStream, Object: uuid.New(), Created: 1, Writer: "test"})
	tally, err := segment.TallyFrames(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := o.AddChunk(segment.Chunk{Stream: "s", Epoch: 1, First: 1, Last: 3, Rows: tally.Rows, MinTime: tally.MinTime, MaxTime: tally.MaxTime, RowSum: tally.RowSum}, raw); err != nil {
		w.t.Fatal(err)
	}
	if _, err := o.Finish(); err != nil {
		w.t.Fatal(err)
	}
	return buf.Bytes()
}

func (w *world) probe(cat Catalog) (Verdict, Tally, error) {
	return Probe(w.t.Context(), w.store, cat, Object{key, segment.ClassStandard}, DefaultGCLeast)
}

func TestProbeCostsOneGetAndOneQuery(t *testing.T) {
	w := newWorld(t)
	w.put(w.object())
	queries := 0
	v, tally, err := w.probe(refsOf(func(k string) ([]catalog.LiveRef, error) {
		queries++
		return []catalog.LiveRef{ref("s", 1, 3, 1)}, nil
	}))
	if v != Stand || err != nil || tally.Refs != 1 {
		t.Fatalf("%s %+v (%v), want stand", v, tally, err)
	}
	if w.calls[objstore.OpGet] != 1 || len(w.calls) != 1 || queries != 1 {
		t.Fatalf("store calls %v, %d queries, want one GET and one query", w.calls, queries)
	}
	if v, _, err := w.probe(refs()); v != Reapable || err != nil {
		t.Fatalf("unnamed: %s (%v), want reapable", v, err)
	}
}

func TestK16AFailedReadIsNeverAVerdict(t *testing.T) {
	for name, f := range map[string]faultstore.Fault{
		"refused":         {Kind: faultstore.NotApplied},
		"denied":          {Kind: faultstore.NotApplied, Err: objstore.ErrDenied},
		"answer lost":     {Kind: faultstore.AnswerLost},
		"a body of 0":     {Kind: faultstore.ShortBody},
		"a body of 20":    {Kind: faultstore.ShortBody, Keep: 20},
		"store's timeout": {Kind: faultstore.NotApplied, Err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(w.object())
			w.fault = f
			if v, _, err := w.probe(refs()); err == nil || v != "" {
				t.Fatalf("%q (%v): a verdict on a read that did not complete", v, err)
			}
			if w.calls[objstore.OpGet] == 0 {
				t.Fatal("the fault was not hit")
			}
		})
	}
}

func TestK16RefsThatCannotBeReadEndThePass(t *testing.T) {
	w := newWorld(t)
	w.put(w.object())
	v, _, err := w.probe(refsOf(func(string) ([]catalog.LiveRef, error) { return nil, catalog.ErrUnavailable }))
	var fault *RefsError
	if !errors.As(err, &fault) || !errors.Is(err, catalog.ErrUnavailable) || v != "" {
		t.Fatalf("%q (%v), want a *RefsError", v, err)
	}
}

func TestProbeOfWhatIsNoObject(t *testing.T) {
	w := newWorld(t)
	whole := w.object()
	for name, body := range map[string][]byte{
		"empty":                  {},
		"shorter than a trailer": whole[:40],
		"cut":                    whole[:len(whole)-1],
		"a flipped footer bit":   flip(whole, len(whole)-60),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(body)
			if v, tally, err := w.probe(refs()); v != Reapable || !tally.Structural || tally.DeadBytes != int64(len(body)) || err != nil {
				t.Fatalf("unnamed: %s %+v (%v), want reapable for its structure", v, tally, err)
			}
			if v, _, err := w.probe(refs(ref("s", 1, 3, 1))); err == nil || v != "" {
				t.Fatalf("under a live ref: %q (%v), want the corruption", v, err)
			}
		})
	}
}

// A directory's store says by itself that a file is damaged. That is no failed read:
// unnamed, it can be reaped, or rows given up with it would hold its reap-check for ever.
func TestProbeOfWhatTheStoreCallsDamaged(t *testing.T) {
	w := newWorld(t)
	w.put(w.object())
	w.fault = faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrCorrupt}
	if v, tally, err := w.probe(refs()); v != Reapable || !tally.Structural || err != nil {
		t.Fatalf("unnamed: %s %+v (%v), want reapable for its structure", v, tally, err)
	}
	if v, _, err := w.probe(refs(ref("s", 1, 3, 1))); !errors.Is(err, objstore.ErrCorrupt) || v != "" {
		t.Fatalf("under a live ref: %q (%v), want the corruption", v, err)
	}
}

func TestProbeGone(t *testing.T) {
	w := newWorld(t)
	if v, _, err := w.probe(refs()); v != Gone || err != nil {
		t.Fatalf("%s (%v), want gone", v, err)
	}
	if v, _, err := w.probe(refs(ref("s", 1, 3, 1))); !errors.Is(err, ErrDamage) {
		t.Fatalf("gone under a live ref: %q (%v), want damage", v, err)
	}
}

func TestK14OnlySettledKeysAreProbed(t *testing.T) {
	for _, k := range []string{"seg/00000001.00000000.0000000000000001", "rw/00000001.00000000", "meta/strandline", "something/else"} {
		w := newWorld(t)
		_, _, err := Probe(t.Context(), w.store, refs(), Object{k, segment.ClassStandard}, DefaultGCLeast)
		var fault *RefsError
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v, want a *RefsError", k, err)
		}
		if len(w.calls) > 0 {
			t.Errorf("%s: calls %v to the store", k, w.calls)
		}
	}
}

func flip(b []byte, at int) []byte {
	c := bytes.Clone(b)
	c[at] ^= 1
	return c
}

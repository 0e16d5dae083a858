package objstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// newStore is a Store over d that pauses for no time and names its writes n1, n2 …
func newStore(t *testing.T, d objstore.Driver, change ...func(*objstore.Config)) *objstore.Store {
	t.Helper()
	n := 0
	cfg := objstore.Config{
		PartSize: 100, Concurrency: 2,
		Nonce: func() string { n++; return fmt.Sprintf("n%d", n) },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := objstore.New(d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mem(t *testing.T, opts memstore.Options) *memstore.Driver {
	t.Helper()
	m := memstore.New(opts)
	t.Cleanup(func() {
		for _, v := range m.Violations() {
			t.Errorf("referee: %s", v)
		}
	})
	return m
}

func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want %v", err, kind)
	}
}

func wantBytes(t *testing.T, m *memstore.Driver, key string, want []byte) {
	t.Helper()
	got, ok := m.Dump()[key]
	if !ok || !bytes.Equal(got, want) {
		t.Fatalf("%s: stands %v with %d bytes, want %d", key, ok, len(got), len(want))
	}
}

// script answers the calls of one operation with faults in turn, then with none.
func script(op objstore.Op, faults ...faultstore.Fault) func(faultstore.Call) faultstore.Fault {
	return func(c faultstore.Call) faultstore.Fault {
		if c.Op != op || len(faults) == 0 {
			return faultstore.Fault{}
		}
		f := faults[0]
		faults = faults[1:]
		return f
	}
}

var (
	lost        = faultstore.Fault{Kind: faultstore.AnswerLost}
	unavailable = faultstore.Fault{Kind: faultstore.NotApplied}
	conflict    = faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrConflict}
	timedOut    = faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrAmbiguous}
)

// loose lists by the prefix's first byte only.
type loose struct{ *memstore.Driver }

func (l loose) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	return l.Driver.List(ctx, prefix[:1], startAfter, token, limit)
}

func collect(s *objstore.Store, ctx context.Context, prefix string) ([]string, error) {
	var out []string
	for info, err := range s.List(ctx, prefix, "") {
		if err != nil {
			return out, err
		}
		out = append(out, info.Key)
	}
	return out, nil
}

func keys(t *testing.T, s *objstore.Store, prefix string) []string {
	t.Helper()
	out, err := collect(s, t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestListFaults(t *testing.T) {
	m := mem(t, memstore.Options{PageSize: 2, EmptyPages: true})
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("k/%d", i))
		put(t, m, want[i], nil)
	}
	cut := faultstore.Fault{Kind: faultstore.TruncatedList, Keep: 1}
	s := newStore(t, faultstore.Wrap(m, script(objstore.OpList, cut, cut, unavailable)))
	if got := keys(t, s, "k/"); !slices.Equal(got, want) {
		t.Errorf("after faults: %q", got)
	}
	// An error that stays ends the listing as an error, never as its end.
	n := 0
	s = newStore(t, faultstore.Wrap(m, func(c faultstore.Call) faultstore.Fault {
		if n++; n > 3 {
			return cut
		}
		return faultstore.Fault{}
	}))
	got, err := collect(s, t.Context(), "k/")
	wantKind(t, err, objstore.ErrUnavailable)
	if len(got) >= len(want) {
		t.Errorf("listed %q before the error", got)
	}
	_, err = collect(newStore(t, stuck{m}), t.Context(), "k/")
	wantKind(t, err, objstore.ErrCorrupt)
}

// stuck gives the same page for ever.
type stuck struct{ *memstore.Driver }

func (s stuck) List(ctx context.Context, prefix, startAfter, _ string, limit int) (objstore.Page, error) {
	page, err := s.Driver.List(ctx, prefix, startAfter, "", limit)
	page.Next = "again"
	return page, err
}

func TestCancelledStartsNoMutation(t *testing.T) {
	m := mem(t, memstore.Options{})
	put(t, m, "stays", []byte("x"))
	s := newStore(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.PutOnce(ctx, "k", []byte("x"), nil)
	wantKind(t, err, context.Canceled)
	_, err = s.PutIfMatch(ctx, "rw/k", []byte("x"), "etag")
	wantKind(t, err, context.Canceled)
	results, err := s.Delete(ctx, []string{"stays"})
	wantKind(t, err, context.Canceled)
	wantKind(t, results[0].Err, objstore.ErrUnavailable)
	w := s.NewWriter(ctx, "k", objstore.UploadOptions{})
	_, err = w.Write(make([]byte, 300))
	wantKind(t, err, context.Canceled)
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	if n := s.Counters().Total(); n != 0 {
		t.Errorf("%d requests under a cancelled context: %v", n, s.Counters().Requests)
	}
}

func TestRetryStops(t *testing.T) {
	m := mem(t, memstore.Options{})
	always := func(k error) *faultstore.Driver {
		return faultstore.Wrap(m, func(faultstore.Call) faultstore.Fault {
			return faultstore.Fault{Kind: faultstore.NotApplied, Err: k}
		})
	}
	for kind, want := range map[error]int64{
		objstore.ErrUnavailable: objstore.DefaultAttempts, objstore.ErrConflict: objstore.DefaultAttempts,
		objstore.ErrDenied: 1, objstore.ErrNoSpace: 1, objstore.ErrInvalid: 1, objstore.ErrUnsupported: 1,
	} {
		s := newStore(t, always(kind))
		_, err := s.PutOnce(t.Context(), "k", nil, nil)
		wantKind(t, err, kind)
		if n := s.Counters().Requests[objstore.OpPut]; n != want {
			t.Errorf("%v: %d puts, want %d", kind, n, want)
		}
		if n := s.Counters().Errors[objstore.OpPut]; n != want {
			t.Errorf("%v: %d errors counted, want %d", kind, n, want)
		}
	}
	// An error of no kind is a driver's bug: a mutation then may have happened.
	s := newStore(t, faultstore.Wrap(m, func(c faultstore.Call) faultstore.Fault {
		return faultstore.Fault{Kind: faultstore.NotApplied, Err: errors.New("who knows")}
	}))
	_, err := s.PutOnce(t.Context(), "k", nil, nil)
	wantKind(t, err, objstore.ErrAmbiguous)
	_, err = s.Head(t.Context(), "k")
	wantKind(t, err, objstore.ErrUnavailable)
}

func TestBackoff(t *testing.T) {
	var pauses []time.Duration
	s := newStore(t, faultstore.Wrap(mem(t, memstore.Options{}), func(faultstore.Call) faultstore.Fault { return unavailable }),
		func(c *objstore.Config) {
			c.Attempts, c.Backoff = 9, 100*time.Millisecond
			c.Sleep = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
		})
	_, err := s.Head(t.Context(), "k")
	wantKind(t, err, objstore.ErrUnavailable)
	if len(pauses) != 8 {
		t.Fatalf("%d pauses", len(pauses))
	}
	for i, p := range pauses {
		if window := min(100*time.Millisecond<<i, objstore.MaxBackoff); p < 0 || p > window {
			t.Errorf("pause %d is %v, the window is %v", i, p, window)
		}
	}
	// A pause that would outlast the caller's deadline is not begun.
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	pauses = nil
	if _, err := s.Head(ctx, "k"); err == nil || len(pauses) != 0 {
		t.Errorf("%v after pauses %v", err, pauses)
	}
}

func TestPutOnceSweep(t *testing.T) {
	faultstore.Sweep(t, faultstore.SweepOptions{}, func(t *testing.T, f *faultstore.Injector) {
		m := mem(t, memstore.Options{})
		s := newStore(t, f.Wrap(m))
		for i := range 3 {
			k := fmt.Sprintf("k/%d", i)
			if _, err := s.PutOnce(t.Context(), k, []byte(k), nil); err != nil {
				t.Fatalf("one fault is to be withstood: %v", err)
			}
			wantBytes(t, m, k, []byte(k))
		}
		if _, err := s.PutIfMatch(t.Context(), "rw/h", []byte("1"), ""); err != nil {
			t.Fatal(err)
		}
		head, err := s.Head(t.Context(), "rw/h")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutIfMatch(t.Context(), "rw/h", []byte("2"), head.ETag); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, m, "rw/h", []byte("2"))
	})
}

func TestConfig(t *testing.T) {
	for _, c := range []objstore.Config{
		{Attempts: -1}, {Backoff: -1}, {Backoff: time.Hour}, {CallTimeout: -1}, {PartSize: -1}, {PartSize: 6 << 30}, {Concurrency: -1},
	} {
		_, err := objstore.New(memstore.New(memstore.Options{}), c)
		wantKind(t, err, objstore.ErrInvalid)
	}
	_, err := objstore.New(memstore.New(memstore.Options{MinPart: 5 << 20}), objstore.Config{PartSize: 1 << 20})
	wantKind(t, err, objstore.ErrInvalid)
	if _, err := objstore.New(memstore.New(memstore.Options{}), objstore.Config{}); err != nil {
		t.Fatal(err)
	}
}

func TestCheckKey(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, k := range []string{"a", "a/b", "A.z_~=-/0", "...", ".a", long, strings.Repeat("ab/", 341) + "c"} {
		if err := objstore.CheckKey(k); err != nil {
			t.Errorf("%q: %v", k, err)
		}
	}
	for _, k := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/../b", "a/..", long + "x", strings.Repeat("ab/", 342) + "c",
		"a b", "a%b", "a+b", "é", "a\x00", "a\nb", "a\\b", "a:b", "a@", "a*",
	} {
		wantKind(t, objstore.CheckKey(k), objstore.ErrInvalid)
		s := newStore(t, memstore.New(memstore.Options{}))
		_, err := s.PutOnce(t.Context(), k, nil, nil)
		wantKind(t, err, objstore.ErrInvalid)
		results, err := s.Delete(t.Context(), []string{k, "fine"})
		if err != nil || !errors.Is(results[0].Err, objstore.ErrInvalid) || results[1].Err != nil {
			t.Errorf("delete of %q: %v, %v", k, results, err)
		}
	}
}

func TestClasses(t *testing.T) {
	one, two := mem(t, memstore.Options{}), mem(t, memstore.Options{})
	put(t, one, "k", nil)
	put(t, two, "k", nil)
	put(t, two, "only-two", nil)
	fails := faultstore.Wrap(two, func(c faultstore.Call) faultstore.Fault {
		return faultstore.Fault{Kind: faultstore.DeleteFails, Err: objstore.ErrDenied, Keys: func(k string) bool { return k == "k" }}
	})
	classes := objstore.Classes{"standard": {newStore(t, one), newStore(t, fails)}, "none": nil}
	set, err := classes.Set("standard")
	if err != nil || set.First().Name() != "mem:" {
		t.Fatal(err)
	}
	results, err := set.Delete(t.Context(), []string{"k", "only-two"})
	if err != nil || results[1].Err != nil {
		t.Fatalf("%v, %v", results, err)
	}
	wantKind(t, results[0].Err, objstore.ErrDenied) // gone in one bucket is not gone
	for _, name := range []string{"express", "none"} {
		_, err = classes.Set(name)
		wantKind(t, err, objstore.ErrInvalid)
		if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "standard") {
			t.Errorf("message: %v", err)
		}
	}
}

// forgetful does not report the last key of a delete, nor in the order asked.
type forgetful struct{ *memstore.Driver }

func (f forgetful) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	out, err := f.Driver.Delete(ctx, keys)
	out = out[:len(out)-1]
	slices.Reverse(out)
	return out, err
}

// TestUnreportedDelete: what the store did not report is not gone.
func TestUnreportedDelete(t *testing.T) {
	s := newStore(t, forgetful{mem(t, memstore.Options{})})
	results, err := s.Delete(t.Context(), []string{"a", "b", "c", "b"})
	if err != nil || len(results) != 4 {
		t.Fatalf("%v, %v", results, err)
	}
	for i, key := range []string{"a", "b", "c", "b"} {
		if results[i].Key != key || (results[i].Err == nil) != (key != "c") {
			t.Errorf("result %d: %+v", i, results[i])
		}
	}
	wantKind(t, results[2].Err, objstore.ErrAmbiguous)
}

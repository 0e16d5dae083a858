package faultstore

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// on lets one operation meet f.
func on(op objstore.Op, f Fault) func(Call) Fault {
	return func(c Call) Fault {
		if c.Op == op {
			return f
		}
		return Fault{}
	}
}

func put(d objstore.Driver, key string) error {
	_, err := d.Put(context.Background(), key, strings.NewReader(key), int64(len(key)), objstore.PutOptions{IfNoneMatch: true})
	return err
}

func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) || !errors.Is(err, ErrInjected) {
		t.Fatalf("got %v, want an injected %v", err, kind)
	}
}

func TestPutFaults(t *testing.T) {
	for _, c := range []struct {
		f      Fault
		kind   error
		stands bool
	}{
		{Fault{Kind: NotApplied}, objstore.ErrUnavailable, false},
		{Fault{Kind: NotApplied, Err: objstore.ErrConflict}, objstore.ErrConflict, false},
		{Fault{Kind: AnswerLost}, objstore.ErrAmbiguous, true},
		{Fault{Kind: Crash}, objstore.ErrUnavailable, false},
		{Fault{Kind: CrashAfter}, objstore.ErrAmbiguous, true},
	} {
		mem := memstore.New(memstore.Options{})
		d := Wrap(mem, on(objstore.OpPut, c.f))
		wantKind(t, put(d, "k"), c.kind)
		if _, stands := mem.Dump()["k"]; stands != c.stands {
			t.Errorf("%+v: stands %v", c.f, stands)
		}
		if d.Hits() != 1 {
			t.Errorf("%+v: %d hits", c.f, d.Hits())
		}
		_, err := d.Head(context.Background(), "k")
		if crash := c.f.Kind == Crash || c.f.Kind == CrashAfter; crash {
			wantKind(t, err, objstore.ErrUnavailable)
			d.Revive()
			_, err = d.Head(context.Background(), "k")
		}
		if (err == nil) != c.stands {
			t.Errorf("%+v: head says %v", c.f, err)
		}
	}
}

func TestBodies(t *testing.T) {
	mem := memstore.New(memstore.Options{})
	if err := put(mem, "0123456789"); err != nil {
		t.Fatal(err)
	}
	read := func(f Fault) (string, error) {
		body, _, err := Wrap(mem, on(objstore.OpGet, f)).Get(context.Background(), "0123456789", objstore.Whole, "")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(body)
		return string(b), errors.Join(err, body.Close())
	}
	got, err := read(Fault{Kind: ShortBody, Keep: 4})
	wantKind(t, err, objstore.ErrShort)
	if got != "0123" {
		t.Errorf("short body %q", got)
	}
	if got, err = read(Fault{Kind: WrongBytes}); err != nil || got != "\xb0123456789" {
		t.Errorf("wrong body %q, %v", got, err)
	}
	if got, err = read(Fault{Kind: DeleteFails}); err != nil || got != "0123456789" {
		t.Errorf("a fault that does not fit: %q, %v", got, err)
	}
}

func TestDeleteAndList(t *testing.T) {
	ctx := context.Background()
	mem := memstore.New(memstore.Options{})
	for _, k := range []string{"a", "b", "c"} {
		if err := put(mem, k); err != nil {
			t.Fatal(err)
		}
	}
	d := Wrap(mem, on(objstore.OpList, Fault{Kind: TruncatedList, Keep: 2}))
	page, err := d.List(ctx, "", "", "", 10)
	wantKind(t, err, objstore.ErrUnavailable)
	if len(page.Objects) != 2 || page.Next != "" {
		t.Errorf("page %+v", page)
	}
	d = Wrap(mem, on(objstore.OpDelete, Fault{Kind: DeleteFails, Keys: func(k string) bool { return k == "b" }}))
	out, err := d.Delete(ctx, []string{"a", "b", "c"})
	if err != nil || len(out) != 3 || out[0].Err != nil || out[2].Err != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	wantKind(t, out[1].Err, objstore.ErrUnavailable)
	if keys := mem.Keys(); len(keys) != 1 || keys[0] != "b" {
		t.Errorf("left: %q", keys)
	}
}

func TestHooksAndNumbers(t *testing.T) {
	var seen []string
	d := Wrap(memstore.New(memstore.Options{}), func(c Call) Fault {
		if c.N != len(seen)/2+1 {
			t.Errorf("call number %d", c.N)
		}
		return Fault{
			Before: func() { seen = append(seen, "before "+string(c.Op)+" "+c.Key) },
			After:  func() { seen = append(seen, "after") },
		}
	})
	if err := put(d, "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Delete(context.Background(), []string{"k", "l"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, ","); got != "before put k,after,before delete k,after" {
		t.Errorf("hooks: %s", got)
	}
	if d.Hits() != 0 {
		t.Errorf("%d hits", d.Hits())
	}
}

// TestSweep: two puts and a head; each fails once in its turn, per form.
func TestSweep(t *testing.T) {
	for _, c := range []struct {
		form Form
		runs int // hits and the one that passes
	}{{FormNotApplied, 4}, {FormAnswerLost, 3}, {FormCrash, 4}, {FormCrashAfter, 3}} {
		runs, failed := 0, 0
		Sweep(t, SweepOptions{Forms: []Form{c.form}}, func(t *testing.T, f *Injector) {
			runs++
			mem := memstore.New(memstore.Options{})
			d := f.Wrap(mem)
			_, herr := d.Head(context.Background(), "x")
			err := errors.Join(put(d, "a"), put(d, "b"))
			if failedHead := errors.Is(herr, ErrInjected); failedHead || err != nil {
				failed++
				if !f.Hit() {
					t.Fatal("failed without a hit")
				}
			}
			f.Heal()
			if err := put(d, "c"); err != nil {
				t.Fatal(err)
			}
		})
		if runs != c.runs || failed != runs-1 {
			t.Errorf("%s: %d runs, %d of them failed; want %d and all but one", c.form, runs, failed, c.runs)
		}
	}
}

func TestSweepSticky(t *testing.T) {
	Sweep(t, SweepOptions{Candidate: Ops(objstore.OpPut), Sticky: true}, func(t *testing.T, f *Injector) {
		mem := memstore.New(memstore.Options{})
		d := f.Wrap(mem)
		first, again := put(d, "a"), put(d, "a")
		if f.Hit() && !errors.Is(again, ErrInjected) {
			t.Errorf("first %v, again %v", first, again)
		}
		f.Heal()
		if err := put(d, "b"); err != nil {
			t.Error(err)
		}
	})
}

func TestSweepFindsItsOwnFailure(t *testing.T) {
	if _, err := sweep(func(int) (hit, ok bool) { return false, true }); err == nil {
		t.Error("a sweep without a hit passes")
	}
	if _, err := sweep(func(i int) (hit, ok bool) { return true, i < 3 }); err == nil {
		t.Error("a failed run passes")
	}
	if _, err := sweep(func(int) (hit, ok bool) { return true, true }); err == nil {
		t.Error("an endless sweep passes")
	}
	if hits, err := sweep(func(i int) (hit, ok bool) { return i < 5, true }); err != nil || hits != 4 {
		t.Errorf("%d hits, %v", hits, err)
	}
}

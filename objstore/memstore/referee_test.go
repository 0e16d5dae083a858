package memstore_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
)

func put(t *testing.T, d *memstore.Driver, key, body string, opts objstore.PutOptions) objstore.Info {
	t.Helper()
	info, err := d.Put(t.Context(), key, strings.NewReader(body), int64(len(body)), opts)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func get(t *testing.T, d *memstore.Driver, key string) error {
	t.Helper()
	body, _, err := d.Get(t.Context(), key, objstore.Whole, "")
	if err != nil {
		return err
	}
	return body.Close()
}

func remove(t *testing.T, d *memstore.Driver, keys ...string) {
	t.Helper()
	if _, err := d.Delete(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
}

func wantViolations(t *testing.T, d *memstore.Driver, want ...string) {
	t.Helper()
	if got := d.Violations(); !slices.Equal(got, want) {
		t.Errorf("violations %q, want %q", got, want)
	}
}

var once = objstore.PutOptions{IfNoneMatch: true}

func TestOverwrite(t *testing.T) {
	d := memstore.New(memstore.Options{})
	put(t, d, "seg/1", "a", once)
	put(t, d, "seg/1", "a", objstore.PutOptions{}) // the same bytes harm nobody
	put(t, d, "rw/head", "a", once)
	put(t, d, "rw/head", "b", objstore.PutOptions{})
	wantViolations(t, d)
	put(t, d, "seg/1", "b", objstore.PutOptions{})
	wantViolations(t, d, "overwrite of immutable seg/1 with other bytes")
}

func TestRecreation(t *testing.T) {
	d := memstore.New(memstore.Options{})
	for _, k := range []string{"seg/1", "seg/2", "rw/head"} {
		put(t, d, k, "a", once)
	}
	remove(t, d, "seg/1", "seg/2", "rw/head", "absent")
	put(t, d, "seg/1", "a", once)
	put(t, d, "rw/head", "b", once)
	wantViolations(t, d)
	put(t, d, "seg/2", "b", once)
	wantViolations(t, d, "re-creation of deleted seg/2 with other bytes")
}

func TestReadOfDeleted(t *testing.T) {
	d := memstore.New(memstore.Options{MayReadDeleted: func(k string) bool { return k == "seg/2" }})
	src := put(t, d, "seg/1", "a", once)
	put(t, d, "seg/2", "a", once)
	remove(t, d, "seg/1", "seg/2")
	for _, k := range []string{"seg/2", "never"} {
		if err := get(t, d, k); !errors.Is(err, objstore.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if _, err := d.Head(t.Context(), "seg/1"); !errors.Is(err, objstore.ErrNotFound) {
		t.Fatal(err)
	}
	wantViolations(t, d) // asking whether it is there is no read
	if err := get(t, d, "seg/1"); !errors.Is(err, objstore.ErrNotFound) {
		t.Fatal(err)
	}
	id, err := d.CreateUpload(t.Context(), "out", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.CopyPart(t.Context(), "out", id, 1, objstore.CopySource{Key: "seg/1", ETag: src.ETag, Length: 1})
	if !errors.Is(err, objstore.ErrNotFound) {
		t.Fatal(err)
	}
	wantViolations(t, d, "get of deleted seg/1", "copy-part of deleted seg/1")
}

func TestDeleteOfNamed(t *testing.T) {
	d := memstore.New(memstore.Options{CheckDelete: func(key string) error {
		if key == "seg/1" {
			return errors.New("a ref names it")
		}
		return nil
	}})
	put(t, d, "seg/2", "a", once)
	remove(t, d, "seg/1", "seg/2") // seg/1 does not stand
	wantViolations(t, d)
	put(t, d, "seg/1", "a", once)
	remove(t, d, "seg/1")
	wantViolations(t, d, "delete of seg/1: a ref names it")
}

func TestClockDumpTamper(t *testing.T) {
	now := time.Unix(1000, 0)
	d := memstore.New(memstore.Options{Clock: func() time.Time { return now }})
	if info := put(t, d, "k", "abc", once); !info.Modified.Equal(now) {
		t.Errorf("modified %v", info.Modified)
	}
	d.Dump()["k"][0] = 'x' // a copy
	if got := string(d.Dump()["k"]); got != "abc" {
		t.Errorf("dump %q", got)
	}
	body, _, err := d.Get(t.Context(), "k", objstore.Whole, "")
	if err != nil {
		t.Fatal(err)
	}
	if !d.Tamper("k", func(b []byte) []byte { b[1] ^= 1; return b }) || d.Tamper("none", nil) {
		t.Error("tamper says the wrong thing about what stands")
	}
	if b, err := io.ReadAll(body); err != nil || string(b) != "abc" {
		t.Errorf("a body that was open changed: %q, %v", b, err)
	}
	if got := string(d.Dump()["k"]); got != "acc" {
		t.Errorf("tampered %q", got)
	}
	wantViolations(t, d)
}

func TestShuffleDependsOnSeed(t *testing.T) {
	order := func(seed uint64) (keys []string) {
		d := memstore.New(memstore.Options{Shuffle: seed})
		for _, k := range strings.Split("abcdefghij", "") {
			put(t, d, k, "", once)
		}
		page, err := d.List(t.Context(), "", "", "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
		}
		return keys
	}
	if a, b := order(1), order(1); !slices.Equal(a, b) {
		t.Error("one seed, two orders")
	}
	if slices.IsSorted(order(1)) || slices.Equal(order(1), order(2)) {
		t.Error("not shuffled")
	}
}

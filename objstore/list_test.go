package objstore_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// shuffled is a store that lists as S3 Express does.
func shuffled(t *testing.T, keys []string) *objstore.Store {
	t.Helper()
	s := newStore(t, memstore.New(memstore.Options{Shuffle: 5, PageSize: 3, EmptyPages: true, DirectoryPrefix: true}))
	for _, key := range keys {
		if _, err := s.PutOnce(t.Context(), key, []byte(key), nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func keysOf(t *testing.T, list iter.Seq2[objstore.Info, error]) []string {
	t.Helper()
	var got []string
	for o, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Key)
	}
	return got
}

var someKeys = []string{"seg/1.1", "seg/1.2", "seg/1.3", "seg/10.1", "seg/2.1", "rw/1", "rw/10", "seg2/1.1", "meta", "obj/a/b/1", "obj/a/b1/1", "obj/a/1"}

// TestListPrefixOfADirectory is K38 and K39 together: only whole directories are listed,
// in no order, and a prefix still hits what begins with it and nothing else.
func TestListPrefixOfADirectory(t *testing.T) {
	s := shuffled(t, someKeys)
	for _, prefix := range []string{"", "seg/", "seg/1.", "seg/1", "seg", "s", "rw/1", "obj/a/b", "obj/a/b/", "obj/a/b/1", "none", "none/x", "meta"} {
		want := slices.DeleteFunc(slices.Sorted(slices.Values(someKeys)), func(k string) bool { return !strings.HasPrefix(k, prefix) })
		got := keysOf(t, s.List(t.Context(), prefix, ""))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", prefix, got, want)
		}
		for _, after := range []string{"seg/1.1", "rw/1", "zz"} {
			got := keysOf(t, s.List(t.Context(), prefix, after))
			rest := slices.DeleteFunc(slices.Clone(want), func(k string) bool { return k <= after })
			if slices.Sort(got); !slices.Equal(got, rest) {
				t.Errorf("%q after %q: %q, want %q", prefix, after, got, rest)
			}
		}
	}
	up, err := s.Driver().CreateUpload(t.Context(), "seg/1.4", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Driver().CreateUpload(t.Context(), "seg/1.40", nil); err != nil {
		t.Fatal(err)
	}
	ups, err := s.ListUploads(t.Context(), "seg/1.4")
	if err != nil || len(ups) != 2 {
		t.Errorf("uploads: %v %v", ups, err)
	}
	ups, err = s.ListUploads(t.Context(), "seg/1.40")
	if err != nil || len(ups) != 1 || ups[0].ID == up {
		t.Errorf("uploads: %v %v", ups, err)
	}
}

// TestK39ListSorted: in order, each once, whatever window the memory allows.
func TestK39ListSorted(t *testing.T) {
	var keys []string
	for i := range 50 {
		keys = append(keys, fmt.Sprintf("d%d/%03d", i%3, i))
	}
	s := shuffled(t, keys)
	if slices.IsSorted(keysOf(t, s.List(t.Context(), "", ""))) {
		t.Fatal("the store lists in order: this shows nothing")
	}
	want := slices.Sorted(slices.Values(keys))
	for window := 1; window <= 60; window++ {
		before := s.Counters()
		if got := keysOf(t, s.ListSortedIn(t.Context(), "", window)); !slices.Equal(got, want) {
			t.Fatalf("window %d: %q", window, got)
		}
		lists := s.Counters().Sub(before).Requests[objstore.OpList]
		one := int64(34) // 17 pages of 3 keys, an empty one before each
		if passes := int64((50 + window - 1) / window); lists != passes*one {
			t.Errorf("window %d: %d requests, want %d listings of %d", window, lists, passes, one)
		}
	}
	if got := keysOf(t, s.ListSorted(t.Context(), "d1/")); !slices.Equal(got, slices.DeleteFunc(want, func(k string) bool { return !strings.HasPrefix(k, "d1/") })) {
		t.Errorf("d1/: %q", got)
	}
	if got := keysOf(t, s.ListSorted(t.Context(), "none/")); got != nil {
		t.Errorf("none/: %q", got)
	}
}

// TestListSortedFails: an error in any of its listings is yielded, and nothing follows.
func TestListSortedFails(t *testing.T) {
	lists := 0
	d := faultstore.Wrap(memstore.New(memstore.Options{Shuffle: 5, PageSize: 2}), func(c faultstore.Call) faultstore.Fault {
		if c.Op == objstore.OpList {
			lists++ // the first listing of six keys has three pages; the second fails
		}
		if lists > 4 {
			return faultstore.Fault{Kind: faultstore.NotApplied}
		}
		return faultstore.Fault{}
	})
	s := newStore(t, d)
	for i := range 6 {
		if _, err := s.PutOnce(t.Context(), fmt.Sprint("k", i), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	var last error
	n := 0
	for _, err := range s.ListSortedIn(t.Context(), "", 2) {
		if last != nil {
			t.Fatal("it went on after an error")
		}
		if last = err; err == nil {
			n++
		}
	}
	if !errors.Is(last, objstore.ErrUnavailable) || n != 2 {
		t.Errorf("after %d: %v", n, last)
	}
}

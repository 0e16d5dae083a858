package storetest

import (
	"slices"
	"strings"

	"github.com/strandline/strandline/objstore"
)

func listCases() []testCase {
	return []testCase{
		{"List/Order", listOrder},
		{"List/Paging", listPaging},
		{"List/StartAfter", listStartAfter},
		{"List/Empty", listEmpty},
		{"List/K38Prefixes", listPrefixes},
		{"List/Info", listInfo},
		{"List/AfterDelete", listAfterDelete},
	}
}

// listable is the prefix that the store can be asked for.
func (e *env) listable(prefix string) string {
	if e.caps.DirectoryPrefix {
		return prefix[:strings.LastIndexByte(prefix, '/')+1]
	}
	return prefix
}

// list follows all pages of limit keys. Where only directories are listed, it takes from
// the prefix's what Store takes from it.
func (e *env) list(prefix, startAfter string, limit int) []string {
	e.Helper()
	keys := e.listAsked(e.listable(prefix), startAfter, limit)
	return slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) })
}

func (e *env) listAsked(prefix, startAfter string, limit int) []string {
	e.Helper()
	var keys []string
	token := ""
	for range 10_000 {
		page, err := e.d.List(e.ctx(), prefix, startAfter, token, limit)
		if err != nil {
			e.Fatalf("list %q after %q: %v", prefix, startAfter, err)
		}
		if len(page.Objects) > limit {
			e.Fatalf("a page of %d keys, asked for %d", len(page.Objects), limit)
		}
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
		}
		if token = page.Next; token == "" {
			return keys
		}
	}
	e.Fatal("the listing does not end")
	return nil
}

// listed checks that a listing holds just want, in order where the store has one.
func (e *env) listed(prefix string, want []string) {
	e.Helper()
	e.same("list "+prefix, e.list(prefix, "", 1000), want)
}

func (e *env) same(what string, got, want []string) {
	e.Helper()
	want = slices.Sorted(slices.Values(want))
	if !e.caps.OrderedList {
		slices.Sort(got)
	}
	if !slices.Equal(got, want) {
		e.Fatalf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func (e *env) fill(names ...string) []string {
	e.Helper()
	keys := make([]string, len(names))
	for i, n := range names {
		keys[i] = e.key(n)
		e.mustPut(keys[i], []byte(n))
	}
	return keys
}

// listOrder: bytewise by whole key, where "-" and "." sort before "/" and upper
// case before lower.
func listOrder(e *env) {
	keys := e.fill("b/1", "b-1", "b.1", "b=1", "b0", "B/1", "b/1-/x", "b/1.", "a~", "a/z/z", "a/z-z", "a/Z", "_", "~", "0", "b/Zz/y", "b/zZ/y")
	e.listed(e.prefix, keys)
}

func listPaging(e *env) {
	names := append(numbered("p/%02d/x", 7), numbered("p/03/y%d", 9)...)
	keys := e.fill(names...)
	for _, limit := range []int{1, 2, 3, 5, 16, 1000} {
		e.same("paged list", e.list(e.key("p/"), "", limit), keys)
	}
}

func listStartAfter(e *env) {
	if !e.caps.StartAfter {
		return
	}
	keys := slices.Sorted(slices.Values(e.fill("s/a", "s/b/b", "s/b/c", "s/b-", "s/c", "s/d/1", "s/d/2", "s/e")))
	for i, k := range keys {
		e.same("after "+k, e.list(e.key("s/"), k, 2), keys[i+1:])
	}
	e.same("after a key that is not there", e.list(e.key("s/"), e.key("s/d/11"), 2), []string{e.key("s/d/2"), e.key("s/e")})
	e.same("after a prefix", e.list(e.key("s/"), e.key("s/d"), 1), []string{e.key("s/d/1"), e.key("s/d/2"), e.key("s/e")})
	e.same("after all", e.list(e.key("s/"), e.key("s/zz"), 2), nil)
	e.same("after one before all", e.list(e.key("s/"), e.key("a"), 3), keys)
}

func listEmpty(e *env) {
	e.listed(e.prefix, nil)
	e.listed(e.key("no/such/place/"), nil)
}

// listPrefixes: a prefix ends anywhere, or where it must, and hits what begins with it, no
// more.
func listPrefixes(e *env) {
	keys := e.fill("a/1/x", "a/10/x", "a/1~1/x", "a/1-/x", "ab/x", "x/s", "x1/s", "x~1/s")
	under := func(prefix string) []string {
		return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.HasPrefix(k, prefix) })
	}
	for _, p := range []string{"a/1/", "a/1", "a/10", "a/10/", "a", "a/", "x/", "x", "x1/", "a/1/x", "a/1/x/", "b"} {
		e.listed(e.key(p), under(e.key(p)))
	}
	if e.caps.DirectoryPrefix {
		_, err := e.d.List(e.ctx(), e.key("a/1"), "", "", 10)
		e.wantKind("a prefix that is no directory", err, objstore.ErrInvalid)
		_, err = e.d.ListUploads(e.ctx(), e.key("a/1"))
		e.wantKind("uploads under a prefix that is no directory", err, objstore.ErrInvalid)
	}
	e.mustDelete(under(e.key("a/1/"))...)
	e.mustDelete(under(e.key("x/"))...)
	e.holds(e.key("a/10/x"), []byte("a/10/x"))
	e.listed(e.prefix, []string{e.key("a/10/x"), e.key("a/1~1/x"), e.key("a/1-/x"), e.key("ab/x"), e.key("x1/s"), e.key("x~1/s")})
}

func listInfo(e *env) {
	want := e.mustPut(e.key("i/obj"), noise(5, 321))
	page, err := e.d.List(e.ctx(), e.key("i/"), "", "", 10)
	for err == nil && len(page.Objects) == 0 && page.Next != "" {
		page, err = e.d.List(e.ctx(), e.key("i/"), "", page.Next, 10)
	}
	if err != nil || len(page.Objects) != 1 {
		e.Fatalf("list: %+v, %v", page, err)
	}
	if o := page.Objects[0]; o.Key != want.Key || o.Size != 321 || o.ETag != want.ETag || o.Modified.IsZero() {
		e.Errorf("listed %+v, put said %+v", o, want)
	}
	_, err = e.d.List(e.ctx(), e.prefix, "", "", 0)
	e.wantKind("a page of 0", err, objstore.ErrInvalid)
	_, err = e.d.List(e.ctx(), e.prefix, "", "", 1001)
	e.wantKind("a page of 1,001", err, objstore.ErrInvalid)
}

func listAfterDelete(e *env) {
	keys := e.fill("g/1", "g/2", "g/3")
	e.mustDelete(keys[1])
	e.listed(e.key("g/"), []string{keys[0], keys[2]})
	e.mustDelete(keys[0], keys[2])
	e.listed(e.key("g/"), nil)
}

package fsstore

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
)

const alphabet = "abyzABYZ019._~=-"

func randomKey(r *rand.Rand) string {
	segs := make([]string, 1+r.IntN(3))
	for i := range segs {
		n := 1 + r.IntN(6)
		if r.IntN(4) == 0 {
			n = 95 + r.IntN(160) // around the length at which names are cut
		}
		b := make([]byte, n)
		for j := range b {
			b[j] = alphabet[r.IntN(len(alphabet))]
		}
		segs[i] = string(b)
	}
	return strings.Join(segs, "/")
}

// keyOf undoes objectPath, entry by entry, as a listing does.
func keyOf(root, path string) (string, bool) {
	rel := strings.Split(strings.TrimPrefix(path, root+"/"), "/")
	key := ""
	for i, name := range rel {
		if len(name) > 255 {
			return "", false
		}
		add, ok := entryKey(name, i < len(rel)-1)
		if !ok {
			return "", false
		}
		key += add
	}
	return key, true
}

// TestPaths: every key has a path of its own, also on a file system that folds
// case, and the path gives the key back.
func TestPaths(t *testing.T) {
	d := &Driver{root: "/bucket"}
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	for range 20_000 {
		key := randomKey(r)
		if objstore.CheckKey(key) != nil {
			continue
		}
		path := d.objectPath(key)
		if back, ok := keyOf(d.root, path); !ok || back != key {
			t.Fatalf("%q -> %q -> %q", key, path, back)
		}
		folded := strings.ToLower(path)
		if other, ok := seen[folded]; ok && other != key {
			t.Fatalf("%q and %q share %q", key, other, folded)
		}
		seen[folded] = key
		if filepath.Clean(path) != path || !strings.HasPrefix(path, "/bucket/") || strings.HasPrefix(path, "/bucket/@") {
			t.Fatalf("%q leads to %q", key, path)
		}
	}
}

// TestParentAndChild: a key may be another's parent, as on AWS.
func TestParentAndChild(t *testing.T) {
	d := prepare(t, t.TempDir(), "create")
	keys := []string{"a", "a/b", "a/b/c", "a-", "A", "A/b"}
	for _, k := range keys {
		if _, err := d.Put(t.Context(), k, strings.NewReader(k), int64(len(k)), createOnce); err != nil {
			t.Fatal(err)
		}
	}
	if got := listAll(t, d, "", 2); !slices.Equal(got, slices.Sorted(slices.Values(keys))) {
		t.Errorf("listed %q", got)
	}
	if _, err := d.Delete(t.Context(), []string{"a/b"}); err != nil {
		t.Fatal(err)
	}
	if got := listAll(t, d, "a", 1000); !slices.Equal(got, []string{"a", "a-", "a/b/c"}) {
		t.Errorf("listed %q", got)
	}
}

func listAll(t *testing.T, d *Driver, prefix string, limit int) []string {
	t.Helper()
	var keys []string
	for token := ""; ; {
		page, err := d.List(t.Context(), prefix, "", token, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
		}
		if token = page.Next; token == "" {
			return keys
		}
	}
}

// TestListOrderOfCutNames: long names are cut into directories, which must not
// show in the order.
func TestListOrderOfCutNames(t *testing.T) {
	d := prepare(t, t.TempDir(), "create")
	r := rand.New(rand.NewPCG(3, 4))
	var keys []string
	base := strings.Repeat("a", 200)
	for _, tail := range []string{"", "-", "/x", "0", "0/y", "~", "-/z", strings.Repeat("b", 55)} {
		keys = append(keys, base+tail)
	}
	for range 200 {
		if k := randomKey(r); objstore.CheckKey(k) == nil {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, k := range keys {
		if _, err := d.Put(t.Context(), k, strings.NewReader(""), 0, createOnce); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 7, 1000} {
		if got := listAll(t, d, "", limit); !slices.Equal(got, keys) {
			t.Fatalf("pages of %d: order or content is wrong", limit)
		}
	}
	for _, prefix := range []string{base, base + "0", base + "/", base + "-", base[:150], "a", "~", "Y", "../", "./", "a//", "/"} {
		want := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.HasPrefix(k, prefix) })
		if got := listAll(t, d, prefix, 3); !slices.Equal(got, want) {
			t.Errorf("prefix %.20q: %d keys, want %d", prefix, len(got), len(want))
		}
	}
}

// TestListReadsLittle: a listing opens the directories it needs.
func TestListReadsLittle(t *testing.T) {
	d := prepare(t, t.TempDir(), "create")
	for i := range 10 {
		for j := range 10 {
			k := fmt.Sprintf("s/%d/%d/x", i, j)
			if _, err := d.Put(t.Context(), k, strings.NewReader(""), 0, createOnce); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		prefix, after string
		limit, most   int
		first         string
	}{
		{"s/7/", "", 1000, 11, "s/7/0/x"},
		{"s/7/3/", "", 1000, 1, "s/7/3/x"},
		{"s/7/3/x", "", 1000, 1, "s/7/3/x"},
		{"s/7", "", 1000, 12, "s/7/0/x"},
		{"s/", "", 1, 3, "s/0/0/x"},            // one key needs one way down
		{"s/", "s/8/8/x", 1000, 15, "s/8/9/x"}, // s, 8 and 9 with what follows
		{"", "s/5/4/x", 1, 5, "s/5/5/x"},       // root, s, 5, 5/4 and 5/5
		{"none/", "", 1000, 1, ""},
		{"s/../s/1/", "", 1000, 0, ""},
	} {
		w := d.walk(c.prefix, c.after)
		page, err := w.page(t.Context(), c.limit)
		if err != nil {
			t.Fatal(err)
		}
		if w.opened > c.most {
			t.Errorf("list %q after %q: %d directories opened, want at most %d", c.prefix, c.after, w.opened, c.most)
		}
		first := ""
		if len(page.Objects) > 0 {
			first = page.Objects[0].Key
		}
		if first != c.first {
			t.Errorf("list %q after %q begins with %q, want %q", c.prefix, c.after, first, c.first)
		}
	}
}

// FuzzTail: no bytes make the footer's decoder panic or believe a wrong length.
func FuzzTail(f *testing.F) {
	d := &Driver{clock: time.Now}
	for _, meta := range []map[string]string{nil, {"strandline-nonce": "n"}} {
		b, err := d.newRecord(7, meta).tail()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, int64(7+len(b)))
		f.Add(b[1:], int64(7+len(b)))
	}
	f.Add([]byte{}, int64(0))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		r, err := parseTail(b, size)
		if err == nil && r.size+int64(len(b)) != size {
			t.Fatalf("a body of %d and a tail of %d make %d", r.size, len(b), size)
		}
	})
}

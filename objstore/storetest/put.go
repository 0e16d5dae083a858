package storetest

import (
	"context"
	"strings"

	"github.com/strandline/strandline/objstore"
)

func putCases() []testCase {
	return []testCase{
		{"Put/CreateOnce", createOnce},
		{"Put/Empty", putEmpty},
		{"Put/Meta", putMeta},
		{"Put/IfMatch", putIfMatch},
		{"Put/IfMatchAbsent", putIfMatchAbsent},
		{"Put/CreateAfterDelete", createAfterDelete},
		{"Put/ETagsDiffer", etagsDiffer},
		{"Put/Keys", putKeys},
		{"Put/CaseKeptApart", putCase},
		{"Put/Cancelled", putCancelled},
	}
}

func createOnce(e *env) {
	k := e.key("a/slot")
	info := e.mustPut(k, []byte("first"))
	if info.ETag == "" || strings.Contains(info.ETag, `"`) {
		e.Errorf("ETag %q: want one without quotes", info.ETag)
	}
	_, err := e.put(k, []byte("second"), once)
	e.wantKind("second put", err, objstore.ErrExists)
	_, err = e.put(k, []byte("first"), once)
	e.wantKind("the same bytes again", err, objstore.ErrExists)
	got := e.holds(k, []byte("first"))
	if got.ETag != info.ETag {
		e.Errorf("get says ETag %q, put said %q", got.ETag, info.ETag)
	}
	head, err := e.d.Head(e.ctx(), k)
	if err != nil || head.ETag != info.ETag || head.Size != 5 {
		e.Errorf("head: %+v, %v", head, err)
	}
	if head.Modified.IsZero() {
		e.Error("head has no time")
	}
}

func putEmpty(e *env) {
	k := e.key("empty")
	e.mustPut(k, nil)
	e.holds(k, nil)
	_, err := e.put(k, []byte("x"), once)
	e.wantKind("put over an empty object", err, objstore.ErrExists)
}

func putMeta(e *env) {
	k := e.key("with-meta")
	want := map[string]string{"strandline-nonce": "n-1", "digest": "0123456789abcdef", "mixed-case": "Value"}
	meta := map[string]string{"strandline-nonce": "n-1", "digest": "0123456789abcdef", "Mixed-Case": "Value"}
	if _, err := e.put(k, []byte("body"), objstore.PutOptions{IfNoneMatch: true, Meta: meta}); err != nil {
		e.Fatal(err)
	}
	head, err := e.d.Head(e.ctx(), k)
	if err != nil {
		e.Fatal(err)
	}
	e.sameMeta(head.Meta, want)
	_, info, err := e.read(k, objstore.Range{Offset: 1, Length: 2}, "")
	if err != nil {
		e.Fatal(err)
	}
	e.sameMeta(info.Meta, want)
}

func putIfMatch(e *env) {
	k := e.rw("head")
	one := e.mustPut(k, []byte("one"))
	two, err := e.put(k, []byte("two"), objstore.PutOptions{IfMatch: one.ETag, Meta: map[string]string{"gen": "2"}})
	if err != nil {
		e.Fatalf("replace: %v", err)
	}
	if two.ETag == one.ETag {
		e.Error("replacing kept the ETag")
	}
	_, err = e.put(k, []byte("three"), objstore.PutOptions{IfMatch: one.ETag})
	e.wantKind("replace of a stale ETag", err, objstore.ErrPrecondition)
	info := e.holds(k, []byte("two"))
	e.sameMeta(info.Meta, map[string]string{"gen": "2"})
}

// putIfMatchAbsent: S3 answers 404, which a driver may pass on.
func putIfMatchAbsent(e *env) {
	k := e.rw("none")
	etag := e.mustPut(e.rw("other"), []byte("x")).ETag
	_, err := e.put(k, []byte("y"), objstore.PutOptions{IfMatch: etag})
	e.wantKind("If-Match on an absent key", err, objstore.ErrPrecondition, objstore.ErrNotFound)
	e.absent(k)
}

func createAfterDelete(e *env) {
	k := e.rw("again")
	e.mustPut(k, []byte("one"))
	e.mustDelete(k)
	e.absent(k)
	e.mustPut(k, []byte("two"))
	e.holds(k, []byte("two"))
}

func etagsDiffer(e *env) {
	a, b := e.mustPut(e.key("a"), []byte("a")), e.mustPut(e.key("b"), []byte("b"))
	if a.ETag == b.ETag {
		e.Errorf("objects with other bytes share the ETag %q", a.ETag)
	}
}

// putKeys: every allowed byte, the longest segment, a long key.
func putKeys(e *env) {
	const all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~=-"
	keys := []string{
		e.key(all), e.key("d." + all + "/" + all), e.key("..."), e.key(".hidden/..x"), e.key("~/=/-/_"),
		e.key(strings.Repeat("s", 255)), e.key(strings.Repeat("S", 255)),
		e.key(strings.Repeat("Xy", 127) + "/" + strings.Repeat("Z", 254) + "/" + strings.Repeat("w", 255)),
	}
	for _, k := range keys {
		e.mustPut(k, []byte(k))
	}
	for _, k := range keys {
		e.holds(k, []byte(k))
	}
	e.listed(e.prefix, keys)
	for _, k := range keys {
		e.mustDelete(k)
		e.absent(k)
	}
}

func putCase(e *env) {
	keys := []string{e.key("Seg/Name"), e.key("seg/name"), e.key("SEG/NAME"), e.key("seg/Name")}
	for _, k := range keys {
		e.mustPut(k, []byte(k))
	}
	for _, k := range keys {
		e.holds(k, []byte(k))
	}
	e.mustDelete(keys[0])
	e.listed(e.prefix, keys[1:])
}

func putCancelled(e *env) {
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	k := e.key("never")
	_, err := e.d.Put(ctx, k, strings.NewReader("x"), 1, once)
	e.wantKind("put under a cancelled context", err, objstore.ErrUnavailable, objstore.ErrAmbiguous)
	e.absent(k)
	_, err = e.d.Head(ctx, k)
	e.wantKind("head under a cancelled context", err, objstore.ErrUnavailable)
	_, err = e.d.List(ctx, e.prefix, "", "", 10)
	e.wantKind("list under a cancelled context", err, objstore.ErrUnavailable)
}

package storetest

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/strandline/strandline/objstore"
)

func uploadCases() []testCase {
	return []testCase{
		{"Upload/Parts", uploadParts},
		{"Upload/OnePart", uploadOnePart},
		{"Upload/PartAgain", uploadPartAgain},
		{"Upload/Meta", uploadMeta},
		{"Upload/CompleteTwice", completeTwice},
		{"Upload/CompleteLostToPut", completeLost},
		{"Upload/CompleteIfMatch", completeIfMatch},
		{"Upload/BadParts", completeBadParts},
		{"Upload/MinPart", minPart},
		{"Upload/Abort", abort},
		{"Upload/List", listUploads},
		{"Upload/Unknown", unknownUpload},
		{"Upload/Invisible", uploadInvisible},
	}
}

// partSize is the smallest part that may stand before another.
func (e *env) partSize() int { return int(max(e.caps.MinPart, 1024)) }

func (e *env) upload(key string, meta map[string]string) string {
	e.Helper()
	id, err := e.d.CreateUpload(e.ctx(), key, meta)
	if err != nil || id == "" {
		e.Fatalf("create upload: %q, %v", id, err)
	}
	// Abort of an upload that is complete is nothing.
	e.Cleanup(func() { _ = e.d.Abort(context.WithoutCancel(e.ctx()), key, id) })
	return id
}

func (e *env) part(key, id string, n int, body []byte) objstore.Part {
	e.Helper()
	p, err := e.d.UploadPart(e.ctx(), key, id, n, bytes.NewReader(body), int64(len(body)))
	if err != nil {
		e.Fatalf("part %d: %v", n, err)
	}
	if p.Number != n || p.ETag == "" || p.Size != int64(len(body)) {
		e.Fatalf("part %d of %d bytes: %+v", n, len(body), p)
	}
	return p
}

func uploadParts(e *env) {
	k := e.key("u/parts")
	id := e.upload(k, nil)
	a, b, c := noise(10, e.partSize()), noise(11, e.partSize()), noise(12, 33)
	numbers := []int{1, 3, 7} // with gaps
	if e.caps.DirectoryPrefix {
		numbers = []int{1, 2, 3} // S3 Express takes none; a Writer makes none
	}
	pc := e.part(k, id, numbers[2], c) // in any order
	pa := e.part(k, id, numbers[0], a)
	pb := e.part(k, id, numbers[1], b)
	info, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{pa, pb, pc}, once)
	if err != nil {
		e.Fatalf("complete: %v", err)
	}
	got := e.holds(k, slices.Concat(a, b, c))
	if info.ETag == "" || got.ETag != info.ETag {
		e.Errorf("ETag of complete %q, of get %q", info.ETag, got.ETag)
	}
}

func uploadOnePart(e *env) {
	k := e.key("u/one")
	id := e.upload(k, nil)
	p := e.part(k, id, 1, []byte("tiny"))
	if _, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, once); err != nil {
		e.Fatal(err)
	}
	e.holds(k, []byte("tiny"))
}

func uploadPartAgain(e *env) {
	k := e.key("u/again")
	id := e.upload(k, nil)
	e.part(k, id, 1, []byte("first try"))
	p := e.part(k, id, 1, []byte("second try"))
	if _, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, once); err != nil {
		e.Fatal(err)
	}
	e.holds(k, []byte("second try"))
}

func uploadMeta(e *env) {
	k := e.key("u/meta")
	want := map[string]string{"strandline-nonce": "n-7"}
	id := e.upload(k, want)
	p := e.part(k, id, 1, []byte("x"))
	if _, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, once); err != nil {
		e.Fatal(err)
	}
	head, err := e.d.Head(e.ctx(), k)
	if err != nil {
		e.Fatal(err)
	}
	e.sameMeta(head.Meta, want)
}

// completeTwice: AWS and versitygw replay the success, MinIO says 412 or 404.
func completeTwice(e *env) {
	k := e.key("u/twice")
	id := e.upload(k, nil)
	p := e.part(k, id, 1, []byte("x"))
	first, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, once)
	if err != nil {
		e.Fatal(err)
	}
	again, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, once)
	if err != nil {
		e.wantKind("complete again", err, objstore.ErrExists, objstore.ErrNotFound)
	} else if again.ETag != first.ETag {
		e.Errorf("complete again made another object: %q, then %q", first.ETag, again.ETag)
	}
	e.holds(k, []byte("x"))
}

func completeLost(e *env) {
	k := e.key("u/lost")
	id := e.upload(k, nil)
	p := e.part(k, id, 1, []byte("upload"))
	e.mustPut(k, []byte("put"))
	_, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, once)
	e.wantKind("complete over a put", err, objstore.ErrExists)
	e.holds(k, []byte("put"))
	for range 2 { // losers abort, twice
		if err := e.d.Abort(e.ctx(), k, id); err != nil {
			e.Fatalf("abort after a loss: %v", err)
		}
	}
	e.holds(k, []byte("put"))
}

func completeIfMatch(e *env) {
	k := e.rw("u/replace")
	old := e.mustPut(k, []byte("old"))
	id := e.upload(k, nil)
	p := e.part(k, id, 1, []byte("new"))
	_, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, objstore.PutOptions{IfMatch: "00000000000000000000000000000000"})
	e.wantKind("complete under a wrong ETag", err, objstore.ErrPrecondition)
	e.holds(k, []byte("old"))
	if _, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, objstore.PutOptions{IfMatch: old.ETag}); err != nil {
		e.Fatalf("complete under the ETag: %v", err)
	}
	e.holds(k, []byte("new"))
}

func completeBadParts(e *env) {
	k := e.key("u/bad")
	id := e.upload(k, nil)
	big := noise(13, e.partSize())
	one, two := e.part(k, id, 1, big), e.part(k, id, 2, []byte("y"))
	wrong := one
	wrong.ETag = two.ETag
	for what, parts := range map[string][]objstore.Part{
		"no parts":      nil,
		"a wrong ETag":  {wrong, two},
		"wrong order":   {two, one},
		"a part unsent": {one, {Number: 3, ETag: two.ETag, Size: 1}},
	} {
		_, err := e.d.Complete(e.ctx(), k, id, parts, once)
		e.wantKind(what, err, objstore.ErrInvalid)
	}
	e.absent(k)
	if _, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{one, two}, once); err != nil {
		e.Fatalf("the right list after wrong ones: %v", err)
	}
	e.holds(k, append(big, 'y'))
	for _, n := range []int{0, -1, 10_001} {
		_, err := e.d.UploadPart(e.ctx(), k, e.upload(k, nil), n, bytes.NewReader(nil), 0)
		e.wantKind("a part number out of range", err, objstore.ErrInvalid)
	}
}

func minPart(e *env) {
	if e.caps.MinPart == 0 {
		return
	}
	k := e.key("u/min")
	id := e.upload(k, nil)
	short, last := e.part(k, id, 1, noise(14, int(e.caps.MinPart)-1)), e.part(k, id, 2, []byte("y"))
	_, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{short, last}, once)
	e.wantKind("a short part that is not the last", err, objstore.ErrInvalid)
	e.absent(k)
}

func abort(e *env) {
	k := e.key("u/abort")
	id := e.upload(k, nil)
	p := e.part(k, id, 1, []byte("x"))
	for range 2 {
		if err := e.d.Abort(e.ctx(), k, id); err != nil {
			e.Fatalf("abort: %v", err)
		}
	}
	_, err := e.d.UploadPart(e.ctx(), k, id, 2, bytes.NewReader([]byte("y")), 1)
	e.wantKind("a part after the abort", err, objstore.ErrNotFound)
	_, err = e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, once)
	e.wantKind("complete after the abort", err, objstore.ErrNotFound)
	e.absent(k)
}

// listUploads: a store without the capability shows at least those of one key.
func listUploads(e *env) {
	a, b := e.key("u/list/a"), e.key("u/list-b")
	idA, idA2, idB := e.upload(a, nil), e.upload(a, nil), e.upload(b, nil)
	ids := func(prefix string) []string {
		ups, err := e.d.ListUploads(e.ctx(), e.listable(prefix))
		if err != nil {
			e.Fatalf("list uploads: %v", err)
		}
		var out []string
		for _, u := range ups {
			if e.caps.DirectoryPrefix && !strings.HasPrefix(u.Key, prefix) {
				continue
			}
			if u.Key != a && u.Key != b {
				e.Errorf("upload of %q listed under %q", u.Key, prefix)
			}
			out = append(out, u.ID)
		}
		return slices.Sorted(slices.Values(out))
	}
	sorted := func(ids ...string) []string { return slices.Sorted(slices.Values(ids)) }
	if got := ids(a); !slices.Equal(got, sorted(idA, idA2)) {
		e.Errorf("uploads of %s: %q, want %q", a, got, sorted(idA, idA2))
	}
	if e.caps.ListUploads {
		if got := ids(e.prefix); !slices.Equal(got, sorted(idA, idA2, idB)) {
			e.Errorf("uploads under the prefix: %q", got)
		}
	}
	if err := e.d.Abort(e.ctx(), a, idA); err != nil {
		e.Fatal(err)
	}
	if got := ids(a); !slices.Equal(got, sorted(idA2)) {
		e.Errorf("after an abort: %q, want %q", got, idA2)
	}
}

func unknownUpload(e *env) {
	k := e.key("u/unknown")
	id := e.upload(k, nil)
	if err := e.d.Abort(e.ctx(), k, id); err != nil {
		e.Fatal(err)
	}
	part := objstore.Part{Number: 1, ETag: "00000000000000000000000000000000", Size: 1}
	_, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{part}, once)
	e.wantKind("complete of no upload", err, objstore.ErrNotFound)
	if err := e.d.Abort(e.ctx(), k, id); err != nil {
		e.Errorf("abort of no upload: %v", err)
	}
}

// uploadInvisible: nothing of an upload shows among the objects.
func uploadInvisible(e *env) {
	k := e.key("u/invisible")
	id := e.upload(k, nil)
	e.part(k, id, 1, []byte("x"))
	e.absent(k)
	e.listed(e.prefix, nil)
}

package storetest

import (
	"bytes"
	"slices"

	"github.com/strandline/strandline/objstore"
)

func copyCases() []testCase {
	return []testCase{
		{"Copy/Joined", copyJoined},
		{"Copy/Refused", copyRefused},
		{"Copy/SmallSource", copySmall},
	}
}

// source makes an object that is large enough to be range-copied.
func (e *env) source(name string) ([]byte, objstore.Info) {
	e.Helper()
	body := noise(20, int(e.caps.MinCopy)+2*e.partSize()+100)
	return body, e.mustPut(e.key(name), body)
}

func (e *env) canCopy() bool { return e.caps.RangeCopy && !e.caps.EqualParts }

func copyJoined(e *env) {
	if !e.canCopy() {
		return
	}
	body, src := e.source("c/src")
	k, n := e.key("c/dst"), int64(e.partSize())
	id := e.upload(k, nil)
	one, err := e.d.CopyPart(e.ctx(), k, id, 1, objstore.CopySource{Key: src.Key, ETag: src.ETag, Offset: 10, Length: n})
	if err != nil {
		e.Fatalf("copy: %v", err)
	}
	if one.ETag == "" || one.Number != 1 {
		e.Fatalf("copied part: %+v", one)
	}
	two := e.part(k, id, 2, noise(21, int(n)))
	three, err := e.d.CopyPart(e.ctx(), k, id, 3, objstore.CopySource{Key: src.Key, ETag: src.ETag, Offset: src.Size - 7, Length: 7})
	if err != nil {
		e.Fatalf("copy of the last bytes: %v", err)
	}
	if _, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{one, two, three}, once); err != nil {
		e.Fatalf("complete: %v", err)
	}
	e.holds(k, slices.Concat(body[10:10+n], noise(21, int(n)), body[len(body)-7:]))
	if _, _, err := e.read(src.Key, objstore.Suffix(7), src.ETag); err != nil {
		e.Errorf("the source after the copy: %v", err)
	}
}

func copyRefused(e *env) {
	if !e.canCopy() {
		return
	}
	body, src := e.source("c/src")
	k := e.key("c/dst")
	id := e.upload(k, nil)
	size := int64(len(body))
	for _, c := range []struct {
		what  string
		src   objstore.CopySource
		kinds []error
	}{
		{"a wrong ETag", objstore.CopySource{Key: src.Key, ETag: "00000000000000000000000000000000", Offset: 0, Length: 10}, []error{objstore.ErrPrecondition}},
		{"no such source", objstore.CopySource{Key: e.key("c/none"), ETag: src.ETag, Offset: 0, Length: 10}, []error{objstore.ErrNotFound}},
		// Stores answer 400 InvalidArgument or 416 here.
		{"beyond the end", objstore.CopySource{Key: src.Key, ETag: src.ETag, Offset: size - 5, Length: 10}, []error{objstore.ErrRange, objstore.ErrInvalid}},
		{"no condition", objstore.CopySource{Key: src.Key, Offset: 0, Length: 10}, []error{objstore.ErrInvalid}},
	} {
		_, err := e.d.CopyPart(e.ctx(), k, id, 1, c.src)
		e.wantKind(c.what, err, c.kinds...)
	}
	if err := e.d.Abort(e.ctx(), k, id); err != nil {
		e.Fatal(err)
	}
	_, err := e.d.CopyPart(e.ctx(), k, id, 1, objstore.CopySource{Key: src.Key, ETag: src.ETag, Offset: 0, Length: size})
	e.wantKind("a copy into no upload", err, objstore.ErrNotFound)
}

// copySmall: the Store never range-copies a source of MinCopy bytes or less; a
// store that copies it all the same must copy it right.
func copySmall(e *env) {
	if !e.canCopy() || e.caps.MinCopy == 0 {
		return
	}
	src := e.mustPut(e.key("c/small"), []byte("0123456789"))
	k := e.key("c/dst")
	id := e.upload(k, nil)
	p, err := e.d.CopyPart(e.ctx(), k, id, 1, objstore.CopySource{Key: src.Key, ETag: src.ETag, Offset: 2, Length: 3})
	if err != nil {
		e.wantKind("range copy of a small source", err, objstore.ErrInvalid)
		return
	}
	if _, err := e.d.Complete(e.ctx(), k, id, []objstore.Part{p}, once); err != nil {
		e.Fatal(err)
	}
	if got, _, err := e.read(k, objstore.Whole, ""); err != nil || !bytes.Equal(got, []byte("234")) {
		e.Errorf("copied %q, %v", got, err)
	}
}

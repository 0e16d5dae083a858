package storetest

import (
	"bytes"
	"fmt"

	"github.com/strandline/strandline/objstore"
)

func getCases() []testCase {
	return []testCase{
		{"Get/Ranges", ranges},
		{"Get/BeyondEnd", beyondEnd},
		{"Get/EmptyObject", emptyRanges},
		{"Get/IfMatch", getIfMatch},
		{"Get/Missing", missing},
		{"Get/Large", large},
		{"Get/CloseEarly", closeEarly},
	}
}

func ranges(e *env) {
	body := noise(1, 1000)
	k := e.key("obj")
	etag := e.mustPut(k, body).ETag
	for _, c := range []struct {
		r        objstore.Range
		from, to int
	}{
		{objstore.Range{}, 0, 1000},
		{objstore.Whole, 0, 1000},
		{objstore.Range{Offset: 0, Length: 1}, 0, 1},
		{objstore.Range{Offset: 0, Length: 1000}, 0, 1000},
		{objstore.Range{Offset: 10, Length: 20}, 10, 30},
		{objstore.Range{Offset: 999, Length: 1}, 999, 1000},
		{objstore.Range{Offset: 400, Length: -1}, 400, 1000},
		{objstore.Range{Offset: 990, Length: 50}, 990, 1000}, // cut at the end
		{objstore.Range{Offset: 0, Length: 5000}, 0, 1000},
		{objstore.Suffix(1), 999, 1000},
		{objstore.Suffix(100), 900, 1000},
		{objstore.Suffix(1000), 0, 1000},
		{objstore.Suffix(5000), 0, 1000}, // longer than the object
		{objstore.Range{Offset: -3, Length: 1}, 997, 1000},
	} {
		got, info, err := e.read(k, c.r, "")
		if err != nil {
			e.Fatalf("%+v: %v", c.r, err)
		}
		if !bytes.Equal(got, body[c.from:c.to]) {
			e.Errorf("%+v: got %d bytes, want [%d,%d)", c.r, len(got), c.from, c.to)
		}
		if info.Size != 1000 || info.ETag != etag {
			e.Errorf("%+v: info %+v, want the whole object's size and ETag %s", c.r, info, etag)
		}
	}
}

func beyondEnd(e *env) {
	k := e.key("obj")
	e.mustPut(k, noise(2, 100))
	for _, r := range []objstore.Range{{Offset: 100, Length: 1}, {Offset: 100, Length: -1}, {Offset: 5000, Length: 10}} {
		_, _, err := e.read(k, r, "")
		e.wantKind(fmt.Sprintf("%+v of 100 bytes", r), err, objstore.ErrRange)
	}
}

// emptyRanges: AWS answers 416 to a suffix of an empty object, others 200 or 206.
func emptyRanges(e *env) {
	k := e.key("empty")
	e.mustPut(k, nil)
	got, info, err := e.read(k, objstore.Suffix(10), "")
	if err != nil {
		e.wantKind("suffix of an empty object", err, objstore.ErrRange)
	} else if len(got) != 0 || info.Size != 0 {
		e.Errorf("suffix of an empty object: %d bytes, size %d", len(got), info.Size)
	}
	_, _, err = e.read(k, objstore.Range{Offset: 0, Length: 1}, "")
	e.wantKind("first byte of an empty object", err, objstore.ErrRange)
}

func getIfMatch(e *env) {
	k := e.rw("obj")
	one := e.mustPut(k, []byte("one"))
	if b, _, err := e.read(k, objstore.Range{Offset: 1, Length: 2}, one.ETag); err != nil || string(b) != "ne" {
		e.Fatalf("get under its ETag: %q, %v", b, err)
	}
	if _, err := e.put(k, []byte("two"), objstore.PutOptions{IfMatch: one.ETag}); err != nil {
		e.Fatal(err)
	}
	_, _, err := e.read(k, objstore.Whole, one.ETag)
	e.wantKind("get under a stale ETag", err, objstore.ErrPrecondition)
}

func missing(e *env) {
	k := e.key("nothing")
	_, _, err := e.read(k, objstore.Whole, "")
	e.wantKind("get", err, objstore.ErrNotFound)
	_, _, err = e.read(k, objstore.Suffix(5), "")
	e.wantKind("suffix get", err, objstore.ErrNotFound)
	_, err = e.d.Head(e.ctx(), k)
	e.wantKind("head", err, objstore.ErrNotFound)
}

func large(e *env) {
	body := noise(3, 3<<20+17)
	k := e.key("large")
	e.mustPut(k, body)
	e.holds(k, body)
	got, _, err := e.read(k, objstore.Range{Offset: 1<<20 - 5, Length: 1 << 20}, "")
	if err != nil || !bytes.Equal(got, body[1<<20-5:2<<20-5]) {
		e.Fatalf("range: %d bytes, %v", len(got), err)
	}
}

func closeEarly(e *env) {
	k := e.key("obj")
	e.mustPut(k, noise(4, 1<<20))
	for range 4 {
		body, _, err := e.d.Get(e.ctx(), k, objstore.Whole, "")
		if err != nil {
			e.Fatal(err)
		}
		if _, err := body.Read(make([]byte, 10)); err != nil {
			e.Fatal(err)
		}
		if err := body.Close(); err != nil {
			e.Fatalf("close before the end: %v", err)
		}
	}
	e.holds(k, noise(4, 1<<20))
}

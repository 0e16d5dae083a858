package faultproxy

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/strandline/strandline/objstore"
)

func TestCallOf(t *testing.T) {
	for _, c := range []struct {
		method, target string
		copied         bool
		want           Call
	}{
		{"PUT", "/b/a/k?x-id=PutObject", false, Call{Op: objstore.OpPut, Key: "a/k"}},
		{"PUT", "/b/k%20%2B?x-id=PutObject", false, Call{Op: objstore.OpPut, Key: "k +"}},
		{"PUT", "/b/k?partNumber=1&uploadId=u", false, Call{Op: objstore.OpUploadPart, Key: "k", Part: "1"}},
		{"PUT", "/b/k?partNumber=1&uploadId=u", true, Call{Op: objstore.OpCopyPart, Key: "k", Part: "1"}},
		{"PUT", "/b/k", true, Call{Key: "k"}},
		{"PUT", "/b/", false, Call{}},
		{"GET", "/b/k", false, Call{Op: objstore.OpGet, Key: "k"}},
		{"GET", "/b/k?uploadId=u", false, Call{Key: "k"}},
		{"GET", "/b/?list-type=2&prefix=p", false, Call{Op: objstore.OpList}},
		{"GET", "/b?uploads", false, Call{Op: objstore.OpListUploads}},
		{"GET", "/b?location", false, Call{}},
		{"HEAD", "/b/k", false, Call{Op: objstore.OpHead, Key: "k"}},
		{"HEAD", "/b", false, Call{}},
		{"POST", "/b/k?uploads=", false, Call{Op: objstore.OpCreateUpload, Key: "k"}},
		{"POST", "/b/k?uploadId=u", false, Call{Op: objstore.OpComplete, Key: "k"}},
		{"POST", "/b?delete=", false, Call{Op: objstore.OpDelete}},
		{"DELETE", "/b/k", false, Call{Op: objstore.OpDelete, Key: "k"}},
		{"DELETE", "/b/k?uploadId=u", false, Call{Op: objstore.OpAbort, Key: "k"}},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		if c.copied {
			r.Header.Set("X-Amz-Copy-Source", "/b/s")
		}
		c.want.Method, c.want.Bucket = c.method, "b"
		if got := callOf(r); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.method, c.target, got, c.want)
		}
	}
}

func TestRules(t *testing.T) {
	struck := func(r *Rule, calls ...Call) string {
		var s []byte
		for _, c := range calls {
			hit := byte('.')
			if r.matches(c) {
				r.hits++
				hit = 'x'
			}
			s = append(s, hit)
		}
		return string(s)
	}
	put, get := Call{Op: objstore.OpPut, Method: http.MethodPut, Key: "a"}, Call{Op: objstore.OpGet, Method: http.MethodGet, Key: "b"}
	six := []Call{put, get, put, put, get, put}
	puts := []objstore.Op{objstore.OpPut}
	for want, r := range map[string]*Rule{
		"xxxxxx": {},
		"x.xx.x": {Ops: puts},
		".x..x.": {Method: http.MethodGet},
		"x.xx..": {Key: func(k string) bool { return k == "a" }, Times: 3},
		"...x..": {Ops: puts, When: Nth(3)},
		"x.x...": {Ops: puts, When: First(2)},
		"..x..x": {Ops: puts, When: EveryNth(2)},
	} {
		if got := struck(r, six...); got != want {
			t.Errorf("struck %s, want %s", got, want)
		}
	}
	many := make([]Call, 700)
	one, same, other := struck(&Rule{When: Share(1, 7)}, many...), struck(&Rule{When: Share(1, 7)}, many...), struck(&Rule{When: Share(2, 7)}, many...)
	hits := 0
	for i := range one {
		if one[i] == 'x' {
			hits++
		}
	}
	if one != same || one == other || hits < 60 || hits > 140 {
		t.Errorf("a share of one in 7 of 700 struck %d; equal seeds agree: %t; others: %t", hits, one == same, one == other)
	}
}

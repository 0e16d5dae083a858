//go:build unix

package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// object serves bytes as a store does, with what a test wants otherwise in h and status.
func object(body string, status int, h map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"e-object"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT")
		w.Header().Set("X-Amz-Meta-Strandline-Nonce", "n1")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		for name, value := range h {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, body)
		}
	}
}

// bodies: a read returns just the bytes asked for, or an error.
func bodies(t *testing.T, open Opener) {
	whole, some, tail := objstore.Whole, objstore.Range{Offset: 3, Length: 4}, objstore.Suffix(4)
	for name, c := range map[string]struct {
		r      objstore.Range
		answer http.HandlerFunc
		want   error
		data   string
	}{
		"whole":                        {whole, object("0123456789", 200, nil), nil, "0123456789"},
		"range":                        {some, object("3456", 206, map[string]string{"Content-Range": "bytes 3-6/10"}), nil, "3456"},
		"cut at its end":               {objstore.Range{Offset: 8, Length: 5}, object("89", 206, map[string]string{"Content-Range": "bytes 8-9/10"}), nil, "89"},
		"suffix":                       {tail, object("6789", 206, map[string]string{"Content-Range": "bytes 6-9/10"}), nil, "6789"},
		"short object":                 {objstore.Suffix(99), object("01", 206, map[string]string{"Content-Range": "bytes 0-1/2"}), nil, "01"},
		"suffix of nothing, MinIO":     {tail, object("", 206, map[string]string{"Content-Range": "bytes 0--1/0"}), nil, ""},
		"suffix of nothing, versitygw": {tail, object("", 200, nil), nil, ""},
		"beyond":                       {some, refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange"), objstore.ErrRange, ""},
		"range ignored":                {some, object("0123456789", 200, nil), objstore.ErrUnavailable, ""},
		"another range":                {some, object("4567", 206, map[string]string{"Content-Range": "bytes 4-7/10"}), objstore.ErrUnavailable, ""},
		"short range":                  {some, object("345", 206, map[string]string{"Content-Range": "bytes 3-5/10"}), objstore.ErrUnavailable, ""},
		"bad range":                    {some, object("3456", 206, map[string]string{"Content-Range": "bytes 3-6/*"}), objstore.ErrUnavailable, ""},
		"cut":                          {whole, object("01234", 200, map[string]string{"Content-Length": "10"}), objstore.ErrShort, ""},
		"cut at nothing":               {whole, object("", 200, map[string]string{"Content-Length": "10"}), objstore.ErrShort, ""},
		"cut range":                    {some, object("34", 206, map[string]string{"Content-Range": "bytes 3-6/10", "Content-Length": "4"}), objstore.ErrShort, ""},
		"absent":                       {whole, refuse(http.StatusNotFound, "NoSuchKey"), objstore.ErrNotFound, ""},
		"changed":                      {whole, refuse(http.StatusPreconditionFailed, "PreconditionFailed"), objstore.ErrPrecondition, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, open, c.answer)
			data, err := readAll(context.Background(), s.driver, c.r)
			check(t, err, c.want)
			if err == nil && string(data) != c.data {
				t.Errorf("read %q, want %q", data, c.data)
			}
		})
	}
	t.Run("suffix of nothing, AWS", func(t *testing.T) {
		s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				object("", 200, nil)(w, r)
				return
			}
			refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange")(w, r)
		})
		body, info, err := s.driver.Get(context.Background(), key, tail, "e-object")
		check(t, err, nil)
		data, err := io.ReadAll(body)
		if err != nil || len(data) != 0 || info.Size != 0 || info.ETag != "e-object" || info.Meta["strandline-nonce"] != "n1" {
			t.Errorf("%q %+v %v", data, info, err)
		}
		_, _, err = s.driver.Get(context.Background(), key, tail, "e-other")
		check(t, err, objstore.ErrPrecondition)
	})
}

// heads: the answer to a HEAD does not say what is missing, so it is asked again.
func heads(t *testing.T, open Opener) {
	byGet := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			answer(w, r)
		}
	}
	for name, c := range map[string]struct {
		answer   http.HandlerFunc
		want     error
		requests int
	}{
		"there":  {object("0123456789", 200, nil), nil, 1},
		"absent": {byGet(refuse(http.StatusNotFound, "NoSuchKey")), objstore.ErrNotFound, 2},
		"absent, says MinIO": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Minio-Error-Code", "NoSuchKey")
			w.WriteHeader(404)
		}, objstore.ErrNotFound, 1},
		"no bucket":          {byGet(refuse(http.StatusNotFound, "NoSuchBucket")), objstore.ErrInvalid, 2},
		"unknown access key": {byGet(refuse(http.StatusNotFound, "XAdminUserNotFound")), objstore.ErrDenied, 2},
		"proxy":              {byGet(plain(http.StatusNotFound, "text/html", loginPage)), objstore.ErrUnavailable, 2},
		"created meanwhile":  {byGet(object("0", 206, map[string]string{"Content-Range": "bytes 0-0/10"})), nil, 2},
		"empty meanwhile":    {byGet(refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange")), objstore.ErrUnavailable, 2},
		"denied":             {plain(http.StatusForbidden, "", ""), objstore.ErrDenied, 1},
		"throttled":          {plain(http.StatusServiceUnavailable, "", ""), objstore.ErrUnavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, open, c.answer)
			info, err := s.driver.Head(context.Background(), key)
			check(t, err, c.want)
			if err == nil && (info.Size != 10 || info.ETag != "e-object" || info.Key != key || info.Meta["strandline-nonce"] != "n1" || info.Modified.Year() != 2026) {
				t.Errorf("%+v", info)
			}
			if s.count() != c.requests {
				t.Errorf("%d requests, want %d", s.count(), c.requests)
			}
		})
	}
}

// listings: pages follow each other to the end, empty ones too; a page that is cut
// without saying where is refused.
func listings(t *testing.T, open Opener) {
	entry := func(k string) string {
		return "<Contents><Key>pre%2Ffix%2F" + k + "</Key><Size>7</Size><ETag>&quot;e&quot;</ETag><LastModified>2026-11-30T00:00:00.000Z</LastModified></Contents>"
	}
	page := func(inner string) string {
		return "<ListBucketResult><Name>" + bucket + "</Name><EncodingType>url</EncodingType>" + inner + "</ListBucketResult>"
	}
	t.Run("pages", func(t *testing.T) {
		s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			switch {
			case q.Get("continuation-token") == "T1" || q.Get("start-after") == "pre/fix/a/2~+":
				xmlAnswer(w, 200, page(entry("a%2F3")+"<IsTruncated>false</IsTruncated>"))
			case q.Get("start-after") == "pre/fix/a/0":
				xmlAnswer(w, 200, page(entry("a%2F1")+entry("a%2F2%7E%2B")+"<IsTruncated>true</IsTruncated><NextContinuationToken>T1</NextContinuationToken>"))
			default:
				refuse(400, "InvalidArgument")(w, r)
			}
		})
		var keys []string
		token := ""
		for range 3 {
			p, err := s.driver.List(context.Background(), "a/", "a/0", token, 2)
			check(t, err, nil)
			for _, o := range p.Objects {
				keys = append(keys, o.Key)
				if o.Size != 7 || o.ETag != "e" || o.Modified.Year() != 2026 {
					t.Errorf("%+v", o)
				}
			}
			if token = p.Next; token == "" {
				break
			}
		}
		if fmt.Sprint(keys) != "[a/1 a/2~+ a/3]" || s.count() != 2 {
			t.Errorf("%v in %d requests", keys, s.count())
		}
		if q := s.request(t, 0).URL.Query(); q.Get("prefix") != "pre/fix/a/" || q.Get("max-keys") != "2" || q.Get("delimiter") != "" {
			t.Errorf("asked %v", q)
		}
	})
	for name, inner := range map[string]string{
		"cut without a token": entry("a%2F1") + "<IsTruncated>true</IsTruncated>",
		"bad escape":          entry("a%2"),
		"bad size":            "<Contents><Key>pre%2Ffix%2Fa</Key><Size>many</Size></Contents>",
		"not closed":          "<Contents>",
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, open, func(w http.ResponseWriter, _ *http.Request) { xmlAnswer(w, 200, page(inner)) })
			_, err := s.driver.List(context.Background(), "", "", "", 10)
			check(t, err, objstore.ErrUnavailable)
		})
	}
	t.Run("uploads that do not move on", func(t *testing.T) {
		s := newScript(t, open, func(w http.ResponseWriter, _ *http.Request) {
			xmlAnswer(w, 200, "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker></ListMultipartUploadsResult>")
		})
		_, err := s.driver.ListUploads(context.Background(), "")
		check(t, err, objstore.ErrUnavailable)
		if s.count() != 2 {
			t.Errorf("%d requests", s.count())
		}
	})
}

// arguments that cannot be right are refused without a request.
func arguments(t *testing.T, open Opener) {
	ctx := context.Background()
	s := newScript(t, open, refuse(500, "InternalError"))
	d := s.driver
	five := func() io.ReadSeeker { return bytes.NewReader([]byte("hello")) }
	long := string(bytes.Repeat([]byte("k"), 1024)) // too long with the prefix
	source := objstore.CopySource{Key: "s", ETag: "e", Offset: 0, Length: 5}
	noETag, noBytes := source, source
	noETag.ETag, noBytes.Length = "", 0
	errs := map[string]error{}
	add := func(name string, err error) { errs[name] = err }
	put := func(key string, size int64, opts objstore.PutOptions) error {
		_, err := d.Put(ctx, key, five(), size, opts)
		return err
	}
	add("no key", put("", 5, objstore.PutOptions{}))
	add("long key", put(long, 5, objstore.PutOptions{}))
	add("wrong size", put("k", 6, objstore.PutOptions{}))
	add("two conditions", put("k", 5, objstore.PutOptions{IfNoneMatch: true, IfMatch: "e"}))
	add("any ETag", put("k", 5, objstore.PutOptions{IfMatch: "*"}))
	add("meta name", put("k", 5, objstore.PutOptions{Meta: map[string]string{"two words": "x"}}))
	add("meta value", put("k", 5, objstore.PutOptions{Meta: map[string]string{"n": "é"}}))
	_, err := d.UploadPart(ctx, "k", "id", 0, five(), 5)
	add("part 0", err)
	_, err = d.UploadPart(ctx, "k", "id", 10_001, five(), 5)
	add("part 10,001", err)
	_, err = d.UploadPart(ctx, "k", "", 1, five(), 5)
	add("no upload id", err)
	_, err = d.CopyPart(ctx, "k", "id", 1, noETag)
	add("copy without a condition", err)
	_, err = d.CopyPart(ctx, "k", "id", 1, noBytes)
	add("copy of nothing", err)
	_, err = d.Complete(ctx, "k", "id", nil, objstore.PutOptions{})
	add("no parts", err)
	_, err = d.Complete(ctx, "k", "id", []objstore.Part{twoParts[1], twoParts[0]}, objstore.PutOptions{})
	add("parts out of order", err)
	_, err = d.Delete(ctx, make([]string, 1001))
	add("1,001 keys", err)
	for name, err := range errs {
		if !errors.Is(err, objstore.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if results, err := d.Delete(ctx, nil); err != nil || len(results) != 0 {
		t.Errorf("deleting nothing: %v %v", results, err)
	}
	if s.count() != 0 {
		t.Errorf("%d requests", s.count())
	}
}

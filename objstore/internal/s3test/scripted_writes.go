//go:build unix

package s3test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// conditions: what a refused condition means depends on the condition.
func conditions(t *testing.T, open Opener) {
	ctx := context.Background()
	once, replace := objstore.PutOptions{IfNoneMatch: true}, objstore.PutOptions{IfMatch: "e0"}
	put := func(d objstore.Driver, o objstore.PutOptions) error {
		_, err := d.Put(ctx, key, bytes.NewReader(nil), 0, o)
		return err
	}
	complete := func(d objstore.Driver, o objstore.PutOptions) error {
		_, err := d.Complete(ctx, key, "id", twoParts, o)
		return err
	}
	for name, c := range map[string]struct {
		do     func(objstore.Driver, objstore.PutOptions) error
		opts   objstore.PutOptions
		answer http.HandlerFunc
		want   error
	}{
		"put once":              {put, once, refuse(412, "PreconditionFailed"), objstore.ErrExists},
		"put once, bare":        {put, once, plain(412, "", ""), objstore.ErrExists},
		"put once, 409":         {put, once, refuse(409, "ConditionalRequestConflict"), objstore.ErrConflict}, // K32
		"put once, bare 409":    {put, once, plain(409, "", ""), objstore.ErrConflict},
		"replace":               {put, replace, refuse(412, "PreconditionFailed"), objstore.ErrPrecondition},
		"replace absent":        {put, replace, refuse(404, "NoSuchKey"), objstore.ErrPrecondition},
		"complete once":         {complete, once, refuse(412, "PreconditionFailed"), objstore.ErrExists},
		"complete replace":      {complete, replace, refuse(412, "PreconditionFailed"), objstore.ErrPrecondition},
		"complete absent":       {complete, replace, refuse(404, "NoSuchKey"), objstore.ErrPrecondition},
		"complete gone":         {complete, once, refuse(404, "NoSuchUpload"), objstore.ErrNotFound},
		"complete 409":          {complete, once, refuse(409, "ConditionalRequestConflict"), objstore.ErrConflict},
		"complete part missing": {complete, once, refuse(400, "InvalidPart"), objstore.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, open, c.answer)
			check(t, c.do(s.driver, c.opts), c.want)
			if s.count() != 1 {
				t.Errorf("%d requests for one attempt", s.count())
			}
		})
	}
	t.Run("abort gone", func(t *testing.T) {
		s := newScript(t, open, refuse(404, "NoSuchUpload"))
		check(t, s.driver.Abort(ctx, key, "id"), nil)
	})
	t.Run("copy of a changed source", func(t *testing.T) {
		s := newScript(t, open, refuse(412, "PreconditionFailed"))
		_, err := s.driver.CopyPart(ctx, key, "id", 1, objstore.CopySource{Key: "s", ETag: "e", Length: 5})
		check(t, err, objstore.ErrPrecondition)
	})
	t.Run("copy of an absent source", func(t *testing.T) {
		s := newScript(t, open, refuse(404, "NoSuchKey"))
		_, err := s.driver.CopyPart(ctx, key, "id", 1, objstore.CopySource{Key: "s", ETag: "e", Length: 5})
		check(t, err, objstore.ErrNotFound)
	})
}

// earlyRefusal: a large create-once write that is refused before its body is read ends
// as "exists", every time, and its body stays here.
func earlyRefusal(t *testing.T, open Opener) {
	body := bytes.Repeat([]byte("x"), 8<<20)
	s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "100-continue" {
			t.Error("the body was sent without waiting for the store")
		}
		w.Header().Set("Connection", "close")
		xmlAnswer(w, http.StatusPreconditionFailed, "<Error><Code>PreconditionFailed</Code></Error>")
	})
	for range 8 {
		_, err := s.driver.Put(context.Background(), key, bytes.NewReader(body), int64(len(body)), objstore.PutOptions{IfNoneMatch: true})
		check(t, err, objstore.ErrExists)
	}
	if s.count() != 8 {
		t.Errorf("%d requests for 8 puts", s.count())
	}
}

// requests: one request a call, with the condition where it counts, a checksum that is
// right, and nothing that a store may refuse.
func requests(t *testing.T, open Opener) {
	ctx := context.Background()
	body := bytes.Repeat([]byte("strandline"), 16<<20/10)
	var got []byte
	s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		w.Header().Set("ETag", `"e1"`)
		switch q := r.URL.Query(); {
		case r.Method == http.MethodPost && q.Has("uploads"):
			xmlAnswer(w, 200, "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>U1</UploadId></InitiateMultipartUploadResult>")
		case r.Method == http.MethodPost && q.Has("delete"):
			xmlAnswer(w, 200, "<DeleteResult><Deleted><Key>pre/fix/a/key</Key></Deleted></DeleteResult>")
		case r.Method == http.MethodPost:
			xmlAnswer(w, 200, "<CompleteMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><ETag>\"done-2\"</ETag></CompleteMultipartUploadResult>")
		case r.Header.Get("X-Amz-Copy-Source") != "":
			xmlAnswer(w, 200, "<CopyPartResult><ETag>\"c1\"</ETag><LastModified>2026-11-30T00:00:00Z</LastModified></CopyPartResult>")
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	d := s.driver
	last := func() *http.Request { return s.request(t, s.count()-1) }
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))))
	expect := func(what string, r *http.Request, want map[string]string) {
		t.Helper()
		for name, value := range want {
			if r.Header.Get(name) != value {
				t.Errorf("%s: %s is %q, want %q", what, name, r.Header.Get(name), value)
			}
		}
		if r.Header.Get("Content-Encoding") != "" || r.Header.Get("X-Amz-Trailer") != "" || len(r.TransferEncoding) != 0 {
			t.Errorf("%s: the body is wrapped: %v", what, r.Header)
		}
		if r.URL.EscapedPath() != "/"+bucket+"/pre/fix/a/key" {
			t.Errorf("%s: path %s", what, r.URL.EscapedPath())
		}
	}

	info, err := d.Put(ctx, key, bytes.NewReader(body), int64(len(body)), objstore.PutOptions{IfNoneMatch: true, Meta: map[string]string{"strandline-nonce": "n1"}})
	check(t, err, nil)
	if info.ETag != "e1" || info.Size != int64(len(body)) || info.Key != key || s.count() != 1 || !bytes.Equal(got, body) {
		t.Errorf("%+v in %d requests", info, s.count())
	}
	expect("put", last(), map[string]string{
		"If-None-Match": "*", "If-Match": "", "X-Amz-Checksum-Crc32c": sum, "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD",
		"X-Amz-Meta-Strandline-Nonce": "n1", "Content-Type": "application/octet-stream",
	})
	if last().ContentLength != int64(len(body)) {
		t.Errorf("put: length %d", last().ContentLength)
	}
	_, err = d.Put(ctx, key, bytes.NewReader(nil), 0, objstore.PutOptions{IfMatch: "e0"})
	check(t, err, nil)
	expect("replace", last(), map[string]string{"If-None-Match": "", "If-Match": `"e0"`, "X-Amz-Checksum-Crc32c": "AAAAAA=="})

	id, err := d.CreateUpload(ctx, key, map[string]string{"strandline-nonce": "n1"})
	if check(t, err, nil); id != "U1" {
		t.Errorf("upload %q", id)
	}
	expect("create", last(), map[string]string{
		"If-None-Match": "", "X-Amz-Checksum-Algorithm": "", "X-Amz-Checksum-Type": "", "X-Amz-Sdk-Checksum-Algorithm": "", "X-Amz-Meta-Strandline-Nonce": "n1",
	})
	part, err := d.UploadPart(ctx, key, id, 1, bytes.NewReader(body), int64(len(body)))
	if check(t, err, nil); part != (objstore.Part{Number: 1, ETag: "e1", Size: int64(len(body))}) || !bytes.Equal(got, body) {
		t.Errorf("%+v", part)
	}
	expect("part", last(), map[string]string{"X-Amz-Checksum-Crc32c": sum, "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"})
	part, err = d.CopyPart(ctx, key, id, 2, objstore.CopySource{Key: "a/so~u=rce", ETag: "e0", Offset: 7, Length: 100})
	if check(t, err, nil); part != (objstore.Part{Number: 2, ETag: "c1", Size: 100}) {
		t.Errorf("%+v", part)
	}
	expect("copy", last(), map[string]string{"X-Amz-Copy-Source-Range": "bytes=7-106", "X-Amz-Copy-Source-If-Match": `"e0"`})
	if src := last().Header.Get("X-Amz-Copy-Source"); strings.Trim(src, "/") != bucket+"/pre/fix/a/so~u%3Drce" {
		t.Errorf("copy source %q", src)
	}
	info, err = d.Complete(ctx, key, id, twoParts, objstore.PutOptions{IfNoneMatch: true})
	if check(t, err, nil); info.ETag != "done-2" || info.Size != 5<<20+1 || info.Key != key {
		t.Errorf("%+v", info)
	}
	expect("complete", last(), map[string]string{"If-None-Match": "*"})
	check(t, d.Abort(ctx, key, id), nil)
	check(t, deleteOne(ctx, d), nil)
	if s.count() != 8 {
		t.Errorf("%d requests for 8 calls", s.count())
	}
	if !strings.Contains(string(got), "<Key>pre/fix/a/key</Key>") || strings.Contains(string(got), "<Quiet>true") {
		t.Errorf("deleted by %s", got)
	}
	if fmt.Sprint(last().Header["Content-Md5"], last().Header["X-Amz-Checksum-Crc32"]) == "[] []" {
		t.Errorf("a bulk delete without a checksum: %v", last().Header)
	}
}

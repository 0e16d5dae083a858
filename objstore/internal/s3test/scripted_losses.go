//go:build unix

package s3test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// losses are the ways to lose data without a word that clients and stores were found
// to have, each by what happens. Those that have a test of their own above are not
// here again: an <Error> inside a 200 (ErrorIn200), empty answers and login pages
// (NotAnAnswer), keys that fail inside a bulk delete (K35), a HEAD's bare 404 (Head).
func losses(t *testing.T, open Opener) {
	t.Run("ConditionAbove16MiB", func(t *testing.T) { largeCondition(t, open) })
	t.Run("SuccessWithoutETag", func(t *testing.T) { withoutETag(t, open) })
	t.Run("DeleteThatReportsNothing", func(t *testing.T) { silentDelete(t, open) })
	t.Run("LoginPageThatSaysItIsXML", func(t *testing.T) { disguisedPage(t, open) })
	t.Run("NoConditionalDeleteNoAppend", func(t *testing.T) { neverSent(t, open) })
	t.Run("KeysThatAliasNeverLeave", func(t *testing.T) { aliasingKeys(t, open) })
	t.Run("PreconditionFailedIn200", func(t *testing.T) { lostIn200(t, open) })
	t.Run("EarlyRefusalAsBrokenConnection", func(t *testing.T) { brokenRefusal(t, open) })
	t.Run("ConflictOnPutAndComplete", func(t *testing.T) { conflicted(t, open) })
	t.Run("EmptyPages", func(t *testing.T) { emptyPages(t, open) })
	t.Run("ChecksumOnPartRefused", func(t *testing.T) { refusedSum(t, open) })
	t.Run("CutBody", func(t *testing.T) { cutBody(t, open) })
}

// largeCondition: above 16 MiB minio-go's PutObject sends the condition when an upload
// begins, where nobody looks at it, and not when it completes.
func largeCondition(t *testing.T, open Opener) {
	body := make([]byte, 17<<20)
	s := newScript(t, open, stands(refuse(412, "PreconditionFailed"), "another's"))
	_, err := mustStore(t, s.driver).PutOnce(context.Background(), key, body, nil)
	check(t, err, objstore.ErrExists)
	if r := s.request(t, 0); r.Method != http.MethodPut || r.ContentLength != int64(len(body)) || r.Header.Get("If-None-Match") != "*" {
		t.Errorf("%s of %d bytes under %q", r.Method, r.ContentLength, r.Header.Get("If-None-Match"))
	}

	// The same as an upload: the condition goes with the request that publishes.
	s = newScript(t, open, stands(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Has("uploads"):
			xmlAnswer(w, 200, "<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>")
		case r.Method == http.MethodPost:
			refuse(412, "PreconditionFailed")(w, r)
		case r.Method == http.MethodPut:
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"p"`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}, "another's"))
	w := mustStore(t, s.driver).NewWriter(context.Background(), key, objstore.UploadOptions{})
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	_, err = w.Commit()
	check(t, err, objstore.ErrExists)
	var completes, aborts int
	for i := range s.count() {
		switch r := s.request(t, i); {
		case r.Method == http.MethodPost && r.URL.Query().Has("uploadId"):
			completes++
			if r.Header.Get("If-None-Match") != "*" {
				t.Errorf("completed under %q", r.Header.Get("If-None-Match"))
			}
		case r.Method == http.MethodDelete:
			aborts++
		}
	}
	if completes != 1 || aborts != 2 {
		t.Errorf("%d completes and %d aborts, want 1 and 2", completes, aborts)
	}
}

// stands answers a HEAD as for an object of that writer, and everything else as told.
func stands(other http.HandlerFunc, nonce string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			object("theirs", 200, map[string]string{"X-Amz-Meta-Strandline-Nonce": nonce})(w, r)
			return
		}
		other(w, r)
	}
}

// withoutETag: an answer of success in the right form that lacks what proves it.
func withoutETag(t *testing.T, open Opener) {
	documents := map[string]string{
		"copy part":     "<CopyPartResult><LastModified>2026-11-30T00:00:00Z</LastModified></CopyPartResult>",
		"complete":      "<CompleteMultipartUploadResult><Bucket>b</Bucket><Key>k</Key></CompleteMultipartUploadResult>",
		"create upload": "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key></InitiateMultipartUploadResult>",
		"put":           "",
		"upload part":   "",
	}
	for _, c := range calls() {
		document, ok := documents[c.name]
		if !ok {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if document != "" {
					xmlAnswer(w, 200, document)
				}
			})
			check(t, c.do(context.Background(), s.driver), objstore.ErrAmbiguous)
		})
	}
}

// silentDelete: a bulk delete's 200 that names no key deletes nothing that we believe
// in. One that names another key as gone has lost an object, and says so loudly: MinIO
// does not hold the request's body against its checksum.
func silentDelete(t *testing.T, open Opener) {
	for name, inner := range map[string]string{
		"nothing": "",
		"no key":  "<Error><Key></Key><Code>AccessDenied</Code></Error><Deleted></Deleted>",
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, open, func(w http.ResponseWriter, _ *http.Request) {
				xmlAnswer(w, 200, "<DeleteResult>"+inner+"</DeleteResult>")
			})
			results, err := s.driver.Delete(context.Background(), []string{key, "a/other"})
			if err != nil || len(results) != 2 {
				t.Fatalf("%v, %v", results, err)
			}
			for _, r := range results {
				check(t, r.Err, objstore.ErrAmbiguous)
			}
		})
	}
	s := newScript(t, open, func(w http.ResponseWriter, _ *http.Request) {
		xmlAnswer(w, 200, "<DeleteResult><Deleted><Key>pre/fix/a/kez</Key></Deleted><Deleted><Key>pre/fix/a/other</Key></Deleted></DeleteResult>")
	})
	_, err := s.driver.Delete(context.Background(), []string{key, "a/other"})
	if check(t, err, objstore.ErrCorrupt); !strings.Contains(err.Error(), "a/kez") {
		t.Errorf("%v: want the lost key's name", err)
	}
}

// refusedSum: a store that takes no checksum on a part whose upload declared none gets
// an MD5, from the same part on.
func refusedSum(t *testing.T, open Opener) {
	s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Has("uploads"):
			xmlAnswer(w, 200, "<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>")
		case r.Method == http.MethodPost:
			xmlAnswer(w, 200, "<CompleteMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><ETag>\"e-2\"</ETag></CompleteMultipartUploadResult>")
		case r.Header.Get("X-Amz-Checksum-Crc32c") != "":
			_, _ = io.Copy(io.Discard, r.Body)
			xmlAnswer(w, 400, "<Error><Code>InvalidRequest</Code><Message>Checksum Type mismatch occurred, expected checksum Type: null, actual checksum Type: crc32c</Message></Error>")
		default:
			sum := md5.New()
			_, _ = io.Copy(sum, r.Body)
			if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); r.Header.Get("Content-Md5") != got {
				t.Errorf("Content-MD5 %q, the body's is %s", r.Header.Get("Content-Md5"), got)
			}
			w.Header().Set("ETag", `"p"`)
		}
	})
	st, err := objstore.New(s.driver, objstore.Config{PartSize: 5 << 20, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w := st.NewWriter(context.Background(), key, objstore.UploadOptions{})
		if _, err := w.Write(make([]byte, 6<<20)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count(); n != 1+3+1+4 {
		t.Errorf("%d requests: want one refused part in all", n)
	}
}

// disguisedPage: an HTML page is no listing and no answer to a delete, whatever its
// type says it is.
func disguisedPage(t *testing.T, open Opener) {
	for _, contentType := range []string{"application/xml", "text/plain", ""} {
		for _, c := range calls() {
			if !c.document {
				continue
			}
			t.Run(c.name+"/"+contentType, func(t *testing.T) {
				s := newScript(t, open, plain(200, contentType, "<html><body><h1>Sign in</h1></body></html>"))
				check(t, c.do(context.Background(), s.driver), byOutcome(c))
			})
		}
	}
}

// neverSent: MinIO deletes in spite of If-Match, and every server in spite of an ETag in
// a bulk delete; versitygw overwrites what an append is sent to. So neither is sent.
func neverSent(t *testing.T, open Opener) {
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			var body []byte
			s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
				body, _ = io.ReadAll(r.Body)
				refuse(400, "InvalidArgument")(w, r)
			})
			if err := c.do(context.Background(), s.driver); err == nil {
				t.Fatal("a refused call succeeded")
			}
			h := s.request(t, 0).Header
			if h.Get("X-Amz-Write-Offset-Bytes") != "" {
				t.Error("an append was sent")
			}
			if c.name == "delete" && (h.Get("If-Match") != "" || bytes.Contains(body, []byte("ETag"))) {
				t.Errorf("a conditional delete: %v, %s", h, body)
			}
		})
	}
}

// aliasingKeys: keys that one server refuses and another takes for a different key, or
// that XML cannot carry, do not reach the wire. (One key as a "/"-prefix of another is
// beyond what one call can see: package segment forms keys so that it cannot be.)
func aliasingKeys(t *testing.T, open Opener) {
	ctx := context.Background()
	s := newScript(t, open, refuse(500, "InternalError"))
	store := mustStore(t, s.driver)
	for _, k := range []string{"a//b", "a/./b", "a/../b", "/a", "a/", "a\x01b", "a\nb", "a b", "a%2Fb", "a+b", "é", "a\\b", ""} {
		_, err := store.PutOnce(ctx, k, nil, nil)
		check(t, err, objstore.ErrInvalid)
		_, err = store.PutIfMatch(ctx, k, nil, "e")
		check(t, err, objstore.ErrInvalid)
		_, err = store.Head(ctx, k)
		check(t, err, objstore.ErrInvalid)
		_, _, err = store.ReadRange(ctx, k, 0, 1)
		check(t, err, objstore.ErrInvalid)
		results, err := store.Delete(ctx, []string{k})
		check(t, errors.Join(err, results[0].Err), objstore.ErrInvalid)
		w := store.NewWriter(ctx, k, objstore.UploadOptions{})
		_, err = w.Write(make([]byte, 6<<20))
		check(t, err, objstore.ErrInvalid)
		check(t, store.NewWriter(ctx, "fine", objstore.UploadOptions{}).CopyRange(objstore.CopySource{Key: k, ETag: "e", Length: 9}), objstore.ErrInvalid)
		check(t, store.Abort(ctx, k, "id"), objstore.ErrInvalid)
	}
	if s.count() != 0 {
		t.Errorf("%d requests for keys that no store may see", s.count())
	}
}

// publishes is a small server of one upload: what it says to the completing request or
// to a PUT is the test's, and so is whose object then stands.
func publishes(answer http.HandlerFunc, nonce string) http.HandlerFunc {
	return stands(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch q := r.URL.Query(); {
		case q.Has("uploads"):
			xmlAnswer(w, 200, "<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>")
		case q.Has("partNumber"):
			w.Header().Set("ETag", `"p"`)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		default:
			answer(w, r)
		}
	}, nonce)
}

// named is a Store whose writes are all named n-mine.
func named(t *testing.T, d objstore.Driver) *objstore.Store {
	t.Helper()
	s, err := objstore.New(d, objstore.Config{PartSize: 5 << 20, Nonce: func() string { return "n-mine" }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// commit writes an object of two parts.
func commit(s *objstore.Store) error {
	w := s.NewWriter(context.Background(), key, objstore.UploadOptions{})
	if _, err := w.Write(make([]byte, 5<<20+1)); err != nil {
		return errors.Join(err, w.Abort())
	}
	_, err := w.Commit()
	return err
}

// lostIn200: AWS begins its 200 to a complete before it finds that the condition does
// not hold. What stands decides: it may be the answer to a repeat of an own success.
func lostIn200(t *testing.T, open Opener) {
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, "   \n<Error><Code>PreconditionFailed</Code><Condition>If-None-Match</Condition></Error>")
	}
	for nonce, want := range map[string]error{"n-other": objstore.ErrExists, "n-mine": nil} {
		s := newScript(t, open, publishes(answer, nonce))
		check(t, commit(named(t, s.driver)), want)
	}
}

// brokenRefusal: the store refuses a large body unread and closes the connection, and
// the 412 is lost with it: to the client it is a broken connection.
func brokenRefusal(t *testing.T, open Opener) {
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for nonce, want := range map[string]error{"n-other": objstore.ErrExists, "n-mine": nil} {
		s := newScript(t, open, stands(cut, nonce))
		_, err := named(t, s.driver).PutOnce(context.Background(), key, make([]byte, 8<<20), nil)
		check(t, err, want)
		if s.count() != 2 {
			t.Errorf("%d requests, want the PUT and its read-back", s.count())
		}
		s = newScript(t, open, publishes(cut, nonce))
		check(t, commit(named(t, s.driver)), want)
	}
}

// conflicted: 409 says nothing about the key. A PUT is made again; a complete is not,
// its upload is aborted, and the caller begins anew.
func conflicted(t *testing.T, open Opener) {
	puts := 0
	s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
		if puts++; puts <= 2 {
			refuse(409, "ConditionalRequestConflict")(w, r)
			return
		}
		w.Header().Set("ETag", `"e1"`)
	})
	_, err := named(t, s.driver).PutOnce(context.Background(), key, []byte("x"), nil)
	check(t, err, nil)
	if s.count() != 3 {
		t.Errorf("%d puts, want 3", s.count())
	}
	s = newScript(t, open, publishes(refuse(409, "ConditionalRequestConflict"), "n-other"))
	check(t, commit(named(t, s.driver)), objstore.ErrConflict)
	var seen strings.Builder
	for i := range s.count() {
		if r := s.request(t, i); r.URL.Query().Has("uploadId") && r.Method != http.MethodPut {
			fmt.Fprint(&seen, r.Method, " ")
		}
	}
	if seen.String() != "POST DELETE DELETE " {
		t.Errorf("after a conflict: %s", seen.String())
	}
}

//go:build unix

package s3test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// emptyPages: pages without a key, in the middle and at the end (MinIO gives one after
// 10,000 keys), hide nothing and end nothing.
func emptyPages(t *testing.T, open Opener) {
	page := func(key, next string) string {
		inner := ""
		if key != "" {
			inner = "<Contents><Key>pre/fix/" + key + "</Key><Size>1</Size><ETag>\"e\"</ETag><LastModified>2026-11-30T00:00:00Z</LastModified></Contents>"
		}
		if next != "" {
			inner += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + next + "</NextContinuationToken>"
		}
		return "<ListBucketResult><Name>" + bucket + "</Name>" + inner + "</ListBucketResult>"
	}
	pages := map[string]string{ // by token, or by the key to start after
		"":            page("", "T1"),
		"T1":          page("a/1", "T2"),
		"T2":          page("", "T3"),
		"pre/fix/a/1": page("", "T3"),
		"T3":          page("", "T4"),
		"T4":          page("a/2", "T5"),
		"T5":          page("", ""),
		"pre/fix/a/2": page("", "T5"),
	}
	s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.Query().Get("continuation-token")
		if at == "" {
			at = r.URL.Query().Get("start-after")
		}
		answer, ok := pages[at]
		if !ok {
			refuse(400, "InvalidArgument")(w, r)
			return
		}
		xmlAnswer(w, 200, answer)
	})
	var got []string
	for info, err := range mustStore(t, s.driver).List(context.Background(), "a/", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if !slices.Equal(got, []string{"a/1", "a/2"}) {
		t.Errorf("listed %q", got)
	}
}

// cutBody: a body that ends early goes on where it ended, under the first answer's
// ETag, so that the two halves are of one object. Neither client library does so.
func cutBody(t *testing.T, open Opener) {
	const size, cut = 600_000, 270_001
	whole := make([]byte, size)
	for i := range whole {
		whole[i] = byte(i % 251)
	}
	s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
		var from, to int
		if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); n != 2 {
			from, to = 0, size-1
		}
		w.Header().Set("ETag", `"e-cut"`)
		w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT") // minio-go reads none without
		w.Header().Set("Content-Length", strconv.Itoa(to-from+1))
		if r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, size))
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = io.Copy(w, bytes.NewReader(whole[from:min(to+1, from+cut)]))
	})
	store := mustStore(t, s.driver)
	got, info, err := store.ReadAll(context.Background(), key, size)
	if err != nil || !bytes.Equal(got, whole) || info.Size != size || info.ETag != "e-cut" {
		t.Fatalf("%d bytes of %d: %v", len(got), info.Size, err)
	}
	wantRanges := []string{"", "bytes=270001-599999", "bytes=540002-599999"}
	if s.count() != len(wantRanges) {
		t.Fatalf("%d requests", s.count())
	}
	for i, want := range wantRanges {
		h := s.request(t, i).Header
		ifMatch := map[bool]string{true: "", false: `"e-cut"`}[i == 0]
		if h.Get("Range") != want || h.Get("If-Match") != ifMatch {
			t.Errorf("request %d: range %q under %q, want %q under %q", i, h.Get("Range"), h.Get("If-Match"), want, ifMatch)
		}
	}

	// Replaced between the two requests: no bytes of both.
	s = newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-Match") != "" {
			refuse(412, "PreconditionFailed")(w, r)
			return
		}
		object("0123", 200, map[string]string{"Content-Length": "10"})(w, r)
	})
	_, _, err = mustStore(t, s.driver).ReadAll(context.Background(), key, size)
	check(t, err, objstore.ErrShort)
}

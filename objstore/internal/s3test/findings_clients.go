//go:build unix

package s3test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
)

// cond is a request's conditions, without quotes: "*" or an ETag.
type cond struct{ none, match string }

// bare is a client library with nothing of ours around it but one attempt a call.
type bare interface {
	name() string
	put(key, body string, c cond) (etag, said string)
	get(key, ranges string, c cond) (body, said string)
	head(key string) (said string)
	list(prefix string, limit int) (keys []string, said string)
	deleteAll(keys ...string) (deleted int, said string)
	create(key string) (id string)
	part(key, id string, n int, body string) (etag, said string)
	copyPart(key, id string, n int, src, etag string, off, length int64) (got, said string)
	complete(key, id string, c cond, parts ...string) (etag, said string) // ETags of parts 1, 2 …
	abort(key, id string) (said string)
	uploads(prefix string) (n int)
	parts(key, id string) (said string)
}

func countsOf(counts map[string]int) string {
	var out []string
	for _, said := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[said], said))
	}
	return strings.Join(out, ", ")
}

type miniBare struct {
	*minio.Core
	bucket string
}

func miniClient(t testing.TB, to Target) miniBare { return miniBare{bareClient(t, to), to.Bucket} }

func (m miniBare) name() string { return "minio-go" }

func (c cond) options() minio.PutObjectOptions {
	var o minio.PutObjectOptions
	if c.none != "" {
		o.SetMatchETagExcept(c.none)
	}
	if c.match != "" {
		o.SetMatchETag(c.match)
	}
	return o
}

func (m miniBare) put(key, body string, c cond) (etag, said string) {
	got, err := m.PutObject(context.Background(), m.bucket, key, strings.NewReader(body), int64(len(body)), "", "", c.options())
	return got.ETag, saidOf(err)
}

func (m miniBare) get(key, ranges string, c cond) (body, said string) {
	var o minio.GetObjectOptions
	for name, value := range map[string]string{"Range": ranges, "If-Match": c.match, "If-None-Match": c.none} {
		if value != "" {
			o.Set(name, value)
		}
	}
	rc, _, h, err := m.GetObject(context.Background(), m.bucket, key, o)
	if err != nil {
		return "", saidOf(err)
	}
	got, err := io.ReadAll(rc)
	return withRange(string(got), h.Get("Content-Range")), saidOf(errors.Join(err, rc.Close()))
}

// withRange is a body with the range that the answer claims behind it.
func withRange(body, contentRange string) string {
	return strings.TrimSpace(body + " " + strings.TrimPrefix(contentRange, "bytes "))
}

func (m miniBare) head(key string) string {
	_, err := m.StatObject(context.Background(), m.bucket, key, minio.StatObjectOptions{})
	return saidOf(err)
}

func (m miniBare) list(prefix string, limit int) ([]string, string) {
	got, err := m.ListObjectsV2(m.bucket, prefix, "", "", "", limit)
	var keys []string
	for _, o := range got.Contents {
		keys = append(keys, o.Key)
	}
	return keys, saidOf(err)
}

func (m miniBare) deleteAll(keys ...string) (int, string) {
	results, err := m.RemoveObjectsWithIter(context.Background(), m.bucket, func(yield func(minio.ObjectInfo) bool) {
		for _, k := range keys {
			if !yield(minio.ObjectInfo{Key: k}) {
				return
			}
		}
	}, minio.RemoveObjectsOptions{})
	if err != nil {
		return 0, saidOf(err)
	}
	deleted, said := 0, "ok"
	for r := range results {
		if r.Err != nil {
			said = saidOf(r.Err)
			continue
		}
		deleted++
	}
	return deleted, said
}

func (m miniBare) create(key string) string {
	id, err := m.NewMultipartUpload(context.Background(), m.bucket, key, minio.PutObjectOptions{})
	if err != nil {
		return ""
	}
	return id
}

func (m miniBare) part(key, id string, n int, body string) (etag, said string) {
	got, err := m.PutObjectPart(context.Background(), m.bucket, key, id, n, strings.NewReader(body), int64(len(body)), minio.PutObjectPartOptions{})
	return got.ETag, saidOf(err)
}

func (m miniBare) copyPart(key, id string, n int, src, etag string, off, length int64) (got, said string) {
	part, err := m.CopyObjectPart(context.Background(), m.bucket, src, m.bucket, key, id, n, off, length,
		map[string]string{"x-amz-copy-source-if-match": etag})
	return strings.Trim(part.ETag, `"`), saidOf(err)
}

func (m miniBare) complete(key, id string, c cond, parts ...string) (etag, said string) {
	list := make([]minio.CompletePart, 0, len(parts))
	for i, e := range parts {
		if e != "" {
			list = append(list, minio.CompletePart{PartNumber: i + 1, ETag: e})
		}
	}
	got, err := m.CompleteMultipartUpload(context.Background(), m.bucket, key, id, list, c.options())
	return got.ETag, saidOf(err)
}

func (m miniBare) abort(key, id string) string {
	return saidOf(m.AbortMultipartUpload(context.Background(), m.bucket, key, id))
}

func (m miniBare) uploads(prefix string) int {
	got, err := m.ListMultipartUploads(context.Background(), m.bucket, prefix, "", "", "", 1000)
	if err != nil {
		return -1
	}
	return len(got.Uploads)
}

func (m miniBare) parts(key, id string) string {
	got, err := m.ListObjectParts(context.Background(), m.bucket, key, id, 0, 1000)
	if err != nil {
		return saidOf(err)
	}
	return fmt.Sprint(len(got.ObjectParts), " parts")
}

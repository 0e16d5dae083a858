package storebench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/miniostore"
)

const (
	contentType    = "application/octet-stream"
	checksumHeader = "X-Amz-Checksum-Crc32c"
)

// bareMinio calls minio-go. An expert's calls are create-once, unsigned and carry a
// CRC-32C, as ours; the defaults are what a plain call sends.
type bareMinio struct {
	*miniostore.Bare
	plain bool
}

// Minio is the contender of a minio:// store's own library.
func Minio(ctx context.Context, cfg miniostore.Config, defaults bool) (Contender, error) {
	b, err := miniostore.OpenBare(ctx, cfg, defaults)
	if err != nil {
		return Contender{}, err
	}
	m := bareMinio{b, defaults}
	return Contender{
		Name: bareName(defaults), Requests: b.Requests, Close: func() error { b.Close(); return nil },
		Put: m.put, Read: m.read, Footer: m.footer, Publish: m.publish, Delete: m.remove, Copy: m.copy,
	}, nil
}

func bareName(defaults bool) string {
	if defaults {
		return NameDefaults
	}
	return NameBare
}

func (m bareMinio) options() minio.PutObjectOptions {
	o := minio.PutObjectOptions{ContentType: contentType}
	if !m.plain {
		o.SetMatchETagExcept("*")
	}
	return o
}

func (m bareMinio) put(ctx context.Context, key string, body []byte) error {
	o := m.options()
	if !m.plain {
		o.DisableContentSha256 = true
		o.UserMetadata = map[string]string{checksumHeader: checksum(body)}
	}
	_, err := m.Core.PutObject(ctx, m.Bucket, m.Full(key), bytes.NewReader(body), int64(len(body)), "", "", o)
	return err
}

func (m bareMinio) read(ctx context.Context, key string, off int64, into []byte) error {
	return m.get(ctx, key, fmt.Sprintf("bytes=%d-%d", off, off+int64(len(into))-1), into)
}

func (m bareMinio) footer(ctx context.Context, key string, n int64) ([]byte, error) {
	buf := make([]byte, n)
	return buf, m.get(ctx, key, fmt.Sprintf("bytes=-%d", n), buf)
}

func (m bareMinio) get(ctx context.Context, key, span string, into []byte) error {
	var o minio.GetObjectOptions
	o.Set("Range", span)
	body, _, _, err := m.Core.GetObject(ctx, m.Bucket, m.Full(key), o)
	if err != nil {
		return err
	}
	return readExactly(body, into)
}

// readExactly fills the buffer and reads the end, so that the connection can be used again.
func readExactly(body io.ReadCloser, into []byte) error {
	_, err := io.ReadFull(body, into)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	return errors.Join(err, body.Close())
}

func (m bareMinio) publish(ctx context.Context, key string, chunk []byte, chunks int) error {
	return m.upload(ctx, key, func(id string) ([]minio.CompletePart, error) {
		var mu sync.Mutex
		done := map[int]minio.CompletePart{}
		n, err := sendParts(ctx, chunk, chunks, func(ctx context.Context, n int, part []byte) error {
			var o minio.PutObjectPartOptions
			if !m.plain {
				o.DisableContentSha256 = true
				o.CustomHeader = http.Header{checksumHeader: {checksum(part)}}
			}
			got, err := m.Core.PutObjectPart(ctx, m.Bucket, m.Full(key), id, n, bytes.NewReader(part), int64(len(part)), o)
			mu.Lock()
			defer mu.Unlock()
			done[n] = minio.CompletePart{PartNumber: n, ETag: got.ETag}
			return err
		})
		parts := make([]minio.CompletePart, n)
		for i := range parts {
			parts[i] = done[i+1]
		}
		return parts, err
	})
}

func (m bareMinio) copy(ctx context.Context, key string, src objstore.CopySource) error {
	return m.upload(ctx, key, func(id string) ([]minio.CompletePart, error) {
		part, err := m.Core.CopyObjectPart(ctx, m.Bucket, m.Full(src.Key), m.Bucket, m.Full(key), id, 1, src.Offset, src.Length,
			map[string]string{"X-Amz-Copy-Source-If-Match": `"` + src.ETag + `"`})
		return []minio.CompletePart{part}, err
	})
}

func (m bareMinio) upload(ctx context.Context, key string, parts func(id string) ([]minio.CompletePart, error)) error {
	full := m.Full(key)
	id, err := m.Core.NewMultipartUpload(ctx, m.Bucket, full, minio.PutObjectOptions{ContentType: contentType})
	if err != nil {
		return err
	}
	list, err := parts(id)
	if err == nil {
		_, err = m.Core.CompleteMultipartUpload(ctx, m.Bucket, full, id, list, m.options())
	}
	if err != nil {
		return errors.Join(err, m.Core.AbortMultipartUpload(context.WithoutCancel(ctx), m.Bucket, full, id))
	}
	return nil
}

func (m bareMinio) remove(ctx context.Context, keys []string) error {
	objects := make(chan minio.ObjectInfo, len(keys))
	for _, key := range keys {
		objects <- minio.ObjectInfo{Key: m.Full(key)}
	}
	close(objects)
	var errs []error
	for failed := range m.Core.RemoveObjects(ctx, m.Bucket, objects, minio.RemoveObjectsOptions{}) {
		errs = append(errs, failed.Err)
	}
	return errors.Join(errs...)
}

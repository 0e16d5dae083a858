package storebench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/s3store"
)

// bareS3 calls the SDK. An expert's calls are create-once, unsigned and carry a CRC-32C,
// as ours; the defaults are what a plain call sends.
type bareS3 struct {
	*s3store.Bare
	plain bool
}

// S3 is the contender of an s3:// store's own library.
func S3(ctx context.Context, cfg s3store.Config, defaults bool) (Contender, error) {
	b, err := s3store.OpenBare(ctx, cfg, defaults)
	if err != nil {
		return Contender{}, err
	}
	s := bareS3{b, defaults}
	return Contender{
		Name: bareName(defaults), Requests: b.Requests, Close: func() error { b.Close(); return nil },
		Put: s.put, Read: s.read, Footer: s.footer, Publish: s.publish, Delete: s.remove, Copy: s.copy,
	}, nil
}

func (s bareS3) once() *string {
	if s.plain {
		return nil
	}
	return aws.String("*")
}

func (s bareS3) sum(body []byte) *string {
	if s.plain {
		return nil
	}
	return aws.String(checksum(body))
}

func (s bareS3) put(ctx context.Context, key string, body []byte) error {
	_, err := s.Client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.Bucket, Key: aws.String(s.Full(key)), Body: bytes.NewReader(body), ContentType: aws.String(contentType),
		IfNoneMatch: s.once(), ChecksumCRC32C: s.sum(body),
	})
	return err
}

func (s bareS3) read(ctx context.Context, key string, off int64, into []byte) error {
	return s.get(ctx, key, fmt.Sprintf("bytes=%d-%d", off, off+int64(len(into))-1), into)
}

func (s bareS3) footer(ctx context.Context, key string, n int64) ([]byte, error) {
	buf := make([]byte, n)
	return buf, s.get(ctx, key, fmt.Sprintf("bytes=-%d", n), buf)
}

func (s bareS3) get(ctx context.Context, key, span string, into []byte) error {
	got, err := s.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.Bucket, Key: aws.String(s.Full(key)), Range: &span})
	if err != nil {
		return err
	}
	return readExactly(got.Body, into)
}

func (s bareS3) publish(ctx context.Context, key string, chunk []byte, chunks int) error {
	return s.upload(ctx, key, func(id string) ([]types.CompletedPart, error) {
		var mu sync.Mutex
		done := map[int]types.CompletedPart{}
		n, err := sendParts(ctx, chunk, chunks, func(ctx context.Context, n int, part []byte) error {
			got, err := s.Client.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &s.Bucket, Key: aws.String(s.Full(key)), UploadId: &id, PartNumber: number32(n),
				Body: bytes.NewReader(part), ChecksumCRC32C: s.sum(part),
			})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done[n] = types.CompletedPart{PartNumber: number32(n), ETag: got.ETag}
			return nil
		})
		parts := make([]types.CompletedPart, n)
		for i := range parts {
			parts[i] = done[i+1]
		}
		return parts, err
	})
}

func (s bareS3) copy(ctx context.Context, key string, src objstore.CopySource) error {
	return s.upload(ctx, key, func(id string) ([]types.CompletedPart, error) {
		got, err := s.Client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
			Bucket: &s.Bucket, Key: aws.String(s.Full(key)), UploadId: &id, PartNumber: number32(1),
			CopySource:        aws.String(s.Bucket + "/" + s.Full(src.Key)),
			CopySourceRange:   aws.String(fmt.Sprintf("bytes=%d-%d", src.Offset, src.Offset+src.Length-1)),
			CopySourceIfMatch: aws.String(`"` + src.ETag + `"`),
		})
		if err != nil {
			return nil, err
		}
		return []types.CompletedPart{{PartNumber: number32(1), ETag: got.CopyPartResult.ETag}}, nil
	})
}

func (s bareS3) upload(ctx context.Context, key string, parts func(id string) ([]types.CompletedPart, error)) error {
	full := aws.String(s.Full(key))
	created, err := s.Client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.Bucket, Key: full, ContentType: aws.String(contentType)})
	if err != nil {
		return err
	}
	list, err := parts(aws.ToString(created.UploadId))
	if err == nil {
		_, err = s.Client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &s.Bucket, Key: full, UploadId: created.UploadId, IfNoneMatch: s.once(),
			MultipartUpload: &types.CompletedMultipartUpload{Parts: list},
		})
	}
	if err != nil {
		_, aerr := s.Client.AbortMultipartUpload(context.WithoutCancel(ctx), &s3.AbortMultipartUploadInput{Bucket: &s.Bucket, Key: full, UploadId: created.UploadId})
		return errors.Join(err, aerr)
	}
	return nil
}

func (s bareS3) remove(ctx context.Context, keys []string) error {
	objects := make([]types.ObjectIdentifier, len(keys))
	for i, key := range keys {
		objects[i].Key = aws.String(s.Full(key))
	}
	got, err := s.Client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &s.Bucket, Delete: &types.Delete{Objects: objects}})
	if err == nil && len(got.Errors) > 0 {
		err = fmt.Errorf("%d keys were not deleted", len(got.Errors))
	}
	return err
}

func number32(n int) *int32 { return aws.Int32(int32(n)) } //nolint:gosec // a handful of parts

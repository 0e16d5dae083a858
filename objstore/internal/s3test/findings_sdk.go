//go:build unix

package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

type sdkBare struct {
	*s3.Client
	bucket string
}

func sdkClient(to Target, more ...func(*s3.Options)) sdkBare {
	o := s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + to.Endpoint), UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials:                credentials.NewStaticCredentialsProvider(to.AccessKey, to.SecretKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	return sdkBare{s3.New(o, more...), to.Bucket}
}

func sdkSaid(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) {
		return fmt.Sprintf("%d %s", resp.HTTPStatusCode(), api.ErrorCode())
	}
	return api.ErrorCode()
}

func (s sdkBare) name() string { return "aws-sdk" }

// opt is a header that is not sent if it is empty.
func opt(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (s sdkBare) put(key, body string, c cond) (etag, said string) {
	got, err := s.PutObject(context.Background(), &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &key, Body: strings.NewReader(body), IfNoneMatch: opt(c.none), IfMatch: opt(c.match),
	})
	if err != nil {
		return "", saidOf(err)
	}
	return strings.Trim(aws.ToString(got.ETag), `"`), "ok"
}

func (s sdkBare) get(key, ranges string, c cond) (body, said string) {
	got, err := s.GetObject(context.Background(), &s3.GetObjectInput{
		Bucket: &s.bucket, Key: &key, Range: opt(ranges), IfMatch: opt(c.match), IfNoneMatch: opt(c.none),
	})
	if err != nil {
		return "", saidOf(err)
	}
	b, err := io.ReadAll(got.Body)
	return withRange(string(b), aws.ToString(got.ContentRange)), saidOf(errors.Join(err, got.Body.Close()))
}

func (s sdkBare) head(key string) string {
	_, err := s.HeadObject(context.Background(), &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key})
	return saidOf(err)
}

func (s sdkBare) list(prefix string, limit int) ([]string, string) {
	got, err := s.ListObjectsV2(context.Background(), &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix, MaxKeys: aws.Int32(int32(limit))})
	if err != nil {
		return nil, saidOf(err)
	}
	var keys []string
	for _, o := range got.Contents {
		keys = append(keys, aws.ToString(o.Key))
	}
	return keys, "ok"
}

func (s sdkBare) deleteAll(keys ...string) (int, string) {
	list := make([]types.ObjectIdentifier, len(keys))
	for i := range keys {
		list[i].Key = &keys[i]
	}
	got, err := s.DeleteObjects(context.Background(), &s3.DeleteObjectsInput{Bucket: &s.bucket, Delete: &types.Delete{Objects: list}})
	if err != nil {
		return 0, saidOf(err)
	}
	if len(got.Errors) > 0 {
		return len(got.Deleted), aws.ToString(got.Errors[0].Code)
	}
	return len(got.Deleted), "ok"
}

func (s sdkBare) create(key string) string {
	got, err := s.CreateMultipartUpload(context.Background(), &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return ""
	}
	return aws.ToString(got.UploadId)
}

func (s sdkBare) part(key, id string, n int, body string) (etag, said string) {
	got, err := s.UploadPart(context.Background(), &s3.UploadPartInput{
		Bucket: &s.bucket, Key: &key, UploadId: &id, PartNumber: aws.Int32(int32(n)), Body: bytes.NewReader([]byte(body)),
	})
	if err != nil {
		return "", saidOf(err)
	}
	return strings.Trim(aws.ToString(got.ETag), `"`), "ok"
}

func (s sdkBare) copyPart(key, id string, n int, src, etag string, off, length int64) (got, said string) {
	part, err := s.UploadPartCopy(context.Background(), &s3.UploadPartCopyInput{
		Bucket: &s.bucket, Key: &key, UploadId: &id, PartNumber: aws.Int32(int32(n)), CopySource: aws.String(s.bucket + "/" + src),
		CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+length-1)), CopySourceIfMatch: &etag,
	})
	if err != nil {
		return "", saidOf(err)
	}
	return strings.Trim(aws.ToString(part.CopyPartResult.ETag), `"`), "ok"
}

func (s sdkBare) complete(key, id string, c cond, parts ...string) (etag, said string) {
	got, err := s.CompleteMultipartUpload(context.Background(), s.completion(key, id, c, parts...))
	if err != nil {
		return "", saidOf(err)
	}
	return strings.Trim(aws.ToString(got.ETag), `"`), "ok"
}

func (s sdkBare) completion(key, id string, c cond, parts ...string) *s3.CompleteMultipartUploadInput {
	list := make([]types.CompletedPart, 0, len(parts))
	for i, e := range parts {
		if e != "" {
			list = append(list, types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: aws.String(e)})
		}
	}
	return &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: &key, UploadId: &id, IfNoneMatch: opt(c.none), IfMatch: opt(c.match),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: list},
	}
}

func (s sdkBare) abort(key, id string) string {
	_, err := s.AbortMultipartUpload(context.Background(), &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: &key, UploadId: &id})
	return saidOf(err)
}

func (s sdkBare) uploads(prefix string) int {
	got, err := s.ListMultipartUploads(context.Background(), &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &prefix})
	if err != nil {
		return -1
	}
	return len(got.Uploads)
}

func (s sdkBare) parts(key, id string) string {
	got, err := s.ListParts(context.Background(), &s3.ListPartsInput{Bucket: &s.bucket, Key: &key, UploadId: &id})
	if err != nil {
		return saidOf(err)
	}
	return fmt.Sprint(len(got.Parts), " parts")
}

package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// CreateUpload begins an upload. It carries no condition: stores check one only when
// the upload completes. It declares no checksum algorithm: see the package comment.
func (d *Driver) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	if err := d.checkPut(key, objstore.PutOptions{Meta: meta}); err != nil {
		return "", err
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpCreateUpload)
	got, err := d.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &d.space.Bucket, Key: aws.String(d.space.Full(key)), Metadata: meta, ContentType: aws.String(contentType),
	})
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return "", err
	}
	id := aws.ToString(got.UploadId)
	if id == "" {
		return "", s3wire.Unproven(ex, key, "an upload id")
	}
	return id, nil
}

// UploadPart sends one part.
func (d *Driver) UploadPart(ctx context.Context, key, id string, number int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	if err := s3wire.CheckPart(objstore.OpUploadPart, key, id, number, size); err != nil {
		return objstore.Part{}, err
	}
	sum, err := d.sums.Of(body, size)
	if err != nil {
		return objstore.Part{}, s3wire.Invalid(objstore.OpUploadPart, key, err)
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpUploadPart)
	got, err := d.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &d.space.Bucket, Key: aws.String(d.space.Full(key)), UploadId: &id, PartNumber: part32(number),
		Body: body, ContentLength: &size, ChecksumCRC32C: given(sum.CRC32C), ContentMD5: given(sum.MD5),
	})
	if err := d.sums.Judge(sum, key, s3wire.Verdict(ex, key, err)); err != nil {
		return objstore.Part{}, err
	}
	etag := s3wire.ETag(aws.ToString(got.ETag))
	if etag == "" {
		return objstore.Part{}, s3wire.Unproven(ex, key, "an ETag")
	}
	return objstore.Part{Number: number, ETag: etag, Size: size}, nil
}

// CopyPart copies a range within the store.
func (d *Driver) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	if err := s3wire.CheckCopy(key, id, number, src); err != nil {
		return objstore.Part{}, err
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpCopyPart)
	got, err := d.client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: &d.space.Bucket, Key: aws.String(d.space.Full(key)), UploadId: &id, PartNumber: part32(number),
		CopySource:        aws.String(escape(d.space.Bucket + "/" + d.space.Full(src.Key))),
		CopySourceRange:   aws.String(fmt.Sprintf("bytes=%d-%d", src.Offset, src.Offset+src.Length-1)),
		CopySourceIfMatch: aws.String(`"` + src.ETag + `"`),
	})
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return objstore.Part{}, err
	}
	if got.CopyPartResult == nil || aws.ToString(got.CopyPartResult.ETag) == "" {
		return objstore.Part{}, s3wire.Unproven(ex, key, "an ETag")
	}
	return objstore.Part{Number: number, ETag: s3wire.ETag(*got.CopyPartResult.ETag), Size: src.Length}, nil
}

// Complete publishes an upload under the conditions of opts.
func (d *Driver) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	if err := s3wire.CheckComplete(key, id, parts); err != nil {
		return objstore.Info{}, err
	}
	if err := s3wire.CheckConditions(objstore.OpComplete, key, opts); err != nil {
		return objstore.Info{}, err
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpComplete)
	list := make([]types.CompletedPart, len(parts))
	for i, p := range parts {
		list[i] = types.CompletedPart{PartNumber: part32(p.Number), ETag: aws.String(`"` + p.ETag + `"`)}
	}
	in := &s3.CompleteMultipartUploadInput{
		Bucket: &d.space.Bucket, Key: aws.String(d.space.Full(key)), UploadId: &id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: list},
	}
	in.IfNoneMatch, in.IfMatch = condition(ex, opts)
	got, err := d.client.CompleteMultipartUpload(ctx, in)
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return objstore.Info{}, err
	}
	etag := s3wire.ETag(aws.ToString(got.ETag))
	if etag == "" {
		return objstore.Info{}, s3wire.Unproven(ex, key, "an ETag")
	}
	return objstore.Info{Key: key, Size: s3wire.SizeOf(parts), ETag: etag}, nil
}

// Abort drops an upload. Stores differ on one that is gone: 204 or NoSuchUpload.
func (d *Driver) Abort(ctx context.Context, key, id string) error {
	if err := s3wire.CheckPart(objstore.OpAbort, key, id, 1, 0); err != nil {
		return err
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpAbort)
	_, err := d.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: &d.space.Bucket, Key: aws.String(d.space.Full(key)), UploadId: &id,
	})
	if err := s3wire.Verdict(ex, key, err); !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	return nil
}

// part32 is a part number as the SDK takes it; CheckPart held it to 10,000.
func part32(n int) *int32 { return aws.Int32(int32(n)) } //nolint:gosec // at most 10,000

// escape writes a copy source as a header: the SDK sends it as it is.
func escape(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// given is nil for "": the header is left out.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

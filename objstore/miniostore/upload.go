package miniostore

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// CreateUpload begins an upload. It carries no condition: stores check one only when
// the upload completes.
func (d *Driver) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	if err := d.checkPut(key, objstore.PutOptions{Meta: meta}); err != nil {
		return "", err
	}
	ctx, ex := begin(ctx, objstore.OpCreateUpload)
	id, err := d.core.NewMultipartUpload(ctx, d.space.Bucket, d.space.Full(key), metaOptions(meta))
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return "", err
	}
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
	o := minio.PutObjectPartOptions{DisableContentSha256: true, Md5Base64: sum.MD5}
	if sum.CRC32C != "" {
		o.CustomHeader = http.Header{s3wire.ChecksumHeader: {sum.CRC32C}}
	}
	ctx, ex := begin(ctx, objstore.OpUploadPart)
	got, err := d.core.PutObjectPart(ctx, d.space.Bucket, d.space.Full(key), id, number, body, size, o)
	if err := d.sums.Judge(sum, key, s3wire.Verdict(ex, key, err)); err != nil {
		return objstore.Part{}, err
	}
	if got.ETag == "" {
		return objstore.Part{}, s3wire.Unproven(ex, key, "an ETag")
	}
	return objstore.Part{Number: number, ETag: got.ETag, Size: size}, nil
}

// CopyPart copies a range within the store.
func (d *Driver) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	if err := s3wire.CheckCopy(key, id, number, src); err != nil {
		return objstore.Part{}, err
	}
	ctx, ex := begin(ctx, objstore.OpCopyPart)
	got, err := d.core.CopyObjectPart(ctx, d.space.Bucket, d.space.Full(src.Key), d.space.Bucket, d.space.Full(key), id, number,
		src.Offset, src.Length, map[string]string{"X-Amz-Copy-Source-If-Match": `"` + src.ETag + `"`})
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return objstore.Part{}, err
	}
	if got.ETag == "" {
		return objstore.Part{}, s3wire.Unproven(ex, key, "an ETag")
	}
	return objstore.Part{Number: number, ETag: s3wire.ETag(got.ETag), Size: src.Length}, nil
}

// Complete publishes an upload under the conditions of opts.
func (d *Driver) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	if err := s3wire.CheckComplete(key, id, parts); err != nil {
		return objstore.Info{}, err
	}
	if err := s3wire.CheckConditions(objstore.OpComplete, key, opts); err != nil {
		return objstore.Info{}, err
	}
	ctx, ex := begin(ctx, objstore.OpComplete)
	var o minio.PutObjectOptions
	condition(&o, ex, opts)
	list := make([]minio.CompletePart, len(parts))
	for i, p := range parts {
		list[i] = minio.CompletePart{PartNumber: p.Number, ETag: p.ETag}
	}
	got, err := d.core.CompleteMultipartUpload(ctx, d.space.Bucket, d.space.Full(key), id, list, o)
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return objstore.Info{}, err
	}
	if got.ETag == "" {
		return objstore.Info{}, s3wire.Unproven(ex, key, "an ETag")
	}
	return objstore.Info{Key: key, Size: s3wire.SizeOf(parts), ETag: got.ETag}, nil
}

// Abort drops an upload. Stores differ on one that is gone: 204 or NoSuchUpload.
func (d *Driver) Abort(ctx context.Context, key, id string) error {
	if err := s3wire.CheckPart(objstore.OpAbort, key, id, 1, 0); err != nil {
		return err
	}
	ctx, ex := begin(ctx, objstore.OpAbort)
	err := d.core.AbortMultipartUpload(ctx, d.space.Bucket, d.space.Full(key), id)
	if err := s3wire.Verdict(ex, key, err); !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	return nil
}

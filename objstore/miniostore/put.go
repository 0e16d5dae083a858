package miniostore

import (
	"context"
	"io"

	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Put writes an object with one request.
func (d *Driver) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if err := d.checkPut(key, opts); err != nil {
		return objstore.Info{}, err
	}
	sum, err := s3wire.Checksum(body, size)
	if err != nil {
		return objstore.Info{}, s3wire.Invalid(objstore.OpPut, key, err)
	}
	ctx, ex := begin(ctx, objstore.OpPut)
	o := metaOptions(opts.Meta)
	o.UserMetadata[s3wire.ChecksumHeader] = sum
	o.DisableContentSha256 = true
	condition(&o, ex, opts)
	got, err := d.core.PutObject(ctx, d.space.Bucket, d.space.Full(key), body, size, "", "", o)
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return objstore.Info{}, err
	}
	if got.ETag == "" {
		return objstore.Info{}, s3wire.Unproven(ex, key, "an ETag")
	}
	return objstore.Info{Key: key, Size: size, ETag: got.ETag}, nil
}

func (d *Driver) checkPut(key string, opts objstore.PutOptions) error {
	if err := d.space.Check(objstore.OpPut, key); err != nil {
		return err
	}
	if err := s3wire.CheckConditions(objstore.OpPut, key, opts); err != nil {
		return err
	}
	if err := s3wire.CheckMeta(opts.Meta); err != nil {
		return s3wire.Invalid(objstore.OpPut, key, err)
	}
	return nil
}

// metaOptions spells metadata out as headers: the library would take a name such as
// "expires" for the standard header.
func metaOptions(meta map[string]string) minio.PutObjectOptions {
	o := minio.PutObjectOptions{
		ContentType:  "application/octet-stream",
		UserMetadata: make(map[string]string, len(meta)+1),
	}
	for name, value := range meta {
		o.UserMetadata["X-Amz-Meta-"+name] = value
	}
	return o
}

func condition(o *minio.PutObjectOptions, ex *s3wire.Exchange, opts objstore.PutOptions) {
	if opts.IfNoneMatch {
		o.SetMatchETagExcept("*")
		ex.IfNoneMatch = true
	}
	if opts.IfMatch != "" {
		o.SetMatchETag(opts.IfMatch)
		ex.IfMatch = true
	}
}

package miniostore

import (
	"context"
	"io"

	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Get opens a range.
func (d *Driver) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	none := objstore.Info{}
	if err := d.space.Check(objstore.OpGet, key); err != nil {
		return nil, none, err
	}
	span, err := s3wire.RangeHeader(r)
	if err != nil {
		return nil, none, err
	}
	var o minio.GetObjectOptions
	if span != "" {
		o.Set("Range", span)
	}
	if ifMatch != "" {
		o.Set("If-Match", `"`+ifMatch+`"`)
	}
	callCtx, ex := begin(ctx, objstore.OpGet)
	body, _, _, err := d.core.GetObject(callCtx, d.space.Bucket, d.space.Full(key), o)
	if err := s3wire.Verdict(ex, key, err); err != nil {
		if s3wire.EmptySuffix(ex, r) {
			return d.emptySuffix(ctx, key, ifMatch)
		}
		return nil, none, err
	}
	return s3wire.OpenBody(ctx, ex, key, body, r)
}

// emptySuffix answers for the last bytes of an object that has none.
func (d *Driver) emptySuffix(ctx context.Context, key, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	info, err := d.Head(ctx, key)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	return s3wire.EmptyBody(info, ifMatch)
}

// Head asks for an object's size, ETag and metadata.
func (d *Driver) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := d.space.Check(objstore.OpHead, key); err != nil {
		return objstore.Info{}, err
	}
	callCtx, ex := begin(ctx, objstore.OpHead)
	_, err := d.core.StatObject(callCtx, d.space.Bucket, d.space.Full(key), minio.StatObjectOptions{})
	if s3wire.Unexplained(ex) {
		return s3wire.Confirm(key, func(r objstore.Range) (io.ReadCloser, objstore.Info, error) {
			return d.Get(ctx, key, r, "")
		})
	}
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return objstore.Info{}, err
	}
	return s3wire.HeadInfo(ex, key)
}

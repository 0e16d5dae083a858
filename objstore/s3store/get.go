package s3store

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

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
	in := &s3.GetObjectInput{Bucket: &d.space.Bucket, Key: aws.String(d.space.Full(key))}
	if span != "" {
		in.Range = &span
	}
	if ifMatch != "" {
		in.IfMatch = aws.String(`"` + ifMatch + `"`)
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpGet)
	got, err := d.client.GetObject(ctx, in)
	if err := s3wire.Verdict(ex, key, err); err != nil {
		if s3wire.EmptySuffix(ex, r) {
			return d.emptySuffix(ctx, key, ifMatch)
		}
		return nil, none, err
	}
	return s3wire.OpenBody(ctx, ex, key, got.Body, r)
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
	callCtx, ex := s3wire.NewExchange(ctx, objstore.OpHead)
	_, err := d.client.HeadObject(callCtx, &s3.HeadObjectInput{Bucket: &d.space.Bucket, Key: aws.String(d.space.Full(key))})
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

package s3store

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

const contentType = "application/octet-stream"

// Put writes an object with one request.
func (d *Driver) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if err := d.checkPut(key, opts); err != nil {
		return objstore.Info{}, err
	}
	sum, err := s3wire.Checksum(body, size)
	if err != nil {
		return objstore.Info{}, s3wire.Invalid(objstore.OpPut, key, err)
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpPut)
	in := &s3.PutObjectInput{
		Bucket: &d.space.Bucket, Key: aws.String(d.space.Full(key)), Body: body, ContentLength: &size,
		ContentType: aws.String(contentType), ChecksumCRC32C: &sum, Metadata: opts.Meta,
	}
	in.IfNoneMatch, in.IfMatch = condition(ex, opts)
	got, err := d.client.PutObject(ctx, in)
	if err := s3wire.Verdict(ex, key, err); err != nil {
		return objstore.Info{}, err
	}
	etag := s3wire.ETag(aws.ToString(got.ETag))
	if etag == "" {
		return objstore.Info{}, s3wire.Unproven(ex, key, "an ETag")
	}
	return objstore.Info{Key: key, Size: size, ETag: etag}, nil
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

func condition(ex *s3wire.Exchange, opts objstore.PutOptions) (ifNoneMatch, ifMatch *string) {
	if opts.IfNoneMatch {
		ifNoneMatch = aws.String("*")
		ex.IfNoneMatch = true
	}
	if opts.IfMatch != "" {
		ifMatch = aws.String(`"` + opts.IfMatch + `"`)
		ex.IfMatch = true
	}
	return ifNoneMatch, ifMatch
}

package s3store

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// List returns one page.
func (d *Driver) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	if err := errors.Join(s3wire.CheckList(prefix, limit), d.checkDirectory(objstore.OpList, prefix)); err != nil {
		return objstore.Page{}, err
	}
	in := &s3.ListObjectsV2Input{
		Bucket: &d.space.Bucket, Prefix: aws.String(d.space.Full(prefix)), MaxKeys: aws.Int32(int32(limit)), //nolint:gosec // at most 1,000
		EncodingType: types.EncodingTypeUrl,
	}
	if startAfter != "" && !d.directoryBucket() {
		in.StartAfter = aws.String(d.space.After(startAfter))
	}
	if token != "" {
		in.ContinuationToken = &token
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpList)
	_, err := d.client.ListObjectsV2(ctx, in)
	if err := s3wire.Verdict(ex, prefix, err); err != nil {
		return objstore.Page{}, err
	}
	got, err := s3wire.ReadPage(ex, prefix, d.space)
	if err != nil {
		return objstore.Page{}, err
	}
	return objstore.Page{Objects: got.Objects, Next: got.Token}, nil
}

// ListUploads returns the unfinished uploads under a prefix, as far as the store
// shows them.
func (d *Driver) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	if err := d.checkDirectory(objstore.OpListUploads, prefix); err != nil {
		return nil, err
	}
	return s3wire.CollectUploads(d.space, prefix, d.transport.Server(), func(full string, at s3wire.UploadMark) (s3wire.UploadPage, error) {
		ctx, ex := s3wire.NewExchange(ctx, objstore.OpListUploads)
		in := &s3.ListMultipartUploadsInput{Bucket: &d.space.Bucket, Prefix: aws.String(full)}
		if at.Key != "" {
			in.KeyMarker = aws.String(at.Key)
		}
		if at.ID != "" { // a directory bucket has no such marker: its other one is opaque
			in.UploadIdMarker = aws.String(at.ID)
		}
		got, err := d.client.ListMultipartUploads(ctx, in)
		if err := s3wire.Verdict(ex, prefix, err); err != nil {
			return s3wire.UploadPage{}, err
		}
		page := s3wire.UploadPage{
			More: aws.ToBool(got.IsTruncated),
			Next: s3wire.UploadMark{Key: aws.ToString(got.NextKeyMarker), ID: aws.ToString(got.NextUploadIdMarker)},
		}
		for _, u := range got.Uploads {
			page.Uploads = append(page.Uploads, objstore.Upload{
				Key: aws.ToString(u.Key), ID: aws.ToString(u.UploadId), Initiated: aws.ToTime(u.Initiated),
			})
		}
		return page, nil
	})
}

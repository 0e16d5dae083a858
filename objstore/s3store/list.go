package s3store

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// List returns one page.
func (d *Driver) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	if err := s3wire.CheckList(prefix, limit); err != nil {
		return objstore.Page{}, err
	}
	full := d.space.Full(prefix)
	in := &s3.ListObjectsV2Input{
		Bucket: &d.space.Bucket, Prefix: aws.String(full), MaxKeys: aws.Int32(int32(limit)), //nolint:gosec // at most 1,000
		EncodingType: types.EncodingTypeUrl,
	}
	if d.directoryBucket() {
		in.Prefix = aws.String(directoryOf(full))
	} else if startAfter != "" {
		in.StartAfter = aws.String(d.space.After(startAfter))
	}
	if token != "" {
		in.ContinuationToken = &token
	}
	ctx, ex := s3wire.NewExchange(ctx, s3wire.List)
	_, err := d.client.ListObjectsV2(ctx, in)
	if err := s3wire.Verdict(ex, prefix, err); err != nil {
		return objstore.Page{}, err
	}
	got, err := s3wire.ReadPage(ex, prefix, d.space)
	if err != nil {
		return objstore.Page{}, err
	}
	page := objstore.Page{Objects: got.Objects, Next: got.Token}
	if d.directoryBucket() {
		page.Objects = withPrefix(page.Objects, prefix)
	}
	return page, nil
}

// directoryOf is the part of a prefix that a directory bucket can list by.
func directoryOf(prefix string) string { return prefix[:strings.LastIndexByte(prefix, '/')+1] }

func withPrefix(all []objstore.Info, prefix string) []objstore.Info {
	kept := all[:0]
	for _, o := range all {
		if strings.HasPrefix(o.Key, prefix) {
			kept = append(kept, o)
		}
	}
	return kept
}

// ListUploads returns the unfinished uploads under a prefix, as far as the store
// shows them.
func (d *Driver) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	return s3wire.CollectUploads(d.space, prefix, d.transport.Server(), func(full string, at s3wire.UploadMark) (s3wire.UploadPage, error) {
		ctx, ex := s3wire.NewExchange(ctx, s3wire.ListUploads)
		if d.directoryBucket() {
			full = directoryOf(full)
		}
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

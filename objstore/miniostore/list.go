package miniostore

import (
	"context"

	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// List returns one page. Core.ListObjectsV2 takes no context, and the iterator takes
// no continuation; so a page is the iterator's first answer, and the token is the last
// key that was returned: this store's listings are ordered.
func (d *Driver) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	if err := s3wire.CheckList(prefix, limit); err != nil {
		return objstore.Page{}, err
	}
	ctx, ex := begin(ctx, objstore.OpList)
	owner := false
	o := minio.ListObjectsOptions{
		Prefix:     d.space.Full(prefix),
		Recursive:  true,
		MaxKeys:    limit,
		StartAfter: d.space.After(max(startAfter, token)),
		FetchOwner: &owner,
	}
	var failed error
	for object := range d.core.ListObjectsIter(ctx, d.space.Bucket, o) {
		failed = object.Err
		break // the rest of the page is read from the answer
	}
	if failed == nil && ex.Status() == 0 {
		failed = ctx.Err() // the iterator ends in silence when its context has ended
	}
	if err := s3wire.Verdict(ex, prefix, failed); err != nil {
		return objstore.Page{}, err
	}
	got, err := s3wire.ReadPage(ex, prefix, d.space)
	if err != nil {
		return objstore.Page{}, err
	}
	page := objstore.Page{Objects: got.Objects}
	if n := len(got.Objects); got.Token != "" && n > 0 {
		page.Next = got.Objects[n-1].Key
	}
	return page, nil
}

// ListUploads returns the unfinished uploads under a prefix, as far as the store
// shows them.
func (d *Driver) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	return s3wire.CollectUploads(d.space, prefix, d.transport.Server(), func(full string, at s3wire.UploadMark) (s3wire.UploadPage, error) {
		ctx, ex := begin(ctx, objstore.OpListUploads)
		got, err := d.core.ListMultipartUploads(ctx, d.space.Bucket, full, at.Key, at.ID, "", s3wire.MaxList)
		if err := s3wire.Verdict(ex, prefix, err); err != nil {
			return s3wire.UploadPage{}, err
		}
		page := s3wire.UploadPage{
			More: got.IsTruncated,
			Next: s3wire.UploadMark{Key: got.NextKeyMarker, ID: got.NextUploadIDMarker},
		}
		for _, u := range got.Uploads {
			page.Uploads = append(page.Uploads, objstore.Upload{Key: u.Key, ID: u.UploadID, Initiated: u.Initiated})
		}
		return page, nil
	})
}

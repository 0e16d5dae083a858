package miniostore

import (
	"context"
	"slices"

	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Delete removes up to 1,000 keys with one request. The library sends it; the answer
// is read here, because the library drops some per-key errors without a word.
func (d *Driver) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	if err := d.space.CheckDelete(keys); err != nil {
		return nil, err
	}
	objects := func(yield func(minio.ObjectInfo) bool) {
		for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
			if !yield(minio.ObjectInfo{Key: d.space.Full(key)}) {
				return
			}
		}
	}
	ctx, ex := begin(ctx, objstore.OpDelete)
	results, err := d.core.RemoveObjectsWithIter(ctx, d.space.Bucket, objects, minio.RemoveObjectsOptions{})
	if err == nil {
		for r := range results {
			if r.Err != nil && err == nil {
				err = r.Err
			}
		}
	}
	if len(ex.Document()) > 0 {
		return s3wire.DeleteResults(ex, keys, d.space)
	}
	if err == nil {
		err = ctx.Err() // the library ends in silence when the context has ended
	}
	if err := s3wire.Verdict(ex, keys[0], err); err != nil {
		return nil, err
	}
	return nil, s3wire.Unproven(ex, keys[0], "a list of what was deleted")
}

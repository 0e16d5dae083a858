package s3store

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Delete removes up to 1,000 keys with one request.
func (d *Driver) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	if err := d.space.CheckDelete(keys); err != nil {
		return nil, err
	}
	ids := make([]types.ObjectIdentifier, 0, len(keys))
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		ids = append(ids, types.ObjectIdentifier{Key: aws.String(d.space.Full(key))})
	}
	ctx, ex := s3wire.NewExchange(ctx, objstore.OpDelete)
	_, err := d.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &d.space.Bucket,
		// Not quiet: what is gone must be named, so that what is not named stands out.
		Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(false)},
	})
	if err := s3wire.Verdict(ex, keys[0], err); err != nil {
		return nil, err
	}
	return s3wire.DeleteResults(ex, keys, d.space)
}

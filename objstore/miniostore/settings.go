package miniostore

import (
	"context"
	"sync"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/lifecycle"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

var _ objstore.Inspector = (*Driver)(nil)

// Settings asks what the bucket's owner configured, with three requests at once: a start
// waits for them. What was refused stands in Unknown.
func (d *Driver) Settings(ctx context.Context) (objstore.Settings, error) {
	var (
		bucket                        = d.space.Bucket
		wg                            sync.WaitGroup
		versioning                    minio.BucketVersioningConfiguration
		lock                          string
		config                        *lifecycle.Configuration
		versioningErr, lockErr, lcErr error
	)
	versioningCtx, versioningEx := begin(ctx, s3wire.OpSettings)
	lockCtx, lockEx := begin(ctx, s3wire.OpSettings)
	lcCtx, lcEx := begin(ctx, s3wire.OpSettings)
	wg.Go(func() { versioning, versioningErr = d.core.GetBucketVersioning(versioningCtx, bucket) })
	wg.Go(func() { lock, _, _, _, lockErr = d.core.GetObjectLockConfig(lockCtx, bucket) })
	wg.Go(func() { config, lcErr = d.core.GetBucketLifecycle(lcCtx, bucket) })
	wg.Wait()

	asked := s3wire.NewAsked(d.space)
	asked.Versioning(versioningEx, versioning.Status, versioningErr)
	asked.ObjectLock(lockEx, lock == minio.Enabled, lockErr)
	asked.Lifecycle(lcEx, rulesOf(config), lcErr)
	return asked.Result()
}

func rulesOf(config *lifecycle.Configuration) []s3wire.Rule {
	if config == nil {
		return nil
	}
	var out []s3wire.Rule
	for _, r := range config.Rules {
		out = append(out, s3wire.Rule{
			ID: r.ID, Prefix: prefixOf(r), Enabled: r.Status == minio.Enabled,
			Expires:         !r.Expiration.IsDaysNull() || !r.Expiration.IsDateNull() || !r.AllVersionsExpiration.IsNull(),
			Transitions:     !r.Transition.IsNull(),
			AbortsAfterDays: int(r.AbortIncompleteMultipartUpload.DaysAfterInitiation),
		})
	}
	return out
}

// prefixOf is where a rule's prefix stands, in one of three places.
func prefixOf(r lifecycle.Rule) string {
	switch {
	case r.RuleFilter.And.Prefix != "":
		return r.RuleFilter.And.Prefix
	case r.RuleFilter.Prefix != "":
		return r.RuleFilter.Prefix
	default:
		return r.Prefix
	}
}

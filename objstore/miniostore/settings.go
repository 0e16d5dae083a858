package miniostore

import (
	"context"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/lifecycle"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

var _ objstore.Inspector = (*Driver)(nil)

// Settings asks what the bucket's owner configured, with three requests. What was refused
// stands in Unknown.
func (d *Driver) Settings(ctx context.Context) (objstore.Settings, error) {
	asked, bucket := s3wire.NewAsked(d.space), d.space.Bucket

	callCtx, ex := s3wire.NewExchange(ctx, s3wire.Settings)
	versioning, err := d.core.GetBucketVersioning(callCtx, bucket)
	asked.Versioning(ex, versioning.Status, err)

	callCtx, ex = s3wire.NewExchange(ctx, s3wire.Settings)
	lock, _, _, _, err := d.core.GetObjectLockConfig(callCtx, bucket)
	asked.ObjectLock(ex, lock == minio.Enabled, err)

	callCtx, ex = s3wire.NewExchange(ctx, s3wire.Settings)
	config, err := d.core.GetBucketLifecycle(callCtx, bucket)
	asked.Lifecycle(ex, rulesOf(config), err)

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

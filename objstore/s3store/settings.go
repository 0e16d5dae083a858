package s3store

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

var _ objstore.Inspector = (*Driver)(nil)

// Settings asks what the bucket's owner configured, with three requests at once: a start
// waits for them. What was refused stands in Unknown.
func (d *Driver) Settings(ctx context.Context) (objstore.Settings, error) {
	var (
		bucket                        = &d.space.Bucket
		wg                            sync.WaitGroup
		versioning                    *s3.GetBucketVersioningOutput
		lock                          *s3.GetObjectLockConfigurationOutput
		config                        *s3.GetBucketLifecycleConfigurationOutput
		versioningErr, lockErr, lcErr error
	)
	versioningCtx, versioningEx := s3wire.NewExchange(ctx, s3wire.OpSettings)
	lockCtx, lockEx := s3wire.NewExchange(ctx, s3wire.OpSettings)
	lcCtx, lcEx := s3wire.NewExchange(ctx, s3wire.OpSettings)
	wg.Go(func() {
		versioning, versioningErr = d.client.GetBucketVersioning(versioningCtx, &s3.GetBucketVersioningInput{Bucket: bucket})
	})
	wg.Go(func() {
		lock, lockErr = d.client.GetObjectLockConfiguration(lockCtx, &s3.GetObjectLockConfigurationInput{Bucket: bucket})
	})
	wg.Go(func() {
		config, lcErr = d.client.GetBucketLifecycleConfiguration(lcCtx, &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
	})
	wg.Wait()

	asked := s3wire.NewAsked(d.space)
	asked.Versioning(versioningEx, statusOf(versioning), versioningErr)
	asked.ObjectLock(lockEx, locked(lock), lockErr)
	asked.Lifecycle(lcEx, rulesOf(config), lcErr)
	return asked.Result()
}

func statusOf(out *s3.GetBucketVersioningOutput) string {
	if out == nil {
		return ""
	}
	return string(out.Status)
}

func locked(out *s3.GetObjectLockConfigurationOutput) bool {
	return out != nil && out.ObjectLockConfiguration != nil && out.ObjectLockConfiguration.ObjectLockEnabled == types.ObjectLockEnabledEnabled
}

func rulesOf(config *s3.GetBucketLifecycleConfigurationOutput) []s3wire.Rule {
	if config == nil {
		return nil
	}
	var out []s3wire.Rule
	for _, r := range config.Rules {
		rule := s3wire.Rule{
			ID: aws.ToString(r.ID), Prefix: prefixOf(r), Enabled: r.Status == types.ExpirationStatusEnabled,
			Expires:     r.Expiration != nil && (r.Expiration.Days != nil || r.Expiration.Date != nil),
			Transitions: len(r.Transitions) > 0,
		}
		if abort := r.AbortIncompleteMultipartUpload; abort != nil {
			rule.AbortsAfterDays = int(aws.ToInt32(abort.DaysAfterInitiation))
		}
		out = append(out, rule)
	}
	return out
}

// prefixOf is where a rule's prefix stands, in one of three places.
func prefixOf(r types.LifecycleRule) string {
	f := r.Filter
	switch {
	case f != nil && f.And != nil && f.And.Prefix != nil:
		return *f.And.Prefix
	case f != nil && f.Prefix != nil:
		return *f.Prefix
	default:
		return aws.ToString(r.Prefix) //nolint:staticcheck // old rules have it there
	}
}

package s3store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

var _ objstore.Inspector = (*Driver)(nil)

// Settings asks what the bucket's owner configured, with three requests. What was refused
// stands in Unknown.
func (d *Driver) Settings(ctx context.Context) (objstore.Settings, error) {
	asked, bucket := s3wire.NewAsked(d.space), &d.space.Bucket

	callCtx, ex := s3wire.NewExchange(ctx, s3wire.Settings)
	var status string
	versioning, err := d.client.GetBucketVersioning(callCtx, &s3.GetBucketVersioningInput{Bucket: bucket})
	if err == nil {
		status = string(versioning.Status)
	}
	asked.Versioning(ex, status, err)

	callCtx, ex = s3wire.NewExchange(ctx, s3wire.Settings)
	lock, err := d.client.GetObjectLockConfiguration(callCtx, &s3.GetObjectLockConfigurationInput{Bucket: bucket})
	locked := err == nil && lock.ObjectLockConfiguration != nil &&
		lock.ObjectLockConfiguration.ObjectLockEnabled == types.ObjectLockEnabledEnabled
	asked.ObjectLock(ex, locked, err)

	callCtx, ex = s3wire.NewExchange(ctx, s3wire.Settings)
	var rules []s3wire.Rule
	config, err := d.client.GetBucketLifecycleConfiguration(callCtx, &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
	if err == nil {
		rules = rulesOf(config.Rules)
	}
	asked.Lifecycle(ex, rules, err)

	return asked.Result()
}

func rulesOf(rules []types.LifecycleRule) []s3wire.Rule {
	var out []s3wire.Rule
	for _, r := range rules {
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

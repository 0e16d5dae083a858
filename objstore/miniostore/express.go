package miniostore

import (
	"fmt"
	"strings"
)

// checkExpress refuses directory buckets (S3 Express One Zone). minio-go makes sessions
// for them, but only at AWS's own host names, signs range copies with the session too,
// which AWS wants signed with IAM credentials, and its listing takes no continuation
// from us: here a page goes on after the last key of the one before, which is right in
// ordered listings only.
func (c Config) checkExpress() error {
	if !strings.HasSuffix(c.Bucket, "--x-s3") {
		return nil
	}
	return fmt.Errorf("bucket %s is a directory bucket (S3 Express), which this driver does not serve: use s3://%s?region=REGION", c.Bucket, c.Bucket)
}

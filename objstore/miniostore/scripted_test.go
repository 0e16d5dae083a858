//go:build unix

package miniostore

import (
	"context"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3test"
)

func TestScripted(t *testing.T) { s3test.Scripted(t, openTarget) }

func TestK40ClockSkew(t *testing.T) { s3test.K40(t, openTarget) }

func openTarget(t s3test.Target) (objstore.Driver, error) {
	return Open(context.Background(), Config{
		Endpoint: t.Endpoint, Bucket: t.Bucket, Prefix: t.Prefix, TLS: t.TLS, CAFile: t.CAFile, PathStyle: true,
		AccessKey: t.AccessKey, SecretKey: t.SecretKey,
	})
}

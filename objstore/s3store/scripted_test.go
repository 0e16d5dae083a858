//go:build unix

package s3store

import (
	"context"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3test"
)

func TestScripted(t *testing.T) { s3test.Scripted(t, openTarget) }

func TestK40ClockSkew(t *testing.T) { s3test.K40(t, openTarget) }

func openTarget(t s3test.Target) (objstore.Driver, error) {
	endpoint := "http://" + t.Endpoint
	if t.TLS {
		endpoint = "https://" + t.Endpoint
	}
	return Open(context.Background(), Config{
		Endpoint: endpoint, Region: "us-east-1", Bucket: t.Bucket, Prefix: t.Prefix, CAFile: t.CAFile, PathStyle: true,
		AccessKey: t.AccessKey, SecretKey: t.SecretKey,
	})
}

//go:build unix

package miniostore

import (
	"context"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore/internal/s3test"
)

func TestCredentials(t *testing.T) { s3test.Credentials(t, openTarget) }

// TestMinioVariables: MinIO's own variables are taken where AWS's are not set.
func TestMinioVariables(t *testing.T) {
	server := realstore.Minio(t)
	for _, names := range [][2]string{{"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"}, {"MINIO_ACCESS_KEY", "MINIO_SECRET_KEY"}} {
		t.Run(names[0], func(t *testing.T) {
			s3test.Lonely(t)
			t.Setenv(names[0], server.AccessKey)
			t.Setenv(names[1], server.SecretKey)
			d, err := Open(context.Background(), Config{Endpoint: server.Endpoint, Bucket: server.NewBucket(t), PathStyle: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTrust(t *testing.T) { s3test.Trust(t, openTarget, "TestTrust") }

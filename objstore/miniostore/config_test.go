package miniostore

import (
	"context"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

func TestParseURL(t *testing.T) {
	for in, want := range map[string]Config{
		"minio://h:9000/b":                         {Endpoint: "h:9000", Bucket: "b", TLS: true, PathStyle: true},
		"minio://h:9000/b/p/q?tls=false":           {Endpoint: "h:9000", Bucket: "b", Prefix: "p/q", PathStyle: true},
		"minio://[::1]:9000/b/?tls=true&region=eu": {Endpoint: "[::1]:9000", Bucket: "b", Region: "eu", TLS: true, PathStyle: true},
		"minio://h/b?ca=%2Fetc%2Fca.pem&tls=1":     {Endpoint: "h", Bucket: "b", CAFile: "/etc/ca.pem", TLS: true, PathStyle: true},
		"minio://127.0.0.1:9000/bucket/one?tls=0":  {Endpoint: "127.0.0.1:9000", Bucket: "bucket", Prefix: "one", PathStyle: true},
	} {
		got, err := ParseURL(in)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", in, got, err, want)
		}
	}
	for in, says := range map[string]string{
		"minio://h:9000":              "no bucket",
		"minio:///b":                  "want minio://",
		"s3://h/b":                    "want minio://",
		"minio://h/b?tls=perhaps":     "tls=perhaps",
		"minio://h/b?secure=true":     "unknown option",
		"minio://key:hidden1@h/b":     "credentials",
		"minio://key:hidden1@h:bad/b": "not readable",
		"minio://h/b?tls=%zz":         "escape",
	} {
		_, err := ParseURL(in)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hidden1") {
			t.Errorf("%s: got %v, want it to say %q", in, err, says)
		}
	}
}

// TestCredentialChain: the environment's keys are used, and shown nowhere.
func TestCredentialChain(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-env")
	d, err := dial(Config{Endpoint: "127.0.0.1:1", Bucket: "bucket", Prefix: "/p/"})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Name(); got != "minio://127.0.0.1:1/bucket/p?tls=false" {
		t.Errorf("name %s", got)
	}
	v, err := Config{}.credentials().GetWithContext(&credentials.CredContext{})
	if err != nil || v.AccessKeyID != "AKIDENV" || v.SecretAccessKey != "secret-of-env" {
		t.Errorf("credentials of %s: %v", v.AccessKeyID, err)
	}
	_, err = Open(context.Background(), Config{Endpoint: "127.0.0.1:1", Bucket: "bucket"})
	if err == nil || strings.Contains(err.Error(), "AKIDENV") || strings.Contains(err.Error(), "secret-of-env") {
		t.Errorf("got %v", err)
	}
}

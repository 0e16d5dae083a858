package miniostore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

func TestParseURL(t *testing.T) {
	for in, want := range map[string]Config{
		"minio://h:9000/b":                         {Endpoint: "h:9000", Bucket: "b", TLS: true, PathStyle: true},
		"minio://h:9000/b/p/q?tls=false":           {Endpoint: "h:9000", Bucket: "b", Prefix: "p/q", PathStyle: true},
		"minio://[::1]:9000/b/?tls=true&region=eu": {Endpoint: "[::1]:9000", Bucket: "b", Region: "eu", TLS: true, PathStyle: true},
		"minio://h/b?ca=%2Fetc%2Fca.pem&tls=1":     {Endpoint: "h", Bucket: "b", CAFile: "/etc/ca.pem", TLS: true, PathStyle: true},
		"minio://h/b?parts=equal&range-copy=false&concurrency=8": {
			Endpoint: "h", Bucket: "b", TLS: true, PathStyle: true, Limits: s3wire.Limits{EqualParts: true, NoRangeCopy: true, Concurrency: 8},
		},
		"minio://h/b?parts=any&range-copy=true":   {Endpoint: "h", Bucket: "b", TLS: true, PathStyle: true},
		"minio://127.0.0.1:9000/bucket/one?tls=0": {Endpoint: "127.0.0.1:9000", Bucket: "bucket", Prefix: "one", PathStyle: true},
	} {
		got, err := ParseURL(in)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", in, got, err, want)
		}
	}
	for in, says := range map[string]string{
		"minio://h:9000":                    "no bucket",
		"minio:///b":                        "want minio://",
		"s3://h/b":                          "want minio://",
		"minio://h/b?tls=perhaps":           "tls=perhaps",
		"minio://h/b?secure=true":           "unknown option",
		"minio://key:hidden1@h/b":           "credentials",
		"minio://key:hidden1@h:bad/b":       "not readable",
		"minio://h/logs--use1-az4--x-s3/p":  "use s3://logs--use1-az4--x-s3",
		"minio://h/b?tls=%zz":               "escape",
		"minio:key:hidden1@h/b":             "want minio://",
		"minio://h/b?secret=hidden1":        "unknown option",
		"minio://h/b?parts=few":             "equal or any",
		"minio://h/b?range-copy=no1":        "true or false",
		"minio://h/b?concurrency=1":         "want 2 to",
		"minio://h/b?concurrency=9e9":       "want 2 to",
		"minio://h/b?tls=perhaps&parts=few": "equal or any\ntls=perhaps", // all at once
		"minio://h?concurrency=4":           "no bucket",
	} {
		_, err := ParseURL(in)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hidden1") {
			t.Errorf("%s: got %v, want it to say %q", in, err, says)
		}
	}
}

// TestName: the name opens the same store, and shows no credentials.
func TestName(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-env")
	cfg := Config{Endpoint: "127.0.0.1:1", Bucket: "bucket", Prefix: "p", PathStyle: true, Limits: s3wire.Limits{EqualParts: true, NoRangeCopy: true, Concurrency: 8}}
	d, err := Dial(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Name(); got != "minio://127.0.0.1:1/bucket/p?tls=false&parts=equal&range-copy=false&concurrency=8" {
		t.Errorf("name %s", got)
	}
	if again, err := ParseURL(d.Name()); err != nil || again != cfg {
		t.Errorf("the name opens %+v %v, want %+v", again, err, cfg)
	}
	if c := d.Capabilities(); !c.EqualParts || c.RangeCopy || !c.OrderedList {
		t.Errorf("what the URL declares is not in %+v", c)
	}
	_, err = Open(context.Background(), cfg)
	if err == nil || strings.Contains(err.Error(), "AKIDENV") || strings.Contains(err.Error(), "secret-of-env") {
		t.Errorf("got %v", err)
	}
}

// TestBucketNameThatCannotBe: a name that minio-go sends no request for is no outage.
func TestBucketNameThatCannotBe(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-env")
	for _, bucket := range []string{"b1", "a..b", strings.Repeat("b", 64)} {
		_, err := Open(t.Context(), Config{Endpoint: "127.0.0.1:1", Bucket: bucket, PathStyle: true})
		if !errors.Is(err, objstore.ErrInvalid) || !strings.Contains(err.Error(), s3wire.HintBucket) {
			t.Errorf("%s: %v", bucket, err)
		}
	}
}

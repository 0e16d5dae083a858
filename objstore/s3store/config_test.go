//go:build unix

package s3store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3test"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

func TestParseURL(t *testing.T) {
	for in, want := range map[string]Config{
		"s3://b":                       {Bucket: "b"},
		"s3://b/p/q/?region=eu-west-1": {Bucket: "b", Prefix: "p/q", Region: "eu-west-1"},
		"s3://b?endpoint=http://h:9000&path-style=true": {Bucket: "b", Endpoint: "http://h:9000", PathStyle: true},
		"s3://b?endpoint=h:9000&ca=%2Fca":               {Bucket: "b", Endpoint: "h:9000", CAFile: "/ca"},
	} {
		got, err := ParseURL(in)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", in, got, err, want)
		}
	}
	for in, says := range map[string]string{
		"s3:///p":                            "want s3://",
		"minio://h/b":                        "want s3://",
		"s3://b?path-style=perhaps":          "path-style=perhaps",
		"s3://b?endpont=x":                   "unknown option",
		"s3://key:hidden1@b":                 "credentials",
		"s3://key:hidden1@b:bad/p":           "not readable",
		"s3://b?endpoint=http://k:hidden1@h": "credentials",
		"s3://b?endpoint=ftp://h":            "want https://",
		"s3://b?region=%zz":                  "escape",
		"s3:key:hidden1@b":                   "want s3://",
		"s3://b?secret=hidden1":              "unknown option",
		"s3://b?parts=few":                   "equal or any",
		"s3://b?range-copy=no1":              "true or false",
		"s3://b?concurrency=1":               "want 2 to",
		"s3://b?path-style=x&concurrency=1":  "want 2 to 4096\npath-style=x", // all at once
		"s3://b--x-s3?path-style=true":       "NAME--ZONE--x-s3",
	} {
		_, err := ParseURL(in)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hidden1") {
			t.Errorf("%s: got %v, want it to say %q", in, err, says)
		}
	}
}

// TestName: the name opens the same store, and shows no credentials.
func TestName(t *testing.T) {
	s3test.Lonely(t)
	cfg := Config{Endpoint: "http://127.0.0.1:1", Bucket: "bucket", Prefix: "/p/", PathStyle: true, Limits: s3wire.Limits{EqualParts: true, NoRangeCopy: true, Concurrency: 8}}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-env")
	d, err := Dial(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Name(); got != "s3://bucket/p?region=us-east-1&endpoint=http://127.0.0.1:1&path-style=true&parts=equal&range-copy=false&concurrency=8" {
		t.Errorf("name %s", got)
	}
	if parsed, err := ParseURL(d.Name()); err != nil || parsed.Bucket != "bucket" || parsed.Prefix != "p" || parsed.Endpoint != cfg.Endpoint || !parsed.PathStyle || parsed.Limits != cfg.Limits {
		t.Errorf("the name does not open the same store: %+v %v", parsed, err)
	}
	if c := d.Capabilities(); !c.EqualParts || c.RangeCopy || !c.OrderedList {
		t.Errorf("what the URL declares is not in %+v", c)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:2")
	if d, err := Dial(context.Background(), Config{Bucket: "bucket"}); err != nil || d.Name() != "s3://bucket?region=us-east-1&endpoint=http://127.0.0.1:2" {
		t.Errorf("an endpoint of the environment: %v", err)
	}
	_, err = Open(context.Background(), cfg)
	if !errors.Is(err, objstore.ErrUnavailable) || strings.Contains(err.Error(), "AKIDENV") || strings.Contains(err.Error(), "secret-of-env") {
		t.Errorf("got %v", err)
	}
}

// TestSpecialBuckets: what a store's name tells of it. No such store is reached here.
func TestSpecialBuckets(t *testing.T) {
	s3test.Lonely(t)
	d, err := Dial(context.Background(), Config{Bucket: "logs--use1-az4--x-s3", Region: "us-east-1", AccessKey: "a", SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if c := d.Capabilities(); c.OrderedList || c.StartAfter || !c.DirectoryPrefix || !c.RangeCopy || c.EqualParts {
		t.Errorf("a directory bucket: %+v", c)
	}
	d, err = Dial(context.Background(), Config{Bucket: "b", Endpoint: "x.r2.cloudflarestorage.com", Region: "auto", AccessKey: "a", SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if c := d.Capabilities(); !c.EqualParts || !c.OrderedList || c.MinCopy != 5<<20+1 || c.MinPart != 5<<20 || c.MaxDeleteSet != 1000 {
		t.Errorf("R2: %+v", c)
	}
}

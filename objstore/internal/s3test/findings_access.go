//go:build unix

package s3test

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/minio/minio-go/v7"
)

// findingsOfAccess: what wrong ways to a store look like.
func findingsOfAccess() []finding {
	as := func(change func(*Target), ask func(bare) string) func(*lab) string {
		return func(l *lab) string {
			to := l.to
			change(&to)
			if l.bare.name() == "minio-go" {
				return ask(miniClient(l, to))
			}
			return ask(sdkClient(to))
		}
	}
	get := func(b bare) string {
		_, said := b.get("k", "", cond{})
		return said
	}
	list := func(b bare) string {
		_, said := b.list("", 1)
		return said
	}
	put := func(b bare) string {
		_, said := b.put("k", "", cond{none: "*"})
		return said
	}
	noBucket := func(to *Target) { to.Bucket = "t-no-such-bucket" }
	wrongSecret := func(to *Target) { to.SecretKey = "wrong-secret-key" }
	unknown := func(to *Target) { to.AccessKey = "unknown-access-key" }
	return []finding{
		{name: "a bucket that is missing: get", see: as(noBucket, get), want: same("404 NoSuchBucket")},
		{name: "a bucket that is missing: list", see: as(noBucket, list), want: same("404 NoSuchBucket")},
		{name: "a bucket that is missing: put", see: as(noBucket, put), want: same("404 NoSuchBucket")},
		{
			name: "a bucket that is missing: head, like a key that is", only: "aws-sdk",
			see: as(noBucket, func(b bare) string { return b.head("k") }), want: same("404 NotFound"),
		},
		{name: "a wrong secret: get", see: as(wrongSecret, get), want: same("403 SignatureDoesNotMatch")},
		{name: "an unknown access key: get", see: as(unknown, get), want: each("403 InvalidAccessKeyId", "404 XAdminUserNotFound")},
		{
			name: "an unknown access key: head, like a key that is missing on versitygw", only: "aws-sdk",
			see: as(unknown, func(b bare) string { return b.head("k") }), want: each("403 Forbidden", "404 NotFound"),
		},
		{name: "a clock that is 20 minutes off (K40)", only: "aws-sdk", see: func(l *lab) string {
			return l.skewed()
		}, want: same("403 RequestTimeTooSkewed")},
		{name: "minio-go's own ToErrorResponse misses a wrapped error, errors.As does not", only: "minio-go", see: func(l *lab) string {
			_, err := l.mini.StatObject(l.ctx, l.to.Bucket, l.key("absent"), minio.StatObjectOptions{})
			return saidOf(fmt.Errorf("wrapped: %w", err)) + "; " + minio.ToErrorResponse(fmt.Errorf("wrapped: %w", err)).Code
		}, want: same("404 NoSuchKey; ")},
	}
}

// skewed sends a GET that was signed 20 minutes ago.
func (l *lab) skewed() string {
	req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, "http://"+l.to.Endpoint+"/"+l.to.Bucket+"/k", nil)
	if err != nil {
		return err.Error()
	}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of no bytes
	req.Header.Set("X-Amz-Content-Sha256", empty)
	keys := aws.Credentials{AccessKeyID: l.to.AccessKey, SecretAccessKey: l.to.SecretKey}
	if err := v4.NewSigner().SignHTTP(l.ctx, keys, req, empty, "s3", "us-east-1", time.Now().Add(-20*time.Minute)); err != nil {
		return err.Error()
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	var refused struct{ Code string }
	if err := xml.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&refused); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, refused.Code)
}

package s3express

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	bucket = "logs--use1-az4--x-s3"
	region = "us-east-1"
)

// bucketOf is a server, and the SDK's own client to it, as it comes.
func bucketOf(t *testing.T, opts Options, change ...func(*s3.Options)) (*Server, *s3.Client) {
	t.Helper()
	opts.Bucket, opts.Region, opts.AccessKey, opts.SecretKey = bucket, region, "AKID", "secret"
	s := New(opts)
	return s, clientOf(t, s, change...)
}

func clientOf(t *testing.T, s *Server, change ...func(*s3.Options)) *s3.Client {
	t.Helper()
	hs := httptest.NewServer(s)
	t.Cleanup(hs.Close)
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, hs.Listener.Addr().String())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return s3.New(s3.Options{
		Region: region, BaseEndpoint: aws.String("http://" + Zonal(bucket, region)), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		HTTPClient:  &http.Client{Transport: transport},
	}, change...)
}

func refused(t *testing.T, what string, err error, status int, code string) {
	t.Helper()
	var api smithy.APIError
	var resp *smithyhttp.ResponseError
	if !errors.As(err, &api) || !errors.As(err, &resp) || api.ErrorCode() != code || resp.HTTPStatusCode() != status {
		t.Errorf("%s: %v, want %d %s", what, err, status, code)
	}
}

func put(ctx context.Context, c *s3.Client, key, body string, change func(*s3.PutObjectInput)) error {
	in := &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader(body)}
	if change != nil {
		change(in)
	}
	_, err := c.PutObject(ctx, in)
	return err
}

// TestSessionsAreRequired: what a session is for needs one, and what it is not for
// refuses it; a session ends.
func TestSessionsAreRequired(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	s, c := bucketOf(t, Options{Clock: func() time.Time { return now }})
	noSession := func(o *s3.Options) { o.DisableS3ExpressSessionAuth = aws.Bool(true) }
	iam := clientOf(t, s, noSession)
	if err := put(ctx, c, "k", "body", nil); err != nil {
		t.Fatal(err)
	}
	refused(t, "put without a session", put(ctx, iam, "k", "body", nil), 403, "AccessDenied")
	_, err := iam.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("k")})
	refused(t, "get without a session", err, 403, "AccessDenied")
	_, err = iam.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	refused(t, "list without a session", err, 403, "AccessDenied")
	copies, _ := routeObject(&call{Request: &http.Request{Method: "PUT", Header: http.Header{"X-Amz-Copy-Source": {"b/k"}}}, query: map[string][]string{"partNumber": {"1"}}})
	if _, why := s.secretOf(&call{Request: &http.Request{Header: http.Header{"X-Amz-S3session-Token": {"t"}}}}, copies, "AKID"); why == nil || why.code != "AccessDenied" {
		t.Errorf("a copy with a session: %+v", why)
	}
	before := s.Sessions()
	now = now.Add(5 * time.Minute) // the client's clock does not know
	refused(t, "after the session's end", put(ctx, c, "k2", "body", nil), 400, "ExpiredToken")
	if s.Sessions() != before {
		t.Error("the client renewed by itself: the test shows nothing")
	}
}

// TestSignaturesAreVerified: another secret, another region, a header changed on the way.
func TestSignaturesAreVerified(t *testing.T) {
	ctx := t.Context()
	s, _ := bucketOf(t, Options{})
	wrong := clientOf(t, s, func(o *s3.Options) {
		o.Credentials = credentials.NewStaticCredentialsProvider("AKID", "another", "")
	})
	_, err := wrong.CreateSession(ctx, &s3.CreateSessionInput{Bucket: aws.String(bucket)})
	refused(t, "another secret", err, 403, "SignatureDoesNotMatch")
	elsewhere := clientOf(t, s, func(o *s3.Options) { o.Region = "eu-west-1" })
	_, err = elsewhere.CreateSession(ctx, &s3.CreateSessionInput{Bucket: aws.String(bucket)})
	refused(t, "another region", err, 400, "AuthorizationHeaderMalformed")
	changed := clientOf(t, s, func(o *s3.Options) {
		inner := o.HTTPClient
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("X-Amz-S3session-Token") != "" {
				r.Header.Set("X-Amz-Meta-Sneaked", "in")
			}
			return inner.Do(r)
		})
	})
	refused(t, "a header that is not signed", put(ctx, changed, "k", "b", nil), 403, "AccessDenied")
	old := New(Options{Bucket: bucket, Region: region, AccessKey: "AKID", SecretKey: "secret", Clock: func() time.Time { return time.Now().Add(16 * time.Minute) }})
	_, err = clientOf(t, old).CreateSession(ctx, &s3.CreateSessionInput{Bucket: aws.String(bucket)})
	refused(t, "a clock that is off", err, 403, "RequestTimeTooSkewed")
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// TestListingsRefuse what directory buckets do not have, and come without order.
func TestListingsRefuse(t *testing.T) {
	ctx := t.Context()
	_, c := bucketOf(t, Options{Seed: 3, PageSize: 4})
	b := aws.String(bucket)
	_, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: b, Prefix: aws.String("a/b")})
	refused(t, "a prefix that ends in a name", err, 400, "InvalidRequest")
	_, err = c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: b, StartAfter: aws.String("a/b")})
	refused(t, "start-after", err, 501, "NotImplemented")
	_, err = c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: b, Delimiter: aws.String("-")})
	refused(t, "another delimiter", err, 501, "NotImplemented")
	_, err = c.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: b, Prefix: aws.String("a")})
	refused(t, "uploads under a name", err, 400, "InvalidRequest")
	_, err = c.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: b, KeyMarker: aws.String("x"), UploadIdMarker: aws.String("y")})
	refused(t, "upload-id-marker", err, 501, "NotImplemented")

	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("d/%02d", i))
		if err := put(ctx, c, want[i], "x", nil); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for p := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: b, Prefix: aws.String("d/")}); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			got = append(got, *o.Key)
		}
	}
	if slices.IsSorted(got) {
		t.Error("the listing came in order")
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("listed %v", got)
	}
	_, err = c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: b, Key: aws.String("up/loading")})
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: b, Delimiter: aws.String("/")})
	if err != nil || len(page.CommonPrefixes) != 2 || len(page.Contents) != 0 {
		t.Errorf("directories: %+v %v, want d/ and that of the upload", page, err)
	}
}

// TestWritesRefuse: conditions, checksums and parts.
func TestWritesRefuse(t *testing.T) {
	ctx := t.Context()
	_, c := bucketOf(t, Options{})
	b := aws.String(bucket)
	once := func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") }
	if err := put(ctx, c, "k", "one", once); err != nil {
		t.Fatal(err)
	}
	refused(t, "create-once over an object", put(ctx, c, "k", "two", once), 412, "PreconditionFailed")
	refused(t, "If-Match on nothing", put(ctx, c, "none", "x", func(in *s3.PutObjectInput) { in.IfMatch = aws.String("e") }), 404, "NoSuchKey")
	refused(t, "MD5", put(ctx, c, "m", "x", func(in *s3.PutObjectInput) { in.ContentMD5 = aws.String("nGJDAx7g/WK0Yl4f5Lspkg==") }), 501, "NotImplemented")
	refused(t, "a wrong checksum", put(ctx, c, "m", "x", func(in *s3.PutObjectInput) { in.ChecksumCRC32C = aws.String("AAAAAA==") }), 400, "BadDigest")
	refused(t, "append", put(ctx, c, "k", "x", func(in *s3.PutObjectInput) { in.WriteOffsetBytes = aws.Int64(3) }), 501, "NotImplemented")

	up, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: b, Key: aws.String("u")})
	if err != nil {
		t.Fatal(err)
	}
	part, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: b, Key: aws.String("u"), UploadId: up.UploadId, PartNumber: aws.Int32(2), Body: bytes.NewReader([]byte("x"))})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: b, Key: aws.String("u"), UploadId: up.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(2), ETag: part.ETag}}},
	})
	refused(t, "a gap in the parts", err, 400, "InvalidPartOrder")
	_, err = c.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: b, Key: aws.String("u"), UploadId: up.UploadId, PartNumber: aws.Int32(1),
		CopySource: aws.String(bucket + "/k"), CopySourceRange: aws.String("bytes=0-1"),
	})
	refused(t, "a range of a small source", err, 400, "InvalidRequest")
	_, err = c.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: b})
	if err == nil {
		t.Error("versioning was answered")
	}
}

// TestAddress: a bucket in the path is refused, whoever signed it.
func TestAddress(t *testing.T) {
	s, _ := bucketOf(t, Options{})
	for path, code := range map[string]string{"/" + bucket + "/k": "InvalidRequest", "/k": "NoSuchBucket"} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), code) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, code)
		}
	}
}

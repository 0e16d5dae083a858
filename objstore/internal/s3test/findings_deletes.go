//go:build unix

package s3test

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/minio-go/v7"
)

// findingsOfDeletes: no delete of ours has a condition, since none is portable.
func findingsOfDeletes() []finding {
	return []finding{
		{name: "absent keys are reported as deleted", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "", cond{}))
			n, said := l.bare.deleteAll(l.key("k"), l.key("absent"), l.key("dir/absent"))
			return fmt.Sprint(said, " ", n)
		}, want: same("ok 3")},

		{name: "1,001 keys in one call", only: "aws-sdk", see: func(l *lab) string {
			return l.tooMany()
		}, want: each("400 MalformedXML", "ok")},

		{name: "1,001 keys in one call of minio-go, which makes two requests", only: "minio-go", see: func(l *lab) string {
			return l.tooMany()
		}, want: same("ok")},

		{name: "a delete under a stale ETag", only: "aws-sdk", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "x", cond{}))
			_, err := l.sdk.DeleteObject(l.ctx, &s3.DeleteObjectInput{Bucket: &l.to.Bucket, Key: aws.String(l.key("k")), IfMatch: aws.String(otherETag)})
			return saidOf(err) + ", " + l.holds(l.key("k"))
		}, want: each("ok, 404 NoSuchKey", "412 PreconditionFailed, holds x")},

		{name: "a bulk delete under a stale ETag deletes", only: "aws-sdk", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "x", cond{}))
			got, err := l.sdk.DeleteObjects(l.ctx, &s3.DeleteObjectsInput{Bucket: &l.to.Bucket, Delete: &types.Delete{
				Objects: []types.ObjectIdentifier{{Key: aws.String(l.key("k")), ETag: aws.String(otherETag)}},
			}})
			if err != nil {
				return saidOf(err)
			}
			return fmt.Sprintf("%d deleted, %d errors, %s", len(got.Deleted), len(got.Errors), l.holds(l.key("k")))
		}, want: same("1 deleted, 0 errors, 404 NoSuchKey")},

		{name: "a bulk delete of a key with a control character says deleted and deletes nothing", only: "aws-sdk", see: func(l *lab) string {
			l.must(l.bare.put(l.key("a\x01b"), "x", cond{}))
			n, said := l.bare.deleteAll(l.key("a\x01b"))
			return fmt.Sprintf("%s %d, %s", said, n, l.holds(l.key("a\x01b")))
		}, want: same("ok 1, holds x")},
	}
}

func (l *lab) tooMany() string {
	keys := make([]string, 1001)
	for i := range keys {
		keys[i] = l.key(fmt.Sprint("absent/", i))
	}
	_, said := l.bare.deleteAll(keys...)
	return said
}

// findingsOfKeys: what the rules on keys and metadata keep us from.
func findingsOfKeys() []finding {
	return []finding{
		{name: "a key with an empty segment", only: "aws-sdk", see: func(l *lab) string {
			return l.aliased("d//k", "d/k")
		}, want: each("400 XMinioInvalidObjectName", "ok, and d/k holds x")},

		{name: "a key with a dot segment", only: "aws-sdk", see: func(l *lab) string {
			return l.aliased("d/./k", "d/k")
		}, want: each("400 XMinioInvalidResourceName", "ok, and d/k holds x")},

		{name: "a key of 1,025 bytes", only: "aws-sdk", see: func(l *lab) string {
			k := l.dir
			for len(k) < 1025 {
				k += strings.Repeat("x", min(100, 1025-len(k)-1)) + "/"
			}
			_, said := l.bare.put(k[:1024]+"x", "", cond{})
			return said
		}, want: each("400 KeyTooLongError", "ok")},

		{name: "a segment of 256 bytes", only: "aws-sdk", see: func(l *lab) string {
			_, fits := l.bare.put(l.key(strings.Repeat("x", 255)), "", cond{})
			_, said := l.bare.put(l.key(strings.Repeat("y", 256)), "", cond{})
			return fits + "; " + said
		}, want: each("ok; 400 XMinioInvalidObjectName", "ok; 400 KeyTooLongError")},

		{name: "3 KiB of metadata", only: "aws-sdk", see: func(l *lab) string {
			_, err := l.sdk.PutObject(l.ctx, &s3.PutObjectInput{
				Bucket: &l.to.Bucket, Key: aws.String(l.key("k")), Body: strings.NewReader(""), Metadata: map[string]string{"big": strings.Repeat("x", 3<<10)},
			})
			return saidOf(err)
		}, want: same("400 MetadataTooLarge")},

		{name: "a name of metadata comes back as minio-go's header", only: "minio-go", see: func(l *lab) string {
			o := minio.PutObjectOptions{UserMetadata: map[string]string{"X-Amz-Meta-some-Name": "v"}}
			if _, err := l.mini.PutObject(l.ctx, l.to.Bucket, l.key("k"), strings.NewReader(""), 0, "", "", o); err != nil {
				return saidOf(err)
			}
			got, err := l.mini.StatObject(l.ctx, l.to.Bucket, l.key("k"), minio.StatObjectOptions{})
			return fmt.Sprint(got.UserMetadata, " ", saidOf(err))
		}, want: same("map[Some-Name:v] ok")},

		{name: "an append", only: "aws-sdk", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "first", cond{}))
			_, err := l.sdk.PutObject(l.ctx, &s3.PutObjectInput{
				Bucket: &l.to.Bucket, Key: aws.String(l.key("k")), Body: strings.NewReader("more"), WriteOffsetBytes: aws.Int64(5),
			})
			return saidOf(err) + ", " + l.holds(l.key("k"))
		}, want: each("400 BadRequest, holds first", "ok, holds more")},
	}
}

// aliased writes one key and looks whether another now holds its bytes.
func (l *lab) aliased(written, other string) string {
	_, said := l.bare.put(l.key(written), "x", cond{})
	if said != "ok" {
		return said
	}
	return said + ", and " + other + " " + l.holds(l.key(other))
}

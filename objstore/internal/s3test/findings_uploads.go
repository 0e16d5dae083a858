//go:build unix

package s3test

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// one begins an upload of one part.
func (l *lab) one(key, body string) (id, etag string) {
	id = l.bare.create(key)
	return id, l.must(l.bare.part(key, id, 1, body))
}

// findingsOfUploads: what completes, aborts and listings of uploads do.
func findingsOfUploads() []finding {
	return []finding{
		{name: "a create-once complete of what exists is 412 and leaves the upload", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "first", cond{}))
			id, etag := l.one(l.key("k"), "upload")
			_, said := l.bare.complete(l.key("k"), id, cond{none: "*"}, etag)
			return said + ", " + l.holds(l.key("k")) + ", " + l.bare.parts(l.key("k"), id)
		}, want: same("412 PreconditionFailed, holds first, 1 parts")},

		{name: "of 4 puts and 4 completes at once just one wins", see: func(l *lab) string {
			return l.rounds(3, func(k string, i int) string {
				if i%2 == 0 {
					_, said := l.bare.put(k, "put", cond{none: "*"})
					return said
				}
				id, etag := l.one(k, "upload")
				_, said := l.bare.complete(k, id, cond{none: "*"}, etag)
				return said
			})
		}, want: same("7 412 PreconditionFailed, 1 ok")},

		{name: "a complete under an ETag: absent, stale, right", see: func(l *lab) string {
			id, etag := l.one(l.key("k"), "upload")
			_, absent := l.bare.complete(l.key("k"), id, cond{match: otherETag}, etag)
			first := l.must(l.bare.put(l.key("k"), "first", cond{}))
			_, stale := l.bare.complete(l.key("k"), id, cond{match: otherETag}, etag)
			_, right := l.bare.complete(l.key("k"), id, cond{match: first}, etag)
			return absent + "; " + stale + "; " + right
		}, want: same("404 NoSuchKey; 412 PreconditionFailed; ok")},

		{name: "a create-once complete sent again after its success", see: func(l *lab) string {
			return l.again(cond{none: "*"})
		}, want: each("412 PreconditionFailed", "ok")},

		{name: "a complete without a condition sent again after its success", see: func(l *lab) string {
			return l.again(cond{})
		}, want: each("404 NoSuchUpload", "ok")},

		{name: "an upload completed create-once twice at once", see: func(l *lab) string {
			id, etag := l.one(l.key("k"), "upload")
			return tally(2, func(int) string {
				_, said := l.bare.complete(l.key("k"), id, cond{none: "*"}, etag)
				return said
			}) + ", " + l.holds(l.key("k"))
		}, want: each("1 412 PreconditionFailed, 1 ok, holds upload", "2 ok, holds upload")},

		{name: "a complete sent again after success and delete is 404", see: func(l *lab) string {
			id, etag := l.one(l.key("k"), "upload")
			l.must(l.bare.complete(l.key("k"), id, cond{none: "*"}, etag))
			l.bare.deleteAll(l.key("k"))
			_, said := l.bare.complete(l.key("k"), id, cond{none: "*"}, etag)
			return said
		}, want: same("404 NoSuchUpload")},

		{name: "an upload's ETag is that of a digest with the number of parts", see: func(l *lab) string {
			id, etag := l.one(l.key("k"), "upload")
			whole := l.must(l.bare.complete(l.key("k"), id, cond{}, etag))
			return fmt.Sprintf("%d characters, %s", len(whole), whole[len(whole)-2:])
		}, want: same("34 characters, -1")},

		{name: "a complete may say the size of the whole", only: "aws-sdk", see: func(l *lab) string {
			id, etag := l.one(l.key("k"), "upload")
			in := sdkBare{l.sdk, l.to.Bucket}.completion(l.key("k"), id, cond{}, etag)
			in.MpuObjectSize = aws.Int64(7)
			_, err := l.sdk.CompleteMultipartUpload(l.ctx, in)
			return saidOf(err)
		}, want: each("ok", "400 InvalidRequest")},

		{name: "an upload is aborted twice", see: func(l *lab) string {
			id, _ := l.one(l.key("k"), "upload")
			return l.bare.abort(l.key("k"), id) + "; " + l.bare.abort(l.key("k"), id)
		}, want: each("ok; ok", "ok; 404 NoSuchUpload")},

		{name: "an abort under another key", see: func(l *lab) string {
			id, _ := l.one(l.key("k"), "upload")
			return l.bare.abort(l.key("other"), id) + ", " + l.bare.parts(l.key("k"), id)
		}, want: each("ok, 1 parts", "404 NoSuchUpload, 1 parts")},

		{name: "uploads listed by a part of a key, by the key, and all", see: func(l *lab) string {
			l.one(l.key("dir/k"), "upload")
			return fmt.Sprintf("%d, %d, %v", l.bare.uploads(l.key("dir/")), l.bare.uploads(l.key("dir/k")), l.bare.uploads("") > 0)
		}, want: each("0, 1, true", "1, 1, true")},

		{name: "an upload that declares no checksum, whose object has one", only: "aws-sdk", see: func(l *lab) string {
			id, etag := l.one(l.key("k"), "upload")
			l.must(l.bare.complete(l.key("k"), id, cond{}, etag))
			got, err := l.sdk.HeadObject(l.ctx, &s3.HeadObjectInput{Bucket: &l.to.Bucket, Key: aws.String(l.key("k")), ChecksumMode: "ENABLED"})
			if err != nil {
				return saidOf(err)
			}
			return strings.TrimSpace(fmt.Sprintf("%s %s", got.ChecksumType, aws.ToString(got.ChecksumCRC64NVME)))
		}, want: each("", "FULL_OBJECT "+crc64nvme("upload"))},
	}
}

// again completes an upload twice in the same way.
func (l *lab) again(c cond) string {
	id, etag := l.one(l.key("k"), "upload")
	first := l.must(l.bare.complete(l.key("k"), id, c, etag))
	second, said := l.bare.complete(l.key("k"), id, c, etag)
	if said == "ok" && second != first {
		return "ok, another object"
	}
	return said
}

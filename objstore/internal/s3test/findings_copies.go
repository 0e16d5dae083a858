//go:build unix

package s3test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// findingsOfCopies: what range copies do. AWS refuses those of a source of 5 MB or less
// (documented); neither server here does.
func findingsOfCopies() []finding {
	return []finding{
		{name: "a range of a small source is copied", see: func(l *lab) string {
			etag := l.must(l.bare.put(l.key("src"), "0123456789", cond{}))
			id := l.bare.create(l.key("k"))
			part := l.must(l.bare.copyPart(l.key("k"), id, 1, l.key("src"), etag, 2, 3))
			l.must(l.bare.complete(l.key("k"), id, cond{none: "*"}, part))
			return l.holds(l.key("k"))
		}, want: same("holds 234")},

		{name: "a copy of a source that changed is 412", see: func(l *lab) string {
			l.must(l.bare.put(l.key("src"), "0123456789", cond{}))
			_, said := l.bare.copyPart(l.key("k"), l.bare.create(l.key("k")), 1, l.key("src"), otherETag, 2, 3)
			return said
		}, want: same("412 PreconditionFailed")},

		{name: "a copy beyond the source's end is 400", see: func(l *lab) string {
			etag := l.must(l.bare.put(l.key("src"), "0123456789", cond{}))
			_, said := l.bare.copyPart(l.key("k"), l.bare.create(l.key("k")), 1, l.key("src"), etag, 5, 10)
			return said
		}, want: same("400 InvalidArgument")},

		{name: "a first part below 5 MiB is refused when the upload completes, and leaves it", see: func(l *lab) string {
			id := l.bare.create(l.key("k"))
			one := l.must(l.bare.part(l.key("k"), id, 1, strings.Repeat("x", 5<<20-1)))
			two := l.must(l.bare.part(l.key("k"), id, 2, "y"))
			_, said := l.bare.complete(l.key("k"), id, cond{}, one, two)
			return said + ", " + l.bare.parts(l.key("k"), id)
		}, want: same("400 EntityTooSmall, 2 parts")},

		{name: "parts may leave gaps, and the only one be empty", see: func(l *lab) string {
			id := l.bare.create(l.key("k"))
			three := l.must(l.bare.part(l.key("k"), id, 3, "gap"))
			_, gap := l.bare.complete(l.key("k"), id, cond{}, "", "", three)
			id = l.bare.create(l.key("empty"))
			none := l.must(l.bare.part(l.key("empty"), id, 1, ""))
			_, empty := l.bare.complete(l.key("empty"), id, cond{}, none)
			return gap + "; " + empty
		}, want: same("ok; ok")},

		{name: "a copied part in an upload that declares a checksum", only: "aws-sdk", see: func(l *lab) string {
			etag := l.must(l.bare.put(l.key("src"), "0123456789", cond{}))
			got, err := l.sdk.CreateMultipartUpload(l.ctx, &s3.CreateMultipartUploadInput{
				Bucket: &l.to.Bucket, Key: aws.String(l.key("k")), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c,
			})
			if err != nil {
				return saidOf(err)
			}
			_, said := l.bare.copyPart(l.key("k"), aws.ToString(got.UploadId), 1, l.key("src"), etag, 2, 3)
			return said
		}, want: each("400 InvalidArgument", "ok")},

		{name: "a copied part's checksum is that of the whole source", only: "aws-sdk", see: func(l *lab) string {
			return l.copiedSum()
		}, want: each("400 InvalidArgument", "the whole source's")},
	}
}

// copiedSum copies a range of a source that has a CRC-32C into an upload that declares
// one, and says whose sum the part comes back with.
func (l *lab) copiedSum() string {
	const source = "0123456789"
	src, err := l.sdk.PutObject(l.ctx, &s3.PutObjectInput{
		Bucket: &l.to.Bucket, Key: aws.String(l.key("src")), Body: strings.NewReader(source), ChecksumCRC32C: aws.String(crc32c(source)),
	})
	if err != nil {
		return saidOf(err)
	}
	up, err := l.sdk.CreateMultipartUpload(l.ctx, &s3.CreateMultipartUploadInput{
		Bucket: &l.to.Bucket, Key: aws.String(l.key("k")), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c,
	})
	if err != nil {
		return saidOf(err)
	}
	part, err := l.sdk.UploadPartCopy(l.ctx, &s3.UploadPartCopyInput{
		Bucket: &l.to.Bucket, Key: aws.String(l.key("k")), UploadId: up.UploadId, PartNumber: aws.Int32(1),
		CopySource: aws.String(l.to.Bucket + "/" + l.key("src")), CopySourceRange: aws.String("bytes=2-4"), CopySourceIfMatch: src.ETag,
	})
	if err != nil {
		return saidOf(err)
	}
	switch sum := aws.ToString(part.CopyPartResult.ChecksumCRC32C); sum {
	case crc32c(source):
		return "the whole source's"
	case crc32c(source[2:5]):
		return "the range's"
	default:
		return "another: " + sum
	}
}

// findingsOfChecksums: what a body's checksum is held against.
func findingsOfChecksums() []finding {
	put := func(header, value string) func(*lab) string {
		return func(l *lab) string {
			o := minio.PutObjectOptions{UserMetadata: map[string]string{header: value}, DisableContentSha256: true}
			_, err := l.mini.PutObject(l.ctx, l.to.Bucket, l.key("k"), strings.NewReader("body"), 4, "", "", o)
			return saidOf(err)
		}
	}
	return []finding{
		{name: "a right CRC-32C in a header", only: "minio-go", see: put("x-amz-checksum-crc32c", crc32c("body")), want: same("ok")},
		{
			name: "a wrong CRC-32C in a header is refused", only: "minio-go", see: put("x-amz-checksum-crc32c", crc32c("other")),
			want: each("400 XAmzContentChecksumMismatch", "400 BadDigest"),
		},
		{
			name: "a wrong CRC-64/NVME in a header is refused", only: "minio-go", see: put("x-amz-checksum-crc64nvme", crc64nvme("other")),
			want: each("400 XAmzContentChecksumMismatch", "400 BadDigest"),
		},

		{name: "minio-go's trailing checksum over plain HTTP", only: "minio-go", see: func(l *lab) string {
			client, err := minio.NewCore(l.to.Endpoint, &minio.Options{
				Creds: credentials.NewStaticV4(l.to.AccessKey, l.to.SecretKey, ""), Region: "us-east-1", MaxRetries: 1, TrailingHeaders: true,
				Transport: &http.Transport{DisableKeepAlives: true},
			})
			if err != nil {
				return err.Error()
			}
			_, err = client.PutObject(l.ctx, l.to.Bucket, l.key("k"), strings.NewReader("body"), 4, "", "", minio.PutObjectOptions{Checksum: minio.ChecksumCRC32C})
			return saidOf(err)
		}, want: each("ok", "400 BadDigest")},

		{name: "aws-sdk's own checksums", only: "aws-sdk", see: func(l *lab) string {
			client := sdkClient(l.to, func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported })
			_, said := client.put(l.key("k"), "body", cond{})
			return said
		}, want: same("ok")},

		{name: "a checksum that comes only with the complete", only: "aws-sdk", see: func(l *lab) string {
			try := func(sum string) string {
				id, etag := l.one(l.key(sum[:3]), "upload")
				in := sdkBare{l.sdk, l.to.Bucket}.completion(l.key(sum[:3]), id, cond{}, etag)
				in.ChecksumCRC64NVME = &sum
				_, err := l.sdk.CompleteMultipartUpload(l.ctx, in)
				return saidOf(err)
			}
			return "right: " + try(crc64nvme("upload")) + ", wrong: " + try(crc64nvme("other"))
		}, want: each("right: 400 XAmzContentChecksumMismatch, wrong: 400 XAmzContentChecksumMismatch", "right: ok, wrong: ok")},
	}
}

func crc32c(body string) string {
	sum := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// crc64nvme is CRC-64/NVME, which S3 keeps by default.
func crc64nvme(body string) string {
	sum := crc64.Checksum([]byte(body), crc64.MakeTable(0x9a6c9329ac4bc9b5))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, sum))
}

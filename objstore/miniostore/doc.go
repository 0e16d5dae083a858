// Package miniostore is the driver for S3-compatible stores through minio-go.
//
// It talks through minio.Core, one request a call:
//
//   - never through Client.PutObject or ComposeObject: above 16 MiB these send a
//     condition when the upload begins and not when it completes, and overwrite;
//   - one attempt a call (MaxRetries 1): the library's own retry would answer a
//     successful create-once write whose answer was lost with 412;
//   - with an http.Transport of its own, sized to the concurrency, and the region set,
//     so that no request asks where the bucket is;
//   - without the SHA-256 of the payload in the signature, which triples the client's
//     CPU; a CRC-32C header goes with each body instead, and the store checks it. No
//     checksum algorithm is declared for an upload: uploads hold copied parts, which
//     MinIO then refuses and versitygw sums up wrongly.
//
// Credentials come from minio-go's providers, walked in credentials.go: the first way that
// is set up counts, its failure is the failure, and expired ones are renewed in mid-call.
//
// Files: config.go, driver.go (Open, Dial), put.go, get.go, list.go, delete.go, upload.go,
// settings.go (what doctor asks), bare.go (the client alone, for benchmarks), express.go (refused).
//
// What an answer means is decided by package s3wire from the answer itself, the same
// for both S3 drivers. Listing and bulk deletes are also read from the answer: the
// library drops some per-key errors and has no place to continue a listing at.
package miniostore

// Package s3store is the driver for S3 and its compatible stores through
// aws-sdk-go-v2.
//
// How the client is set, and why:
//
//   - one attempt a call (RetryMaxAttempts 1): the SDK's own retry would answer a
//     successful create-once write whose answer was lost with 412. Package objstore
//     retries, and reads back first;
//   - an http.Transport of its own, sized to the concurrency, on the S3 client only:
//     credentials are fetched over the SDK's, within bounds, and anew when a store finds
//     them expired (credentials.go);
//   - a CRC-32C header with each body, computed before the request, and an unsigned
//     payload: the SDK's default over plain HTTP is a SHA-256 of the payload and triples
//     the client's CPU. Checksums beyond that only where S3 requires one (bulk deletes):
//     the SDK's default would declare an algorithm on uploads, and uploads hold copied
//     parts, which MinIO then refuses and versitygw sums up wrongly;
//   - no validation of answers' checksums: ranged reads never have one, and our formats
//     carry their own.
//
// A bucket whose name ends in --x-s3 is a directory bucket of S3 Express One Zone
// (express.go): the SDK finds its zonal address and signs with a session, which this
// package renews (session.go). It was proven against package s3express, a server that
// behaves as the documents say, and not against AWS.
//
// Files: config.go, driver.go (Open, Dial), put.go, get.go, list.go, delete.go, upload.go,
// settings.go (what doctor asks), bare.go (the client alone, for benchmarks).
//
// What an answer means is decided by package s3wire from the answer itself, the same
// for both S3 drivers: the SDK takes an empty 200 to a complete or a bulk delete, and
// an HTML page to a listing, for success.
package s3store

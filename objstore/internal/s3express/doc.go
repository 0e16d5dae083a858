// Package s3express is an HTTP server that behaves like an S3 directory bucket
// (S3 Express One Zone), for tests. It holds its objects in memory.
//
// Nothing here was run against AWS. What it does comes from AWS's documentation as the
// Go SDK repeats it, and from errors that others quoted; where neither says, it picks
// the stricter answer. A test that passes here shows that our client does what the
// documents ask of it, not that AWS agrees.
//
//	a request                       what a directory bucket makes of it
//	host BUCKET.s3express-ZONE...   the only address: a bucket in the path is refused
//	GET /?session                   CreateSession, signed with IAM credentials: five minutes
//	objects, listings, uploads      signed with a session, its token in a signed header
//	range copy, HEAD of the bucket  signed with IAM credentials; a session is refused
//	prefix without "/" at its end   400 InvalidRequest
//	start-after, upload-id-marker   501 NotImplemented
//	a listing                       in an order drawn from a seed, page tokens opaque,
//	                                directories of unfinished uploads among its prefixes
//	complete                        parts 1, 2, 3 without a gap
//	Content-MD5 with a body         501, but for bulk deletes; other checksums are checked
//	ETags                           random
//
// Signatures are verified in full (sign.go), with the service name "s3express".
//
// Files: server.go, session.go, objects.go, body.go (what is read, and its checksums), list.go,
// uploads.go, answer.go (refusals).
//
// Guesses, for want of a document: the answer to a bucket in the path (400
// InvalidRequest), to a missing session token (403 AccessDenied), to start-after, and
// that a complete repeated after its success finds no upload. A CRC-32C on the part of
// an upload that declared no algorithm is taken, as MinIO and versitygw take it; AWS
// has answered it with "Checksum Type mismatch" in the past, and whether it still does
// was not tried.
//
// Not here: CopyObject, append, versions, tags, encryption settings, ListParts.
package s3express

// Package objstore is the bucket: immutable objects under opaque keys, created
// once, read by ranges, deleted by name.
//
//	duty or reader
//	     |
//	  Store          key checks, retries with read-back, the brake, time-outs, counters,
//	     |           error kinds
//	  Driver         fsstore · memstore · miniostore · s3store · faultstore (wraps any)
//
// A Store is a concrete type over a small Driver, so that everything a caller
// relies on is written once. A Driver makes one attempt per call and maps what
// it saw onto the closed set of kinds in errors.go.
//
// The package knows no domain type: keys are formed and parsed in package
// segment, and what an object holds is nobody's business here.
package objstore

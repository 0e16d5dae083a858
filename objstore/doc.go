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
//	store.go     Store: key.go checks keys, retry.go, backoff.go, brake.go, config.go
//	write        put.go, publish.go (create-once, with read-back); upload.go, commit.go,
//	             abort.go, join.go (copies)
//	read         get.go, range.go, list.go, listsorted.go
//	delete.go    Delete
//	classes.go   a class's set of buckets
//	driver.go    Driver and Capabilities
//	stats.go     counters; account.go what they add up to; shown.go errors as text
//
// The package knows no domain type: keys are formed and parsed in package
// segment, and what an object holds is nobody's business here.
package objstore

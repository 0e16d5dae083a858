// Package s3wire is what the two S3 drivers share: one look at each HTTP answer
// before the client library sees it, and one table from answers to error kinds.
//
//	driver call
//	   | context carries an Exchange
//	client library (minio-go, aws-sdk-go-v2): builds and signs the request
//	   |
//	Transport: notes whether a connection was had, the status, the error code; an
//	   |       answer of 200 that is not the document asked for becomes an error
//	the store
//
// The libraries differ in what they make of odd answers: an empty 200, an HTML
// page of a proxy, an <Error> inside a 200, a bulk delete that reports only some
// keys. Some of these come out of a library as success. So the verdict is taken
// from the wire, once, for both drivers; Verdict never looks at an error's Go type
// when there was an answer.
//
//	transport.go   one request and its answer; dial.go, bare.go: for tests and benchmarks
//	exchange.go    what one call saw on the wire
//	verdict.go     the table from answers to kinds; answer.go: refusals, bulk deletes;
//	               retryafter.go: load and asks; clock.go: clocks that differ
//	read.go        objects and HEADs; ranges.go, body.go: what a read must be
//	list.go        listings; uploads.go: those of uploads, and what parts must be
//	sum.go         checksums of bodies; partsum.go: of parts
//	settings.go    the bucket's settings
//	space.go       bucket and prefix; storeurl.go, limits.go: a store's URL
//	source.go      where credentials come from; renew.go: when they are over
//	trust.go       certificates, and TLS that fails
//
// The package knows nothing of what an object holds. It retries nothing but the first call
// of Open (reach.go).
package s3wire

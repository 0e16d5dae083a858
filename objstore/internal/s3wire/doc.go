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
// The package knows nothing of what an object holds and does not retry.
package s3wire

// Package memstore is a bucket in memory, for tests. It keeps the promises of
// objstore.Driver exactly, with the rules of AWS where stores differ, and it is a
// referee: whoever overwrites an immutable object, gives a deleted key other
// bytes, reads what was deleted, or deletes what the test says is still named,
// finds it in Violations.
//
//	objects by key     bytes, metadata, a random ETag, the time by Clock
//	graves by key      digest of what was deleted, to judge a re-creation
//	uploads by id      parts by number
//
//	memstore.go, list.go, multipart.go   the driver
//	referee.go                           the judge
//
// Nothing is durable, and nothing leaves the process.
package memstore

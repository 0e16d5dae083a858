// Package s3test holds the tests that both S3 drivers pass beyond objstore/storetest:
// a scripted server gives the answers that real servers do not give on demand, and
// real servers (package realstore) are raced, restarted and spoken to wrongly.
package s3test

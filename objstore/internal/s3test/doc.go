// Package s3test holds the tests that both S3 drivers pass beyond objstore/storetest:
// a scripted server gives the answers that real servers do not give on demand, and
// real servers (package realstore) are raced, restarted and spoken to wrongly.
//
//	scripted.go     Scripted, by script.go's server, in scripted_*.go; calls.go: each call
//	real.go         Real, on both servers; real_losses.go; real_ways.go: wrong ways, TLS
//	express.go      Express, against package s3express
//	credentials.go  Credentials, from sources.go's fake services
//	tls.go          Trust
//	findings.go     Findings: what was found of servers and bare clients is still so;
//	                findings_*.go: by subject, and the two clients
package s3test

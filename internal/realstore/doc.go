// Package realstore builds and runs real S3 servers on loopback, for tests and for the
// demo: a MinIO server and versitygw, at the versions pinned under tools/.
//
//	tools/NAME/go.mod, go.sum --hash--> .cache/bin/NAME-HASH   built once, under a lock
//	                                        |
//	            Start(ctx, kind, dir)  runs it on a free port of 127.0.0.1, data in dir
//	            Minio(t), Versitygw(t) one server a test binary, a bucket a test
//
//	tool.go         Build; toolbin/ prints where a tool is
//	server.go       Start, Stop, Restart; process.go its process, certificate.go TLS
//	testing.go      one server a test binary
//
// Nothing is skipped: a server that does not build or start fails the test. Servers are
// ended by their process id, and on Linux the kernel ends them if the test process is
// killed.
//
// Build alone is for other pinned programs: linters, and an OpenTelemetry Collector and
// telemetrygen as senders of logs.
//
// The servers' data is worth nothing; versitygw does not even sync it to disk.
package realstore

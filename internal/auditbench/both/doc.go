// Command both runs `strandline bench auditor` on this machine's disk and on a MinIO server
// that it starts for the purpose, one after the other:
//
//	go run ./internal/auditbench/both [-dir DIR] [-- flags of bench auditor]
//
// Bucket, server and catalogs lie under a directory of their own within DIR, which goes
// with the end. It decides nothing and measures nothing itself.
package main

// Command figures measures a deployment of real processes on a MinIO and a PostgreSQL
// server that it starts on this machine, against what was aimed at:
//
//	go run ./internal/e2e/figures [-dir DIR] [-json]
//
// Rows a second over HTTP with local acknowledgements, the time that a shared
// acknowledgement takes, and how fast a cold `cat` of a settled stream is beside the bare
// client of the same library with the same ranges. All share the machine's cores, the
// measuring process among them, so that it says something on a quiet machine only.
//
//	main.go    flags, the order, the table
//	append.go  the two figures of appends
//	cat.go     the stream, `cat` and the bare client, in turns
//	record.go  which ranges `cat` reads: a proxy that writes them down
package main

// Command both runs `strandline bench catalog` on SQLite and on a PostgreSQL server that it
// starts for the purpose, with what an operator would set on a machine of 4 GiB:
//
//	go run ./internal/catalogbench/both [-- flags of bench catalog]
//
// The server, its data and SQLite's file lie in throw-away directories below TMPDIR, which go
// with the end. It decides nothing and measures nothing itself.
package main

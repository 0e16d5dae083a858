// Package httpapi serves rows over HTTP: append to the shards of this process,
// read any stream, report health. JSON in and out; every error is a
// problem+json with a stable code (problem.go has the table).
//
//	append.go   POST /v1/streams/{stream}/rows
//	read.go     GET  /v1/streams/{stream}/rows
//	server.go   routes, limits, health
//
// It holds nothing: an acknowledgement is the writer's, a row the reader's.
package httpapi

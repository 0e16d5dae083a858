//go:build unix

// Command toolbin builds a pinned tool, unless it is cached, and prints the path of
// its binary: minio, versitygw, staticcheck, gofumpt, golangci-lint. The Makefile
// runs the linters through it.
package main

// Command demo is the product's main job on real input, as a user would drive it:
// Go's own source, a stream a package, a row a line, through HTTP into the built
// binary; then the writer's disk is deleted and every stream is read back
// from bucket and catalog alone and compared with the files, byte for byte. Then
// settle, trim, delete, audit until dry, fsck, compare again.
//
//	corpus.go   the input
//	process.go  the binary as child processes
//	load.go     append over HTTP
//	verify.go   read back and compare
//	audit.go    settle and audit until nothing is due, and what that cost
//	phases.go   the story, in order
//	main.go     flags, and the backend
//
// `make demo` runs it; so does its test.
package main

// Command strandline is a shared log tier on object storage: one binary, a
// subcommand per file. It only wires: flags in, rooms called, results out.
//
//	root.go      global flags, environment, exit codes
//	backend.go   URLs -> catalog and stores; the embedded layout of --dir
//	output.go    tables for people, JSON for machines, progress on a terminal
package main

//go:build unix

// Command vulncheck holds this module's code against the Go vulnerability database: make
// lint runs it. It fails on what the code calls; what it only requires is told.
//
//	main.go      which database, and the run
//	database.go  the published database, or else the one of the module that it is made from
//	verdict.go   govulncheck's findings, and those that are accepted for a while
//
// The published database is on the network. Where that is away, the module that holds its
// reports is taken as pinned in tools/vuln, and its age told: newer reports are missed until
// the pin moves. Where neither is there, nothing is checked, and that is said.
//
// tools/vuln/accepted names findings that are known: each with a reason, and the day from
// which it fails again.
package main

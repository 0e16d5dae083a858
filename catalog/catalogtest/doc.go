// Package catalogtest is the conformance suite of catalog implementations: every
// verb with every guard failing, races, monotonicity, and random sequences of verbs
// held against a model of the rows.
//
//	run.go     Run, and what it opens; world.go a deployment to try verbs in
//	random*.go random sequences; the other files are a group of verbs each
//	twin.go    Twin: two catalogs through one life, held against each other; twinverbs.go
//
// What this package does not do: look behind the interface. What needs a broken row
// or a killed process is tested in the implementation's own package.
package catalogtest

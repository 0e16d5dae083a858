// Package rules holds the tests that keep the repository in shape: who may import
// whom, a doc.go in every package, a compose file that parses, README commands
// that exist. It has no code of its own.
package rules

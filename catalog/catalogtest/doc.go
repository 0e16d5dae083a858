// Package catalogtest is the conformance suite of catalog implementations: every
// verb with every guard failing, races, monotonicity, and random sequences of verbs
// held against a model of the rows.
//
// What this package does not do: look behind the interface. What needs a broken row
// or a killed process is tested in the implementation's own package.
package catalogtest

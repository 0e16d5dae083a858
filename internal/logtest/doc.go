// Package logtest is a log that a test reads while it is written, and waits for a line of:
// what tests of files that are watched and replaced have in common.
package logtest

// Package tiertest builds a small tier for tests of readers: a bucket in memory, a
// catalog in a file, and one chain whose slots are made from append calls, all on
// one virtual clock. It settles nothing and deletes nothing; tests that need
// those use the real rooms on top of it.
package tiertest

// Package audittest is the fixture of the deleting rooms' tests: one chain's
// writer, a bucket in memory that is a referee, a catalog, one clock for all
// of them, and faults over the calls of both.
//
//	clock.go   virtual time; waiting advances it
//	tier.go    New, Auditor, RunDry
//	checks.go  what is checked at every delete, and at the end of every test
//	slots.go   seal, publish and absorb a segment
//	retention.go  an epoch that keeps rows by a policy, and the rows that it gives up
//	faults.go  the i-th call of store or catalog fails, in four forms
//	race.go, norace.go  is this a build with -race?
//
// The bucket's CheckDelete holds I2 (no delete of what a ref names) and I4 (none
// within a grace after the last ref died) at every single delete. At the end
// fsck has to find no damage and nothing leaked.
package audittest

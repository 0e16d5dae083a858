// Package crashpoints holds the crash points of the design, each as a test that reads like
// its row: what is given, where the cut falls, what the re-run sees, and why it converges.
// It has no code of its own.
//
// A test here cuts the whole auditor, or a writer on a simulated disk, right after one
// call took effect, and lets others go on. Every one ends the same way: duties run dry,
// fsck is clean, no marker and no intent stands, the bucket holds what refs name, and
// every row reads back. The rooms have their own tests of their steps, in all forms;
// docs/crashpoints.md lists both for each row, and table_test.go fails if what it lists is
// not there.
//
//	rewrite_test.go   seed rows: announce, PUT, commit, resolve
//	reclaim_test.go   seed rows: arm, probe, delete, cursors, teardown
//	contests_test.go  two duties meet: judge, retry, trim, absorb, watermark, arm
//	owners_test.go    a chain's owner: restart, lost answer, zombie, outages, rollback
//	world_test.go     a tier with known rows, cuts of its auditor, how all ends
//	rooms_test.go     the auditor's duties one by one
//	site_test.go      writers on simulated disks and an auditor, in virtual time
//	table_test.go     docs/crashpoints.md names tests and code that exist
//
// It does not search for cuts that nobody thought of: internal/sim does.
package crashpoints

// Package drive proves the promises of the local tier on real files: seed 000's five
// drives. Each founds a small deployment in a directory (a directory as bucket, SQLite as
// catalog, real shard directories), puts it through what the drive is about, reads back
// what is there, and holds it against what was acknowledged.
//
//	drive.go      Run: the drives, their flags and ranges
//	report.go     what a drive found: figures, and one claim for each promise
//	site.go       the directory of a drive, its bucket and its catalog
//	replica.go    a writer on a disk of its own, that can be killed
//	events.go     what is appended, and what is read back
//	recovery.go   killed and restarted on its own disk
//	affinity.go   one writer a shard: the others are refused and read cold; affinityjudge.go its claims
//	shared.go     a disk is lost: the bucket has all that was shared
//	gc.go         retention at the owner, and a restart after it
//	sharedgc.go   retention across the bucket: owner, reader and new owner see the same; sharedgcjudge.go its claims
//
// A drive has two halves. The first does and reads, and gathers what it read; the second
// is a pure judgement of that. A claim holds only if its judgement finds nothing wrong in
// what was read back; of a drive that could not be finished, what was never read is judged
// too, and does not hold.
//
// "Killed" means: the shard directory as it stands while the process runs, with no Close,
// is all that the next one gets, and nothing of the old one reaches bucket or catalog any more.
package drive

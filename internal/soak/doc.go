// Package soak runs the product as people do, in many processes on a real MinIO server and
// a SQLite catalog, breaks those processes at random, and holds what is there at the end
// against a ledger of what was acknowledged.
//
//	soak.go      Options, Run: the phases in order
//	site.go      directory, server, bucket, catalog and the built command
//	process.go   the command as a child process (package child)
//	fleet.go     two writers, two auditors, and who serves which shard
//	writer.go    a writer's disk, shards and restarts
//	chaos.go     which fault comes next, drawn from the seed
//	faults.go    kill, stall, lose a disk, take shards, take the server away
//	halt.go      stopping a process that does not hold the catalog's lock
//	ledger.go    what was acknowledged, where, and what may be missing since
//	losses.go    disks that went and shards that were taken: the only excuses
//	client.go    HTTP to whoever serves a shard
//	produce.go   producers: each batch is said again until it is answered; rows of package payload
//	consume.go   durable consumers: pull, compare, acknowledge
//	cursors.go   what consumers acknowledged, and what interest may let go
//	operate.go   trims, deletes, new consumers
//	read.go      cold reads and scans in processes that are stopped in the middle
//	watch.go     what may never go back (I6), settled objects seen
//	finish.go    the end: all go on by themselves, stop, salvage, run dry
//	judge.go     the rows that are there against the ledger (I1, I8)
//	bucket.go    the bucket against refs, slots and records (I3, I5)
//	report.go    the figures
//
// The faults are drawn from a printed seed. The moment at which one strikes is the
// machine's, so that a seed gives the same plan, not the same run.
//
// What a row must be excused for is decided here, not by the product: a row acknowledged as
// local may be missing only if its term was ended by a taker while the row was not
// absorbed, and, unless its disk was deleted, salvage must bring it back.
package soak

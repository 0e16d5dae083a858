// Package powercut is a file layer in memory under which the power can fail. It
// implements wal.FS with what a POSIX file system promises, and not more:
//
//	bytes and length of a file   durable after its Sync
//	entries of a directory       durable after its SyncDir
//	everything else              durable or not, in any combination
//
// Cut powers the machine off and gives the file system that the next boot finds:
// with what was synced only, or with a random part of the rest: any subset of
// the unsynced 4 KiB pages, each in any version that it had since its last sync
// (the kernel writes back when it likes), some torn at a 512-byte sector; any
// length that the file had; and any prefix or subset of the directory
// operations. A Sync that fails drops the dirty pages as Linux does: they read
// well, no later Sync writes them, and a boot may find any of them or none.
//
// Faults are injected by predicate (Inject), by free space (SetFree) and by a
// count of changes after which the power goes (PowerOffAfter). Every change is
// in the operation log (Ops), for proofs of order.
//
// A directory may be renamed as a whole (dirs.go): the boot after a cut finds it at
// either place unless the directory that it left was synced.
//
//	fs.go, dirs.go    the file system and its directories
//	file.go           an open file; inode.go what it is a name of, pages.go its bytes
//	fault.go          injected errors, and the log of operations
//	cut.go            what the next boot finds
//
// It is for tests. It does not model permissions or links.
package powercut

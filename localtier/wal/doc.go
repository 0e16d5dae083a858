// Package wal is the segment log of one chain in one directory: frames in, an
// acknowledgement after their fdatasync, and after a crash every acknowledged
// frame again, in order, once. It knows frames and files; it knows nothing of
// buckets, catalogs or indexes.
//
//	AppendBatch ──encode──▶ run (shared buffer) ──▶ committer ──pwrite, fdatasync──▶ Ticket.Wait returns
//	                                                    │
//	                    Seal (size, age, flush) ────────┴──▶ rotation, one named function a step (rotate.go)
//
// # Contract
//
// No Ticket reports success before the fdatasync that covers its frame, nor
// before that of every frame appended earlier. Appends are ordered as they were
// called; the log assigns their seqs. What arrives during an fdatasync is the
// next group. Bytes not yet flushed are at most two segments; beyond that an
// append is refused with ErrBackpressure.
//
// A write that failed is rolled back: its callers and all who queued behind them
// get the error (ErrFull on a full disk), and appends stay refused until Resume,
// because seqs that were promised are taken back. A failed fdatasync, or a
// rollback that failed, poisons the log: every append and sync returns the first
// error until the directory is opened again, for the kernel may now say "clean"
// about pages that the disk never saw.
//
// Open recovers by the rules of the segment package (older segments whole and
// sealed, the newest cut at a torn tail, anything else a
// *segment.CorruptionError with nothing changed), and delivers every surviving
// frame to its sink in constant memory. The valid prefix of an unsealed newest
// segment is copied to a new file before anything is appended, so that what was
// replayed is what the disk has.
//
// # The files
//
//	open      directory.go lists, chain.go holds the segments against each other,
//	          recover.go judges and replays, newest.go the one that may be torn,
//	          adopt.go copies its valid prefix, open.go puts all of it together; witness.go and
//	          index.go (the sidecars), readonly.go (without the lock)
//	append    append.go encodes and queues, siblings.go waits, commit.go takes and
//	          syncs, write.go, ahead.go; poison.go is what a failure leaves
//	rotate    rotate.go, a named function a step; spare.go
//	give up   checkpoint.go, housekeep.go, reclaim.go
//	take in   hydrated.go: Adopt
//	read      reader.go; carried.go is what the next SegmentStart repeats
//	all       log.go holds the state, config.go, errors.go, metrics.go; names.go the names of
//	          files; fs.go, osfs.go, sync_*.go the file system, lock_*.go the lock
//
// # Memory
//
// Two segments of bytes not yet flushed at most, the consumers and producers that
// the segment package bounds, some 100 bytes a sealed segment, and 256 KiB of zeros.
//
// # Speed
//
// Four things separate an append from a write and an fdatasync of a growing file.
// The committer writes all that is queued with one of each, and in a closed loop
// waits a moment for the producers that it just released (siblings.go). New
// segments, and the copy that recovery makes, are written over files that
// housekeeping or reclamation is done with (spare.go); where there is none, small
// writes carry zeros ahead of themselves (ahead.go). On file systems that
// overwrite in place, an fdatasync among written blocks commits no metadata. Large
// groups are written in pieces, and the disk begins with each at once (write.go).
//
// So an open segment's file may be longer than its frames. What stands behind
// them is zeros or of another UUID and never validates; readers know the durable
// length, Seal and Close cut the file there. index.json is believed only if the
// file is exactly as long as it says. That is what a clean close leaves; after a
// crash the newest segment, and no other, is read: to look only at the bytes right
// behind the known length would take damage there for the end of the log, and cut
// off acknowledged rows that follow it.
//
// A spare file is used only once it has no other name on the disk, and not while
// a SegmentReader has it open. A reader in another process that opened the file
// before it was housekept may find it overwritten: it then sees frames that do not
// validate, never wrong rows.
//
// # Older segments
//
// Reclaim gives local segments up for good, reclaim.json being its commit point.
// Adopt takes a segment in again that the shared tier gave back. Both, like
// Checkpoint and Housekeep, go on beside appends. Carried is what the next
// SegmentStart must repeat: consumers and idempotent producers.
//
// # Files of a directory
//
//	<segment id, 16 hex>.seg   segments                              truth
//	<segment id, 16 hex>.torn  what recovery cut off, kept aside     evidence
//	spare-<n, 16 hex>.free     files to be written over              nothing
//	CHECKPOINT                 the shared tier holds all up to here  truth
//	reclaim.json               local reclamation's commit point      truth
//	IDENTITY                   the writer UUID, made with the dir    truth
//	index.json                 head state and witness                cache
//	LOCK                       flock of the one process              –
//
// # What it does not do
//
// It does not publish, does not decide what may be deleted (Housekeep, Reclaim
// and Adopt are told), and keeps no index of rows.
package wal

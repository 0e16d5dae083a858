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
// # Files of a directory
//
//	<segment id, 16 hex>.seg   segments                              truth
//	<segment id, 16 hex>.torn  what recovery cut off, kept aside     evidence
//	CHECKPOINT                 the shared tier holds all up to here  truth
//	reclaim.json               local reclamation's commit point      truth
//	IDENTITY                   the writer UUID, made with the dir    truth
//	index.json                 head state and witness                cache
//	LOCK                       flock of the one process              –
//
// # What it does not do
//
// It does not publish, does not decide what may be deleted (Housekeep is told),
// keeps no index of rows, and does not yet recycle or preallocate files: nothing
// in the format is in the way of that, since stale bytes behind the last frame
// never validate and Seal truncates.
package wal

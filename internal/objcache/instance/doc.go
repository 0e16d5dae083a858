// Package instance is one instance of the object cache: ranges of immutable objects in
// files on a local disk, bounded in bytes, forgotten through deletes.
//
//	GET ──> Read ──> block in a file? ──yes──> verified, sent
//	                     │ no
//	                     └──> fill: one GET of the run of missing blocks, for all who wait;
//	                          sent from memory, then written to files
//	delete ──> forget every range of the key, then delete in the store
//
//	instance.go  Open, Close, the table of objects
//	read.go      Read: a range, block by block
//	fill.go      one GET for a run of blocks; keep.go: and its blocks to files
//	forget.go    Delete, Evict: how a key's ranges go
//	full.go      what a full disk changes
//	block.go     a block and its file; header.go: the bytes of that file
//	recover.go   the directory at start; lock_unix.go: its lock
//	serve.go     HTTP; stats.go: counters
//	config.go    bounds
//
// A block is 1 MiB of an object, a file of its own:
//
//	| bytes | what                                                              |
//	| 4     | "SLOC"                                                            |
//	| 4     | version, 1                                                        |
//	| 4     | n, length of the description                                      |
//	| 4     | CRC-32C of the description                                        |
//	| n     | description (JSON): bucket, key, ETag, size of the object, its    |
//	|       | metadata, number, length and CRC-32C of the block, time of the GET |
//	| rest  | the block                                                         |
//
// All of it is held against what the index says, at every hit. A file that was cut,
// changed, renamed or is another's is a miss and is unlinked; it is never an answer and
// never a reason for a read to fail. Nor are a full disk or a broken one: the block is
// then sent from memory and not kept.
//
// What is forgotten stays so. Deletes raise the key's generation before the files go,
// and again after the store answered; a fill that was begun before, or in between, is
// not kept. A file is unlinked before its key's delete is sent, so that a process which
// is killed finds nothing of it. A power cut could bring unlinked files back: after a
// reboot of the machine (the kernel's boot id changed) the directory is emptied. What
// nobody told us of, max-age bounds: a block is not served longer than that after its GET.
//
// A key has one content. If the store's ETag or size is not the one that its blocks were
// read under, all of them go and the reader is sent to the store.
//
// Memory: 128 MiB for fills under way, 1 MiB for each of at most 128 reads, and the index:
// 0.3 KiB a block of a large object, 1.2 KiB for a small object, which counts as 64 KiB at
// least. So an index takes 20 MiB per GiB of cache at most, and 0.3 MiB if objects are large.
// The process takes up to twice the sum, since Go's collector lets as much garbage gather:
// 370 MiB were measured under 64 readers of large objects, 512 MiB under 128 slow ones.
//
// Who may read and delete is Config.Guard's to say. Without it, whoever reaches an instance can
// read and delete what it caches, in its buckets. /healthz and /readyz are open.
package instance

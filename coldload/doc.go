// Package coldload reads a stream straight from the bucket: every row from a
// position on, in order, once, or a typed error.
//
//	plan.go    refs from the catalog, in order, checked for holes
//	chunks.go  refs -> chunks to fetch; a ref of many chunks asks its object's footer
//	fetch.go   neighbouring chunks in one ranged GET, a bounded window in parallel
//	decode.go  verify, decompress, drop what lies outside the span
//	buffers.go the memory that ranges and chunks lie in, used again
//	spoil*.go  what -race builds do to memory that is given back
//	read.go    the loop: plan, read, plan again when an object went or the plan aged
//	behind.go  where a stream's read goes on behind rows that an operator accepted as lost
//	token.go   going on after a position with its term: forked histories
//	scan.go    a whole shard in chain order: slots while they stand, refs below them
//	scanplan.go   which slot, or which refs, serve the next seqs
//	scanmerge.go  their rows merged by seq
//	footers.go the footers that are kept; config.go, errors.go
//	scandoubt.go  a second look at the refs before a row is called missing, or there twice
//	scanloss.go   what a scan does at rows that an operator accepted as lost
//
// Memory is bounded by Config.MemoryBytes for all that is fetched and decoded
// ahead, plus the chunk being delivered; it does not grow with the stream. A scan
// holds as much again for the rows it merges, and Config.ScanRefs refs. All reads of a
// Reader share Config.TotalBytes (share.go).
//
// A reader writes nothing and holds no lease. What makes it safe is the read grace:
// a plan is relied on for at most its TTL, which is half of what every deleter
// waits.
package coldload

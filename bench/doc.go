// Command bench measures our log beside nine others in one run, on one machine.
//
//	go run . -list
//	go run . -seconds 1 -repetitions 7 -record-bytes 1024 -producers 16,256 -only "strandline wal,etcd wal"
//
// # What is measured
//
// Append: producers in a closed loop, each sending its next record once the last is
// durable, one record a call. Of each cell (record size × producers): rows a second,
// p50 and p99 of the time to the acknowledgement, heap allocations, processor time
// and bytes written a row, after a warm-up that is not counted (cell.go).
//
// Replay: a log of 1 KiB records (1 GiB; a quarter for the slow peers) is filled once,
// closed, and then opened for append and read from its beginning, each some times,
// with its files in the page cache (standing.go). Every record of a replay is counted
// and told by its number: a log that lost one fails the run.
//
// The order is repetition, cell, implementation, so that what is compared ran seconds
// apart, and each measurement is a process of its own (child.go), so that neither
// heaps nor files of one disturb the next. The table gives medians over repetitions;
// a ratio is the median of the ratios within each repetition, to the peer that was
// the fastest in that cell of that repetition.
//
// Our two logs are measured in steady state: with spare files to write over, as a log
// has them that has published and given up segments before (peer/spares.go).
//
// The other steps: settings.go, machine.go (where it runs), runner.go (the order), usage.go and
// histogram.go (what is taken), report.go, markdown.go, goals.go (what is made of it).
//
// The bare rows are a write and an fdatasync without any log, for the price of the
// disk: in a growing file, and over blocks that were written before.
//
// # What is not
//
//   - Power cuts. In a virtual machine a flush may be answered by the host before it
//     reaches the medium: the figures compare logs on one disk, and promise nothing
//     about that disk.
//   - Open loops. With arrivals at a fixed rate, waiting for company brings little or
//     harms; a closed loop flatters whoever batches.
//   - Compressible payloads. Records are random bytes.
//   - Reading while writing, deleting, publishing. Slots are not sent anywhere here.
//   - Bytes written are /proc/self/io's write_bytes: pages that were made dirty, not
//     what the disk got. A small overwrite of cached blocks counts a whole large folio,
//     so rows that recycle files show absurd figures; and the file system's journal is
//     not in it.
//   - p99 holds the neighbours' bursts, if the machine has neighbours.
//
// It runs on Linux only, and its module is apart from the root's, so that no peer is
// a dependency of ours (docs/decisions/0004-bench-peers.md).
package main

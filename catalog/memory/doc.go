// Package memory is the catalog in memory: for tests and for the simulator. It is not
// durable, and one process has it alone; whoever wants its rows tomorrow takes
// catalog/sqlite.
//
//	verb ──> one mutex, one moment of the clock ──> tables (sorted blocks) ──> answer
//	             error: the verb's writes are taken back
//
// It implements catalog.Catalog in full and is held to catalog/catalogtest. The
// guards and every decision stand in package catalog; here stand the look-ups that
// they are asked with, and what is written when they agree. The same calls in the
// same order give the same answers in the same order: nothing iterates over a map.
//
// No caller shares memory with the rows: what comes in and what goes out is copied.
// (View hands rows out as they stand: see there.)
//
// For the simulator it offers three things that a database does not:
//
//   - Snapshot and Restore bring an older state back, as a fail-over does that loses
//     commits. A snapshot shares blocks with the tables until one of them changes.
//   - View reads the rows of all tables in one consistent state, without copies.
//   - Options.Skip plants faults: a guard named there is not asked (skip.go).
//
// Files: index.go the sorted table; tables.go, rows.go what there is; memory.go,
// snapshot.go, view.go, skip.go the above; the other files are a group of verbs each,
// named as in catalog/sqlite.
//
// What this package does not do: store, retry, inject errors (a wrapper does), share
// its rows with another process.
package memory
